//! Children that end with this process, however it ends. Has `unsafe`: a system call between fork
//! and exec.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use parking_lot::Mutex;

/// A command to start, and the channel for its child.
struct Start {
    command: Command,
    started: Sender<io::Result<Child>>,
}

/// Starts a child to which the kernel sends `signal` when this process ends, even by SIGKILL.
///
/// The kernel means the thread that forked, not its process (prctl(2), `PR_SET_PDEATHSIG`), so a
/// child that a passing thread started would end with that thread. All such children are therefore
/// started by one thread that lives as long as the process.
pub fn spawn(mut command: Command, signal: libc::c_int) -> io::Result<Child> {
    let parent = std::process::id();
    let guard = move || {
        // A change of user clears the setting, but the standard library changes it before it calls
        // us. SAFETY: two numbers are passed; both calls are allowed between fork and exec.
        let (answer, now) = unsafe {
            let signal = signal as libc::c_ulong;
            (libc::prctl(libc::PR_SET_PDEATHSIG, signal), libc::getppid())
        };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        // If the parent ended before the call, no signal will come any more.
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

/// The channel to the one thread that starts children. The thread starts with the first child.
fn starter() -> io::Result<Sender<Start>> {
    static STARTER: OnceLock<Mutex<Option<Sender<Start>>>> = OnceLock::new();
    let mut starter = STARTER.get_or_init(Mutex::default).lock();
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
                // The caller waits for the answer. One that no longer does has ended with its
                // process.
                let _ = started.send(command.spawn());
            }
        })?;
    *starter = Some(starts.clone());
    Ok(starts)
}
