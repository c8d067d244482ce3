//! Turns Ctrl-C into a request to stop. This module has `unsafe` code: it installs a signal
//! handler.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::bail;
use dyno_suite::Stop;

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// The signal that asked first; 0 before one did.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The signal that asked the program to stop, if one did.
pub fn signal() -> Option<u8> {
    match SIGNAL.load(Ordering::SeqCst) {
        0 => None,
        signal => u8::try_from(signal).ok(),
    }
}

/// Makes SIGINT and SIGTERM set the flag of the returned value. A second signal ends the program at
/// once, for a user who does not want to wait.
pub fn on_ctrl_c() -> anyhow::Result<Stop> {
    // Set before the first handler is installed, since a handler that ran without it would take the
    // first signal for the second.
    let flag = ASKED.get_or_init(Default::default);
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler does nothing but read a OnceLock that is set above and touch two
        // atomics, and calls `_exit`; all of that is allowed inside a signal handler.
        let before = unsafe { libc::signal(signal, handle as *const () as libc::sighandler_t) };
        if before == libc::SIG_ERR {
            bail!(
                "cannot watch for signal {signal}: {}",
                std::io::Error::last_os_error()
            );
        }
    }
    Ok(Stop::new(Arc::clone(flag)))
}

extern "C" fn handle(signal: libc::c_int) {
    // Only the first signal is kept: the exit code names what asked the program to stop, and not
    // what came later.
    let _ = SIGNAL.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    let asked_before = ASKED
        .get()
        .is_none_or(|flag| flag.swap(true, Ordering::SeqCst));
    if asked_before {
        // SAFETY: `_exit` runs no destructor and may be called anywhere.
        unsafe { libc::_exit(128 + signal) };
    }
}
