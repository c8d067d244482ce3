//! Runs both commands in balanced blocks.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use dyno_machine::{ChildLimits, ChildRun, Exit, run_child};
use dyno_record::Arm;
use dyno_stats::BLOCKS_MIN;
use dyno_suite::{Slot, Stop, blocks};

use crate::AbError;
use crate::judge::half_width;

/// Standard output that is kept of a run; [`Plan::verify`] gets all of it.
const OUTPUT_BYTES_MAX: usize = 64 << 20;
/// Lines of standard error that a failure shows.
const LINES_MAX: usize = 5;
/// With [`Length::Precision`] no fewer blocks run, because an interval of very few blocks that
/// happens to be narrow would end the measurement too early.
const BLOCKS_BEFORE_PRECISION: usize = 10;

/// A command, and where it runs.
#[derive(Debug, Clone)]
pub struct Side {
    /// The text that `/bin/sh -c` runs.
    pub command: String,
    /// Its working directory; `None` for that of this process.
    pub dir: Option<PathBuf>,
}

/// How long to measure, which wall time alone decides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// This many blocks, whatever they show.
    Blocks(u32),
    /// Until the interval of the ratio of wall times is within this share on both sides, and at
    /// most so many blocks.
    Precision(f64, u32),
}

/// What to compare, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The command that the other is compared with.
    pub old: Side,
    /// The command in question, which may be slower.
    pub new: Side,
    /// Runs before each run, untimed and in the same directory.
    pub prepare: Option<String>,
    /// Runs after each run, untimed, with the run's standard output on its standard input. If it
    /// fails, the comparison ends.
    pub verify: Option<String>,
    /// How many blocks are run.
    pub length: Length,
    /// A run that takes longer is killed, and the comparison ends.
    pub time_limit: Duration,
    /// Draws the order of the runs in each pair of blocks.
    pub seed: u64,
}

/// What one run took, as the kernel and the clock saw it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Seconds from just before the start to the end.
    pub wall_s: f64,
    /// CPU seconds of the command and of all that it waited for; `None` where they are not known.
    pub cpu_s: Option<f64>,
    /// Highest resident memory of its processes together.
    pub peak_bytes: Option<u64>,
}

/// The three runs of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// The run of the old command.
    pub old: Run,
    /// The run of the new command.
    pub new: Run,
    /// The second run of the old command.
    pub control: Run,
}

/// What was measured, before it is judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Whole blocks only, in the order in which they ran.
    pub blocks: Vec<Block>,
    /// Whether both commands wrote the same to standard output in the untimed first run. `None` if
    /// an output was too long to keep.
    pub same_output: Option<bool>,
}

/// Runs each command once untimed, which warms caches and shows whether they work, and then the
/// blocks of the plan. Calls `progress` with the number of blocks done and the most there can be.
///
/// # Errors
/// [`AbError`], if a command fails or cannot be run, or if the user stops it before a verdict is
/// possible. Stopped later, the whole blocks until then are the result.
pub fn measure(
    plan: &Plan,
    stop: &Stop,
    progress: &mut dyn FnMut(usize, u32),
) -> Result<Measured, AbError> {
    let same_output = warm_up(plan, stop)?;
    let most = match plan.length {
        Length::Blocks(blocks) | Length::Precision(_, blocks) => blocks,
    };
    let mut done: Vec<Block> = Vec::new();
    for slots in blocks(plan.seed, "ab", 2, true, most) {
        match one_block(plan, &slots, stop)? {
            Some(block) => done.push(block),
            None if done.len() < BLOCKS_MIN => return Err(AbError::Stopped),
            None => break,
        }
        progress(done.len(), most);
        // Orders are balanced over two blocks, so the measurement ends only after an even number.
        if let Length::Precision(share, _) = plan.length
            && done.len() >= BLOCKS_BEFORE_PRECISION
            && done.len().is_multiple_of(2)
            && half_width(&done).is_some_and(|width| width <= share)
        {
            break;
        }
    }
    Ok(Measured {
        blocks: done,
        same_output,
    })
}

