//! SIGINT and SIGTERM while targets are audited: what has begun is finished, nothing new is begun, and the report holds
//! what is complete. A second signal ends the program at once.

use super::INTERRUPTED;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::pipe;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lets a file that may not grow further (`ulimit -f`) be an error of writing, and not the end of the program.
pub(super) fn outlive_full_files() {
    // Without it such a file ends the program, as it ends any.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Whether a signal has come.
#[derive(Debug)]
pub(super) struct Interrupt {
    seen: Arc<AtomicBool>,
    /// Becomes readable with the first signal.
    wake: UnixStream,
}

impl Interrupt {
    /// Takes the signals from now on. Before, they end the program as they end any: there is nothing to be printed yet,
    /// and waiting for standard input must not outlive them.
    pub(super) fn watch() -> io::Result<Self> {
        let seen = Arc::new(AtomicBool::new(false));
        let (wake, written) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            // In this order the first signal only sets the flag, which arms the end for the second.
            flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&seen))?;
            flag::register(signal, Arc::clone(&seen))?;
            pipe::register(signal, written.try_clone()?)?;
        }
        Ok(Self { seen, wake })
    }

    /// True once a signal has come.
    pub(super) fn came(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    /// What becomes readable when a signal comes, for those who wait for something else.
    pub(super) fn wake(&self) -> io::Result<UnixStream> {
        self.wake.try_clone()
    }
}
