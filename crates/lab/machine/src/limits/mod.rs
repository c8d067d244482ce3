//! What the machine can do: the ceilings that figures are held against.
//!
//! A limit is the better of our own code and an independent tool, so that a slow part of ours
//! cannot make an engine look close to it.

mod awake;
mod clock;
mod corpus;
mod disk;
mod fio;
mod fsync;
mod inflate;
mod loopback;
mod measured;
mod memory;
mod own_inflate;
mod random_read;
mod team;
mod tool;
mod wake;

use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_record::{Limit, Size};

use crate::error::MachineError;
use crate::facts::{cpu, memory as facts_memory};
use crate::root::Root;
pub(crate) use measured::{Measured, median};
pub use own_inflate::own_inflaters;

/// An inflater under test: takes a whole gzip file and returns how many bytes came out.
pub type Inflate = Box<dyn Fn(&[u8]) -> u64 + Send + Sync>;

/// Where limits are measured, how long, and with which code of ours.
pub struct LimitOptions<'a> {
    /// A directory on the disk that is to be measured; files made there are removed again.
    pub scratch: &'a Path,
    /// Tiny is for tests and measures nothing; quick takes about 25 s, full about 90 s.
    pub size: Size,
    /// Our own inflaters by name; the best one counts.
    pub inflaters: Vec<(&'a str, Inflate)>,
    /// The time that limits are stamped with, RFC 3339.
    pub now_utc: &'a dyn Fn() -> String,
    /// When this becomes true, the limits measured so far are returned.
    pub stop: Option<&'a AtomicBool>,
}

/// The limits, and what could not be measured.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// The measured limits, in the order in which reports show them.
    pub limits: Vec<Limit>,
    /// Name of a limit, or of an independent tool, and why it is missing.
    pub missing: Vec<(String, String)>,
}

/// How far the measuring has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitProgress<'a> {
    /// The limit that is measured next, by its stable name.
    pub name: &'a str,
    /// Limits that are measured or were given up.
    pub done: usize,
    /// Limits that there are; the same in each call.
    pub of: usize,
}

/// Everything that a measurement needs to know about the machine and the effort.
struct Setting<'a> {
    scratch: &'a Path,
    size: Size,
    threads: usize,
    last_level_cache_bytes: u64,
    memory_bytes: u64,
}

/// Repetitions of every limit; the median of five survives two that were disturbed.
pub(crate) const REPETITIONS: usize = 5;

impl Setting<'_> {
    /// How long one repetition runs.
    fn repetition(&self) -> Duration {
        match self.size {
            Size::Tiny => Duration::from_millis(1),
            Size::Quick => Duration::from_millis(150),
            Size::Full => Duration::from_millis(1_000),
        }
    }

    /// One of three numbers, by size.
    fn pick<T>(&self, tiny: T, quick: T, full: T) -> T {
        match self.size {
            Size::Tiny => tiny,
            Size::Quick => quick,
            Size::Full => full,
        }
    }
}

type Step<'a> = (&'static str, Box<dyn Fn(&Setting<'_>) -> Outcome + 'a>);
type Outcome = Result<Measured, MachineError>;

/// Measures every limit, one after the other, telling `progress` before each. A limit that cannot
/// be measured is named in [`Limits::missing`] with the reason, and the rest goes on.
pub fn limits(
    root: &Root,
    options: &LimitOptions<'_>,
    progress: &mut dyn FnMut(LimitProgress<'_>),
) -> Limits {
    let setting = Setting {
        scratch: options.scratch,
        size: options.size,
        threads: std::thread::available_parallelism().map_or(1, NonZero::get),
        last_level_cache_bytes: cpu::last_level_cache_bytes(root).unwrap_or(32 << 20),
        memory_bytes: facts_memory::available_bytes(root).unwrap_or(1 << 30),
    };
    let steps = steps(options, setting.threads);
    let mut found = Limits::default();
    for (done, (name, measure)) in steps.iter().enumerate() {
        if options
            .stop
            .is_some_and(|stop| stop.load(Ordering::Relaxed))
        {
            // Those that are left are named, because a limit that is silently absent reads like one
            // that does not apply to this machine.
            let left = steps[done..].iter().map(|step| step.0.to_owned());
            found
                .missing
                .extend(left.map(|name| (name, "stopped before it was measured".to_owned())));
            break;
        }
        progress(LimitProgress {
            name,
            done,
            of: steps.len(),
        });
        match measure(&setting) {
            Ok(measured) => {
                let tool = measured.tool_missing.clone();
                found
                    .missing
                    .extend(tool.map(|why| (format!("{name} by an independent tool"), why)));
                found
                    .limits
                    .push(measured.into_limit(name, (options.now_utc)()));
            }
            Err(error) => found.missing.push(((*name).to_owned(), error.to_string())),
        }
    }
    found
}

fn steps<'a>(options: &'a LimitOptions<'_>, threads: usize) -> Vec<Step<'a>> {
    use disk::Pattern;
    use loopback::{Family, Waiting};
    use memory::Array;
    let copy = |name, threads, array| -> Step<'a> {
        (
            name,
            Box::new(move |s| memory::copy(name, s, threads, array)),
        )
    };
    let scan = |name, threads, array| -> Step<'a> {
        (
            name,
            Box::new(move |s| memory::scan(name, s, threads, array)),
        )
    };
    vec![
        copy("copy-1", 1, Array::BeyondCaches),
        copy("copy-all", threads, Array::BeyondCaches),
        copy("copy-16mib-1", 1, Array::Mib(16)),
        scan("scan-1", 1, Array::BeyondCaches),
        scan("scan-all", threads, Array::BeyondCaches),
        scan("scan-16mib-1", 1, Array::Mib(16)),
        ("random-read", Box::new(random_read::random_read)),
        (
            "inflate-1",
            Box::new(|s| inflate::inflate(s, &options.inflaters)),
        ),
        (
            "disk-write-1mib",
            Box::new(|s| disk::disk(s, Pattern::WRITE_1MIB)),
        ),
        (
            "disk-read-1mib",
            Box::new(|s| disk::disk(s, Pattern::READ_1MIB)),
        ),
        (
            "disk-write-4k",
            Box::new(|s| disk::disk(s, Pattern::WRITE_4K)),
        ),
        (
            "disk-read-4k",
            Box::new(|s| disk::disk(s, Pattern::READ_4K)),
        ),
        ("fsync", Box::new(fsync::rate)),
        ("fsync-p50", Box::new(fsync::median_time)),
        (
            "loopback-tcp",
            Box::new(|s| loopback::round_trip(s, Family::Tcp, Waiting::Block)),
        ),
        (
            "loopback-tcp-spin",
            Box::new(|s| loopback::round_trip(s, Family::Tcp, Waiting::Spin)),
        ),
        (
            "loopback-unix",
            Box::new(|s| loopback::round_trip(s, Family::Unix, Waiting::Block)),
        ),
        (
            "loopback-unix-spin",
            Box::new(|s| loopback::round_trip(s, Family::Unix, Waiting::Spin)),
        ),
        ("thread-wake", Box::new(wake::thread_wake)),
        ("timer-cost", Box::new(clock::timer_cost)),
        ("timer-resolution", Box::new(clock::timer_resolution)),
    ]
}