fn warm_up(plan: &Plan, stop: &Stop) -> Result<Option<bool>, AbError> {
    let mut outputs = Vec::new();
    for side in [&plan.old, &plan.new] {
        let child = run(plan, side, stop)?.ok_or(AbError::Stopped)?;
        outputs.push((child.stdout.dropped_bytes == 0).then_some(child.stdout.bytes));
    }
    Ok(match (&outputs[0], &outputs[1]) {
        (Some(old), Some(new)) => Some(old == new),
        _ => None,
    })
}

/// The runs of a block in its order; `None` if the user stopped it.
fn one_block(plan: &Plan, slots: &[Slot], stop: &Stop) -> Result<Option<Block>, AbError> {
    let (mut old, mut new, mut control) = (None, None, None);
    for slot in slots {
        let (side, place) = match (slot.system, slot.arm) {
            (0, Arm::Main) => (&plan.old, &mut old),
            (0, Arm::Control) => (&plan.old, &mut control),
            _ => (&plan.new, &mut new),
        };
        // A block that was cut short is dropped whole. Its first runs would be paired with nothing,
        // or stand for another state of the machine.
        let Some(child) = run(plan, side, stop)? else {
            return Ok(None);
        };
        let usage = &child.usage;
        *place = Some(Run {
            wall_s: child.wall_s,
            cpu_s: usage.user_s.zip(usage.system_s).map(|(u, s)| u + s),
            peak_bytes: usage.peak_rss_bytes,
        });
    }
    let block = old.zip(new).zip(control);
    Ok(block.map(|((old, new), control)| Block { old, new, control }))
}

/// One run with what goes before and after it; `None` if the user stopped it.
fn run(plan: &Plan, side: &Side, stop: &Stop) -> Result<Option<ChildRun>, AbError> {
    if let Some(command) = &plan.prepare
        && shell(plan, side, command, &[], stop)?.is_none()
    {
        return Ok(None);
    }
    let Some(child) = shell(plan, side, &side.command, &[], stop)? else {
        return Ok(None);
    };
    if let Some(command) = &plan.verify {
        // Checking the beginning of an output would pass a command that fails at its end.
        if child.stdout.dropped_bytes > 0 {
            return Err(AbError::Output {
                command: side.command.clone(),
                limit_bytes: OUTPUT_BYTES_MAX,
            });
        }
        if shell(plan, side, command, &child.stdout.bytes, stop)?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(child))
}

/// Runs a command of the plan to its end; `None` if the user stopped it.
fn shell(
    plan: &Plan,
    side: &Side,
    text: &str,
    stdin: &[u8],
    stop: &Stop,
) -> Result<Option<ChildRun>, AbError> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(text);
    if let Some(dir) = &side.dir {
        command.current_dir(dir);
    }
    let limits = ChildLimits {
        stop: Some(stop.flag()),
        stdout_bytes_max: OUTPUT_BYTES_MAX,
        ..ChildLimits::time(plan.time_limit)
    };
    let child = run_child(command, stdin, limits)?;
    // A stop kills the child, which then ends by a signal. That is the user's wish and not a
    // failure of the command, so it is looked at first.
    let how = match child.exit {
        _ if child.stopped => return Ok(None),
        _ if child.hung => format!("took longer than {} s", plan.time_limit.as_secs_f64()),
        Exit::Code(0) => return Ok(Some(child)),
        Exit::Code(code) => format!("exited with {code}"),
        Exit::Signal(signal) => format!("was killed by signal {signal}"),
    };
    let stderr = child.stderr.text();
    let lines: Vec<&str> = stderr.trim_end().lines().rev().take(LINES_MAX).collect();
    let stderr_end = lines.iter().rev().map(|line| format!("\n{line}")).collect();
    Err(AbError::Command {
        command: text.to_owned(),
        how,
        stderr_end,
    })
}
