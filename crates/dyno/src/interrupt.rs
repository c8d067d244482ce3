//! Turns Ctrl-C, a request to end and the loss of the terminal into a request to stop. This module
//! has `unsafe` code: it installs a signal handler.

use std::mem::MaybeUninit;
use std::ptr;
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

/// Makes SIGINT, SIGTERM and SIGHUP set the flag of the returned value. A second SIGINT or SIGTERM
/// ends the program at once, for a user who does not want to wait. If SIGHUP was ignored when the
/// program started, as under `nohup`, it stays ignored.
pub fn on_ctrl_c() -> anyhow::Result<Stop> {
    // Set before the first handler is installed, since a handler that ran without it would take the
    // first signal for the second.
    let flag = ASKED.get_or_init(Default::default);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SIGINT is watched for even if it is ignored, because shells without job control ignore it
        // for every command that they start in the background.
        if signal == libc::SIGHUP && is_ignored(signal) {
            continue;
        }
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

/// Whether this process ignores `signal`, such as one that it inherited from `nohup`.
fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call writes the present one to `action` and changes nothing.
    // If it fails, `action` keeps its zeros, which are a valid value: that of the default action.
    let action = unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

extern "C" fn handle(signal: libc::c_int) {
    // Only the first signal is kept: the exit code names what asked the program to stop, and not
    // what came later.
    let _ = SIGNAL.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    let asked_before = ASKED
        .get()
        .is_none_or(|flag| flag.swap(true, Ordering::SeqCst));
    // A lost terminal often sends SIGHUP twice: the shell sends one to its jobs, and when the shell
    // has ended, the kernel sends one to the foreground processes. The second does not mean that
    // a user is tired of waiting.
    if asked_before && signal != libc::SIGHUP {
        // SAFETY: `_exit` runs no destructor and may be called anywhere.
        unsafe { libc::_exit(128 + signal) };
    }
}
