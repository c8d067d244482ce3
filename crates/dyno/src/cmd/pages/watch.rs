//! What a holder does beside holding: it starts the daemon again when that has died.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dyno_pages_hold::detached;

use super::place::Place;
use super::{control, device};

/// A daemon that dies so often within so long is left to an operator.
const MOST_STARTS: usize = 5;
const WITHIN: Duration = Duration::from_secs(600);
/// How long a daemon may take to answer.
pub const WAIT: Duration = Duration::from_secs(30);
/// How long a command may be at work on the same store.
const COMMAND_WAIT: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_millis(20);
/// Between two looks whether there is a daemon, as long as there is none.
const PAUSE: Duration = Duration::from_millis(100);

/// Watches over the daemon of `place` until its device has ended. `program` is this one's file,
/// which may have been replaced by a later version when it is needed.
pub fn watch(place: &Place, program: PathBuf) {
    let mut starts = VecDeque::new();
    let mut child = None;
    while place.exists() {
        if place.server().is_some()
            && let Err(error) = place.wait_for_end()
        {
            eprintln!(
                "dyno: the daemon of {} is not watched: {error:#}",
                place.name()
            );
            return;
        }
        // So that a daemon that has ended is not kept as a dead process.
        let _ended = child.as_mut().map(Child::wait);
        // Also when no daemon was seen here: it may have died before the first look.
        match restart(place, &program, &mut starts) {
            Ok(started) => child = started,
            Err(error) => {
                eprintln!("dyno: {error:#}");
                wait_for_operator(place);
            }
        }
        thread::sleep(PAUSE);
    }
}

/// Waits until a daemon was started by hand, or the store is gone.
fn wait_for_operator(place: &Place) {
    while place.server().is_none() && place.exists() {
        thread::sleep(PAUSE);
    }
}

/// Starts the daemon again, unless a command has ended the device or started one meanwhile.
fn restart(
    place: &Place,
    program: &PathBuf,
    starts: &mut VecDeque<Instant>,
) -> anyhow::Result<Option<Child>> {
    let _lock = place.lock(COMMAND_WAIT)?;
    if place.server().is_some() || !device::is_left(place)? {
        return Ok(None);
    }
    let now = Instant::now();
    starts.retain(|start| now.duration_since(*start) < WITHIN);
    if starts.len() == MOST_STARTS {
        bail!(
            "the daemon of {} died {MOST_STARTS} times within {WITHIN:?} and is not started any more; \
             `dyno pages attach --name {0}` does it",
            place.name()
        );
    }
    starts.push_back(now);
    eprintln!(
        "dyno: the daemon of {} has died and is started again",
        place.name()
    );
    start_daemon(program, place, true).map(Some)
}

/// Starts the daemon, and waits until it answers. One that does not is ended again.
pub fn start_daemon(program: &PathBuf, place: &Place, again: bool) -> anyhow::Result<Child> {
    let mut command = Command::new(program);
    command.args(["pages", "device", "--name", &place.name()]);
    if again {
        command.arg("--again");
    }
    let mut daemon = detached(&mut command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log(place)?)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let answered = wait_for_answer(place, &mut daemon);
    if let Err(error) = answered {
        // It may be stuck in the system; killed it goes when that lets it.
        let _ = daemon.kill();
        return Err(error);
    }
    Ok(daemon)
}

fn wait_for_answer(place: &Place, daemon: &mut Child) -> anyhow::Result<()> {
    let until = Instant::now() + WAIT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            bail!(
                "the daemon of {} does not answer within {WAIT:?}",
                place.name()
            );
        }
        if control::ask_within(&place.control(), "about", left).is_ok() {
            return Ok(());
        }
        if let Some(status) = daemon.try_wait()? {
            let said = std::fs::read_to_string(place.log()).unwrap_or_default();
            bail!("the daemon ended ({status}): {}", said.trim());
        }
        thread::sleep(TICK);
    }
}

/// Where the processes of a device say what goes wrong.
pub fn log(place: &Place) -> anyhow::Result<File> {
    let path = place.log();
    let opened = File::options().create(true).append(true).open(&path);
    opened.with_context(|| format!("cannot write to {}", path.display()))
}
