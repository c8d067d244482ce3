//! The holder's second task: starting the daemon again when it has died.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dyno_pages_hold::{Client, detached};
use dyno_pages_ublk::hold_for_swap;
use dyno_random::backoff;
use tracing::{error, warn};

use super::daemon::MEMORY;
use super::device_options::DeviceOptions;
use super::store_dir::StoreDir;
use super::{control, device};

/// How often a daemon is started again within [`WITHIN`], whether it then served or not. After that
/// an operator must do it.
const MOST_STARTS: usize = 5;
const WITHIN: Duration = Duration::from_secs(600);
/// The first and the longest pause after a start that failed. What a daemon lacks, such as memory,
/// may be there again only after a while.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(16));
/// How long a daemon may take to answer.
pub const WAIT: Duration = Duration::from_secs(30);
/// How long to wait for another command on the same store.
const COMMAND_WAIT: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_millis(20);
/// Time between two checks for a daemon while there is none.
const PAUSE: Duration = Duration::from_millis(100);

/// What became of an attempt to start a daemon.
enum Restart {
    /// A command has ended the device, or has started a daemon.
    NotNeeded,
    Started(Child),
    /// It was started [`MOST_STARTS`] times within [`WITHIN`].
    TooOften,
}

/// Watches the daemon of the store in `store_dir` until its device has ended. `program` is the path
/// of this program, at which a later version may lie when a daemon is started.
pub fn watch(store_dir: &StoreDir, program: PathBuf) {
    let mut starts = VecDeque::new();
    let mut child: Option<Child> = None;
    let mut kept = false;
    let mut failures = 0;
    while store_dir.exists() {
        if store_dir.server().is_some() {
            // Asked only now, because a daemon that serves has its memory from this holder.
            if !kept {
                match keep_for_swap(store_dir) {
                    Ok(()) => kept = true,
                    Err(error) => warn!(
                        "the memory of {} may be swapped out while its daemon is away: {error:#}",
                        store_dir.name()
                    ),
                }
            }
            if let Err(error) = store_dir.wait_for_end() {
                error!(
                    "the daemon of {} is not watched: {error:#}",
                    store_dir.name()
                );
                return;
            }
        }
        // Waited for, so that a daemon that has ended does not stay as a zombie.
        let _ended = child.take().map(|mut ended| ended.wait());
        // Tried even if no daemon was seen, because it may have died before the first check.
        match restart(store_dir, &program, &mut starts) {
            Ok(Restart::NotNeeded) => {}
            Ok(Restart::Started(daemon)) => {
                failures = 0;
                child = Some(daemon);
            }
            Ok(Restart::TooOften) => {
                error!(
                    "the daemon of {} was started {MOST_STARTS} times within {WITHIN:?} and is not \
                     started any more; `dyno pages attach --name {0}` does it",
                    store_dir.name()
                );
                wait_for_operator(store_dir);
            }
            Err(error) => {
                // One failure must not end the service, because the program may just be being
                // replaced, or memory may be short for a moment.
                failures += 1;
                let pause = backoff(PAUSES.0, PAUSES.1, failures);
                warn!(
                    "starting the daemon of {} failed and is tried again in {pause:?}: {error:#}",
                    store_dir.name()
                );
                thread::sleep(pause);
            }
        }
        thread::sleep(PAUSE);
    }
}

/// If the store is a swap device's, keeps its memory in place from now on, also while no daemon
/// does. Otherwise the system could write it to the device that then has no server.
fn keep_for_swap(store_dir: &StoreDir) -> anyhow::Result<()> {
    let memory = {
        // Under the lock of the name, because a command or a daemon may have started this holder a
        // moment ago and may still be handing files over.
        let _lock = store_dir.lock(COMMAND_WAIT)?;
        Client::connect(&store_dir.hold())?.get(MEMORY)?
    };
    if DeviceOptions::parse(&memory.note)?.swap {
        hold_for_swap(&File::from(memory.file))?;
    }
    Ok(())
}

/// Waits until an operator has started a daemon, or the store is gone.
fn wait_for_operator(store_dir: &StoreDir) {
    while store_dir.server().is_none() && store_dir.exists() {
        thread::sleep(PAUSE);
    }
}

/// Starts the daemon again, unless a command has ended the device or started one meanwhile.
fn restart(
    store_dir: &StoreDir,
    program: &PathBuf,
    starts: &mut VecDeque<Instant>,
) -> anyhow::Result<Restart> {
    let _lock = store_dir.lock(COMMAND_WAIT)?;
    // Decided under the lock of the name: `detach` may be ending the device right now, and a daemon
    // that is started then would serve a device that is gone.
    if store_dir.server().is_some() || !device::is_left(store_dir)? {
        return Ok(Restart::NotNeeded);
    }
    let now = Instant::now();
    starts.retain(|start| now.duration_since(*start) < WITHIN);
    if starts.len() == MOST_STARTS {
        return Ok(Restart::TooOften);
    }
    starts.push_back(now);
    warn!(
        "the daemon of {} has died and is started again",
        store_dir.name()
    );
    start_daemon(program, store_dir, true).map(Restart::Started)
}

/// Starts the daemon, and waits until it answers. One that does not is ended again.
pub fn start_daemon(program: &PathBuf, store_dir: &StoreDir, again: bool) -> anyhow::Result<Child> {
    let mut command = Command::new(program);
    command.args(["pages", "device", "--name", &store_dir.name()]);
    if again {
        command.arg("--again");
    }
    let mut daemon = detached(&mut command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log(store_dir)?)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let answered = wait_for_answer(store_dir, &mut daemon);
    if let Err(error) = answered {
        // It may hang in a system call. The signal takes effect when that call returns.
        let _ = daemon.kill();
        return Err(error);
    }
    Ok(daemon)
}

fn wait_for_answer(store_dir: &StoreDir, daemon: &mut Child) -> anyhow::Result<()> {
    let until = Instant::now() + WAIT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            bail!(
                "the daemon of {} does not answer within {WAIT:?}",
                store_dir.name()
            );
        }
        if control::ask_within(&store_dir.control(), "about", left).is_ok() {
            return Ok(());
        }
        if let Some(status) = daemon.try_wait()? {
            let text = std::fs::read_to_string(store_dir.log()).unwrap_or_default();
            bail!("the daemon ended ({status}): {}", text.trim());
        }
        thread::sleep(TICK);
    }
}

/// Opens the file to which the processes of a device write their messages.
pub fn log(store_dir: &StoreDir) -> anyhow::Result<File> {
    let path = store_dir.log();
    let opened = File::options().create(true).append(true).open(&path);
    opened.with_context(|| format!("cannot write to {}", path.display()))
}
