//! Settings that make no sense together.

use std::fmt;

use super::options::{Mode, Options};

/// Two settings that cannot both be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// Two endpoints want one port.
    SamePort {
        /// The port.
        port: u16,
    },
    /// Requests are limited, but none may be sent.
    NoBurst,
    /// A batch would end at its longest before it could end of silence.
    IdleBeyondMax,
    /// The older way of repair knows no order.
    TerminateFirstLegacyRepair,
    /// A process that writes nothing cannot hold a Lease.
    ObserverWithLease,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SamePort { port } => {
                write!(formatter, "`--metrics-port` and `--health-probe-port` are both {port}")
            }
            Self::NoBurst => formatter
                .write_str("`--kube-client-burst` must be at least 1 while `--kube-client-qps` limits requests"),
            Self::IdleBeyondMax => formatter.write_str("`--batch-idle-duration` is longer than `--batch-max-duration`"),
            Self::TerminateFirstLegacyRepair => {
                formatter.write_str("the feature gate `TerminateFirstRepair` does not go with `--legacy-node-repair`")
            }
            Self::ObserverWithLease => formatter.write_str(
                "`--observe` writes nothing, so it cannot warm up for a Lease: leave `--disable-controller-warmup` on",
            ),
        }
    }
}

/// Everything that makes no sense, so that it can be put right at once.
pub(super) fn find(options: &Options) -> Vec<Contradiction> {
    let gates = &options.feature_gates;
    let port = options.metrics_port;
    let found = [
        (port != 0 && port == options.health_probe_port, Contradiction::SamePort { port }),
        (options.kube_client_qps > 0 && options.kube_client_burst < 1, Contradiction::NoBurst),
        (options.batch_idle_duration > options.batch_max_duration, Contradiction::IdleBeyondMax),
        (gates.terminate_first_repair && options.legacy_node_repair, Contradiction::TerminateFirstLegacyRepair),
        (options.mode == Mode::Observe && !options.disable_controller_warmup, Contradiction::ObserverWithLease),
    ];
    found.into_iter().filter(|(holds, _)| *holds).map(|(_, contradiction)| contradiction).collect()
}
