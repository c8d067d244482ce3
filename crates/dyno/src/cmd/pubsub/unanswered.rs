//! Ends a client's command that should stop while it waits for a server's answer.

use std::thread;
use std::time::Duration;

use anyhow::Context;
use dyno_suite::Stop;

use crate::exit::Exit;
use crate::interrupt;

/// Time between two checks for a request to stop.
const TICK: Duration = Duration::from_millis(50);
/// How long a command may take to finish what it has begun: to send the lines that it has read, to
/// store its cursors.
const GRACE: Duration = Duration::from_secs(3);

/// Ends the process when a stop was asked for and the command has not come to its end within
/// [`GRACE`]. A request waits up to 90 s for its answer, and nothing that the command holds is
/// worth that wait: a producer that is resumed sends again what was not acknowledged, and a group
/// reads again what was not committed.
pub fn end_when_stopped(stop: &Stop) -> anyhow::Result<()> {
    let stop = stop.clone();
    thread::Builder::new()
        .name("unanswered".to_owned())
        .spawn(move || {
            while !stop.asked() {
                thread::sleep(TICK);
            }
            thread::sleep(GRACE);
            eprintln!(
                "dyno: stopped before it was done; what was not acknowledged may have been done all the same"
            );
            // The signal is noted before the stop is asked for, so it is there.
            let ended = interrupt::signal().map_or(Exit::Failure, Exit::Stopped);
            std::process::exit(ended.code());
        })
        .context("cannot start a thread")?;
    Ok(())
}
