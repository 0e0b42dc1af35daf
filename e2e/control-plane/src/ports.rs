//! Free loopback ports.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// The ports of one control plane, all on 127.0.0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// Where etcd serves its clients.
    pub etcd_client: u16,
    /// Where etcd would serve its peers.
    pub etcd_peer: u16,
    /// Where kube-apiserver serves HTTPS.
    pub api_server: u16,
    /// Where kube-controller-manager serves its health.
    pub controller_manager: u16,
    /// Where kube-scheduler serves its health.
    pub scheduler: u16,
    /// Where kwok serves its health, and what a kubelet would serve.
    pub kwok: u16,
}

impl Ports {
    pub(crate) fn choose() -> Result<Self> {
        let [etcd_client, etcd_peer, api_server, controller_manager, scheduler, kwok] = free_ports()?;
        Ok(Self { etcd_client, etcd_peer, api_server, controller_manager, scheduler, kwok })
    }
}

/// Ports that were free a moment ago, all different.
///
/// Nothing holds them afterwards: whoever binds one must be ready to find it taken, and choose again.
pub fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT]> {
    let mut ports = [0; COUNT];
    // All listeners stay open until the last port is known, or the system could hand out one port twice.
    let mut listeners = Vec::with_capacity(COUNT);
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind a free loopback port")?;
        *port = listener.local_addr().context("read the port just bound")?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::free_ports;

    #[test]
    fn ports_differ() {
        let mut ports = free_ports::<16>().unwrap().to_vec();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 16);
    }
}
