//! The orderly end of the process.

use std::future::Future;
use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// The signal that asked the process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownSignal {
    /// SIGTERM, from the kubelet.
    Terminate,
    /// SIGINT, from a keyboard.
    Interrupt,
}

/// Starts to listen for SIGTERM and SIGINT; the future completes with the first of them.
///
/// From the call on, neither signal ends the process by itself. Fails when the system refuses a handler. Must be called
/// inside a runtime with I/O enabled.
pub fn shutdown_signal() -> io::Result<impl Future<Output = ShutdownSignal> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => ShutdownSignal::Terminate,
            _ = interrupt.recv() => ShutdownSignal::Interrupt,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{ShutdownSignal, shutdown_signal};

    /// The shell's parent is this test process, which listens by then.
    fn send(name: &str) {
        assert!(Command::new("sh").args(["-c", &format!("kill -{name} $PPID")]).status().unwrap().success());
    }

    #[tokio::test]
    async fn either_signal_completes_the_future() {
        for (name, expected) in [("TERM", ShutdownSignal::Terminate), ("INT", ShutdownSignal::Interrupt)] {
            let signal = shutdown_signal().unwrap();
            send(name);
            assert_eq!(signal.await, expected);
        }
    }
}
