//! Children that end with this process, however it ends. Unsafe: a system call between fork and
//! exec.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// A command to start, and where the child goes.
struct Start {
    command: Command,
    started: Sender<io::Result<Child>>,
}

/// Starts a child to which the kernel sends `signal` when this process has ended, be it by a
/// SIGKILL.
///
/// The kernel means the thread that forked, not its process (prctl(2), `PR_SET_PDEATHSIG`), so a
/// child that a passing thread started would end with that thread. All such children are therefore
/// started by one thread that lives as long as the process.
pub(crate) fn spawn(mut command: Command, signal: libc::c_int) -> io::Result<Child> {
    let parent = std::process::id();
    let guard = move || {
        // A change of the user clears the setting, and the standard library changes it before it
        // calls us. SAFETY: two numbers are passed; both calls are allowed between fork and exec.
        let (answer, now) = unsafe {
            let signal = signal as libc::c_ulong;
            (libc::prctl(libc::PR_SET_PDEATHSIG, signal), libc::getppid())
        };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        // The parent may have ended before the call: then no signal comes any more.
        if u32::try_from(now) != Ok(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only; it neither allocates nor takes locks.
    unsafe { command.pre_exec(guard) };
    let (started, is_started) = channel();
    let lost = |_| io::Error::other("the thread that starts servers has ended");
    starter()?
        .send(Start { command, started })
        .map_err(|_| io::Error::other("the thread that starts servers has ended"))?;
    is_started.recv().map_err(lost)?
}

/// Where the one thread takes its work from. It is started with the first child.
fn starter() -> io::Result<Sender<Start>> {
    static STARTER: OnceLock<Mutex<Option<Sender<Start>>>> = OnceLock::new();
    let mut starter = STARTER
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(starter) = &*starter {
        return Ok(starter.clone());
    }
    let (starts, to_start) = channel::<Start>();
    thread::Builder::new()
        .name("pg-start".to_owned())
        .spawn(move || {
            for Start {
                mut command,
                started,
            } in to_start
            {
                // The caller waits for it; one that does not has ended together with its process.
                let _ = started.send(command.spawn());
            }
        })?;
    *starter = Some(starts.clone());
    Ok(starts)
}
