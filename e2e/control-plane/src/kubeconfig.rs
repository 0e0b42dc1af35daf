//! The text of a kubeconfig.

use std::path::Path;

/// What a kubeconfig says: where the server is, whom to trust, who asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kubeconfig<'a> {
    pub(crate) server: &'a str,
    pub(crate) authority: &'a Path,
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
}

impl Kubeconfig<'_> {
    /// Renders it with one cluster, one user and one context.
    pub(crate) fn render(&self) -> String {
        let Self { server, authority, certificate, key } = self;
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: {server}
    certificate-authority: {authority}
users:
- name: test
  user:
    client-certificate: {certificate}
    client-key: {key}
contexts:
- name: test
  context:
    cluster: test
    user: test
current-context: test
",
            authority = quoted(authority),
            certificate = quoted(certificate),
            key = quoted(key),
        )
    }
}

/// A path as a YAML string, in single quotes, in which only the quote itself is special.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Kubeconfig, quoted};

    #[test]
    fn names_server_and_files() {
        let text = Kubeconfig {
            server: "https://127.0.0.1:6443",
            authority: Path::new("/a/ca.crt"),
            certificate: Path::new("/a/me.crt"),
            key: Path::new("/a/me.key"),
        }
        .render();
        for expected in ["server: https://127.0.0.1:6443\n", "authority: '/a/ca.crt'\n", "client-key: '/a/me.key'\n"] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn a_quote_in_a_path_stays_a_quote() {
        assert_eq!(quoted(Path::new("/it's")), "'/it''s'");
    }
}
