//! The connection to the API server.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be read or makes no sense.
    #[error("read the kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// Neither a kubeconfig nor a service account was found.
    #[error("find the API server: {0}")]
    Infer(#[from] kube::config::InferConfigError),
    /// The client cannot be built, for example for lack of a certificate.
    #[error("build the client: {0}")]
    Client(#[from] Box<kube::Error>),
}

/// Connects with the given kubeconfig, or else as kubectl or a pod would.
///
/// The client does not repeat requests by itself. Our own queue does that, visibly and with a bound, and a 429 from the
/// eviction API is an answer: a disruption budget holds the pod back.
pub async fn connect(kubeconfig: Option<&str>) -> Result<Client, ConnectError> {
    let mut config = match kubeconfig {
        Some(path) => {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &KubeConfigOptions::default()).await?
        }
        None => Config::infer().await?,
    };
    config.default_retry = false;
    Client::try_from(config).map_err(|error| ConnectError::Client(Box::new(error)))
}
