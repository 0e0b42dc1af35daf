//! The certificate authority of one control plane.

use anyhow::{Context, Result, bail};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// Groups a client certificate can carry. A service account needs two (all service accounts, those of its
/// namespace), and the library that writes certificates has two spellings for an organization.
const GROUPS_MAX: usize = 2;

/// A certificate with its key, both as PEM.
#[derive(Debug, Clone)]
pub(crate) struct Certified {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A key pair as PEM, to sign and to verify service account tokens.
#[derive(Debug, Clone)]
pub(crate) struct SigningKeys {
    pub(crate) private: String,
    pub(crate) public: String,
}

/// Signs the certificates of one control plane.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    pub(crate) fn generate() -> Result<Self> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = common_name("test-control-plane");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(parameters, new_key()?).context("sign the own authority")?;
        Ok(Self { issuer })
    }

    /// The authority itself, as controllers that sign certificates need it.
    pub(crate) fn certified(&self) -> Certified {
        Certified { certificate: self.issuer.pem(), key: self.issuer.key().serialize_pem() }
    }

    /// A certificate for servers on the loopback interface.
    pub(crate) fn server(&self) -> Result<Certified> {
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
        let mut parameters = CertificateParams::new(names).context("name the server")?;
        parameters.distinguished_name = common_name("kube-apiserver");
        self.sign(parameters, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate by which the API server knows a user and its groups.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> Result<Certified> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = client_name(user, groups)?;
        self.sign(parameters, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, mut parameters: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Result<Certified> {
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        parameters.extended_key_usages = vec![purpose];
        let key = new_key()?;
        let certificate = parameters.signed_by(&key, &self.issuer).context("sign a certificate")?;
        Ok(Certified { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// A fresh key pair for service account tokens.
pub(crate) fn signing_keys() -> Result<SigningKeys> {
    let key = new_key()?;
    Ok(SigningKeys { private: key.serialize_pem(), public: key.public_key_pem() })
}

fn new_key() -> Result<KeyPair> {
    KeyPair::generate().context("generate a key")
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn client_name(user: &str, groups: &[&str]) -> Result<DistinguishedName> {
    let mut distinguished = common_name(user);
    // The same attribute twice: the library keeps one value for each type it distinguishes.
    let organizations: [DnType; GROUPS_MAX] = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    if groups.len() > GROUPS_MAX {
        bail!("a client certificate carries at most {GROUPS_MAX} groups; `{user}` has {}", groups.len());
    }
    for (organization, group) in organizations.into_iter().zip(groups) {
        distinguished.push(organization, *group);
    }
    Ok(distinguished)
}

#[cfg(test)]
mod tests {
    use super::{Authority, client_name, signing_keys};

    #[test]
    fn two_groups_fit_and_three_do_not() {
        assert_eq!(client_name("user", &["one", "two"]).unwrap().iter().count(), 3);
        assert!(client_name("user", &["one", "two", "three"]).is_err());
    }

    #[test]
    fn what_is_signed_is_pem() {
        let authority = Authority::generate().unwrap();
        for certified in [authority.certified(), authority.server().unwrap(), authority.client("me", &[]).unwrap()] {
            assert!(certified.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
            assert!(certified.key.starts_with("-----BEGIN PRIVATE KEY-----"));
        }
        assert!(signing_keys().unwrap().public.starts_with("-----BEGIN PUBLIC KEY-----"));
    }
}
