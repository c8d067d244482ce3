//! A long run: threads write, read and discard pages that they know, while the background ages,
//! packs again, writes back and compacts. Memory and the slowest hundredth of calls must not grow.
//! How many pages lie in memory depends on how busy the machine is, since pages come of age by the
//! clock; so what is judged is the memory beside them.

use std::fs;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use dyno_random::Random;

use super::kills::file_without_name;
use super::{CheckError, Outcome, Plan, page_of};
use crate::PAGE_BYTES;
use crate::error::StoreError;
use crate::store::{Background, BackingFile, Handle, Schedule, Settings, Store, WriteBack};

/// Pages of the store: 128 MiB of them.
const PAGES: u64 = 32_768;
const THREADS: u64 = 2;
/// Slices of the whole time, each measured by itself.
const WINDOWS: u32 = 18;
/// Slices at the beginning that are not judged: the store fills, and its pages get old.
const WARM: usize = 3;
/// Windows shorter than this are too noisy to be judged.
const LEAST_JUDGED: Duration = Duration::from_secs(5);
/// Growth of memory from early windows to the last third that counts as a leak. What the background
/// is doing when a window ends makes less.
const MOST_MEMORY: f64 = 1.10;
/// Growth of the slowest hundredth that counts as a fault; neighbours on a machine make less.
const MOST_P99: f64 = 2.0;

/// The measurements of one slice of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Calls that all threads made in it.
    pub calls: u64,
    /// The time that one call in a hundred exceeds, in nanoseconds, rounded down to a sixteenth.
    pub p99_ns: u64,
    /// Bytes of the pages in memory at its end, as they are stored.
    pub page_bytes: u64,
    /// Memory of the store at its end, everything included.
    pub store_bytes: u64,
    /// Memory of the process at its end.
    pub resident_bytes: u64,
}

impl Window {
    /// Memory of the store for 1,000 bytes of its pages.
    pub fn store_per_thousand(&self) -> u64 {
        self.store_bytes * 1000 / self.page_bytes.max(1)
    }

    /// Memory of the process that does not belong to the store.
    pub fn beside_bytes(&self) -> u64 {
        self.resident_bytes.saturating_sub(self.store_bytes)
    }
}

/// The windows of a long run, and whether they can be judged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Soak {
    /// The windows, in the order of time.
    pub windows: Vec<Window>,
    /// Whether the windows were long enough to say that something grew.
    pub judged: bool,
}

impl Soak {
    /// Medians of early windows, without the warm-up, and of the last third.
    pub fn early_and_late(&self, of: impl Fn(&Window) -> u64) -> (u64, u64) {
        let late = self.windows.len() - self.windows.len().saturating_sub(WARM) / 3;
        let early = (WARM + late) / 2;
        let median = |windows: &[Window]| {
            let mut values: Vec<u64> = windows.iter().map(&of).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or(0)
        };
        let part = |from: usize, to: usize| self.windows.get(from..to).unwrap_or(&[]);
        (
            median(part(WARM, early)),
            median(part(late, self.windows.len())),
        )
    }

    fn judge(&self, broken: &mut Vec<String>) {
        let mut grown = |what: &str, (early, late): (u64, u64), most: f64| {
            if late as f64 > early as f64 * most {
                broken.push(format!("soak: {what} grew from {early} to {late}"));
            }
        };
        let store = self.early_and_late(Window::store_per_thousand);
        let what = "the store's memory for 1,000 bytes of pages, in bytes,";
        grown(what, store, MOST_MEMORY);
        let beside = self.early_and_late(Window::beside_bytes);
        let what = "the process's memory beside the store's, in bytes,";
        grown(what, beside, MOST_MEMORY);
        let p99 = self.early_and_late(|window| window.p99_ns);
        grown("p99 of calls, in nanoseconds,", p99, MOST_P99);
    }
}

/// Runs for `plan.soak`, or until `stop` returns true, and judges.
pub fn run(plan: &Plan, stop: &dyn Fn() -> bool, outcome: &mut Outcome) -> Result<(), CheckError> {
    let file = file_without_name()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let store = Arc::new(Store::create(Settings {
        share: plan.share,
        backing: Some(BackingFile {
            path: path.into(),
            pages: PAGES as u32,
        }),
        ..Settings::new(PAGES, PAGES * PAGE_BYTES as u64)
    })?);
    // The background ages pages four times in each window, so that some come of age in each.
    let schedule = Schedule {
        age_every: (plan.soak / (WINDOWS * 4)).min(Duration::from_secs(5)),
        cpu_share: 0.2,
        write_back: Some(WriteBack {
            packed: Some(3),
            raw: Some(2),
        }),
        ..Schedule::default()
    };
    let background = Background::start(Arc::clone(&store), schedule)?;
    let window = plan.soak / WINDOWS;
    let times = Times::default();
    let done = AtomicU64::new(0);
    let mut soak = Soak {
        judged: window >= LEAST_JUDGED,
        ..Soak::default()
    };
    let wrong = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (store, times, done) = (&store, &times, &done);
                let random = Random::new(plan.seed + number);
                scope.spawn(move || Thread::new(store, random, number)?.work(times, done))
            })
            .collect();
        let measured = measure(&store, &times, window, stop, &mut soak.windows);
        done.store(1, Relaxed);
        let mut wrong = Vec::new();
        for thread in threads {
            let found = thread.join().map_err(|_| CheckError::Panicked)?;
            wrong.extend(found?);
        }
        measured.map(|()| wrong)
    })?;
    outcome.broken.extend(wrong);
    background.stop()?;
    let bad = store.check()?;
    outcome
        .broken
        .extend(bad.into_iter().map(|bad| bad.error.to_string()));
    if soak.judged && soak.windows.len() == WINDOWS as usize {
        soak.judge(&mut outcome.broken);
    }
    outcome.soak = soak;
    Ok(())
}

fn measure(
    store: &Store,
    times: &Times,
    window: Duration,
    stop: &dyn Fn() -> bool,
    windows: &mut Vec<Window>,
) -> Result<(), CheckError> {
    let start = Instant::now();
    for number in 1..=WINDOWS {
        let until = start + window * number;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if stop() {
                return Ok(());
            }
            thread::sleep(left.min(Duration::from_millis(50)));
        }
        let (calls, p99_ns) = times.drain();
        let stats = store.stats()?;
        windows.push(Window {
            calls,
            p99_ns,
            page_bytes: stats.lz4.bytes + stats.zstd.bytes + stats.raw.bytes,
            store_bytes: stats.resident_bytes + stats.beside_bytes,
            resident_bytes: resident_bytes().ok_or_else(|| {
                CheckError::Job("/proc/self/statm does not say how much memory there is".into())
            })?,
        });
    }
    Ok(())
}

fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES as u64)
}

/// A thread with the pages that it alone writes, so that it knows what they must hold.
struct Thread<'a> {
    handle: Handle<'a>,
    random: Random,
    number: u64,
    /// The seed of each page; `None` for a page that must read as zeros.
    seeds: Vec<Option<u64>>,
}

impl<'a> Thread<'a> {
    fn new(store: &'a Store, random: Random, number: u64) -> Result<Self, StoreError> {
        Ok(Self {
            handle: store.handle()?,
            random,
            number,
            seeds: vec![None; (PAGES / THREADS) as usize],
        })
    }

    /// Works until it is told to end. Returns the first page that came back wrong, if any.
    fn work(mut self, times: &Times, done: &AtomicU64) -> Result<Vec<String>, StoreError> {
        let mut bytes = [0; PAGE_BYTES];
        while done.load(Relaxed) == 0 {
            // A tenth of the pages get nine tenths of the calls, so that the others come of age.
            let all = self.seeds.len() as u64;
            let among = if self.random.bits().is_multiple_of(10) {
                all
            } else {
                all / 10
            };
            let at = (self.random.bits() % among) as usize;
            let page = at as u64 * THREADS + self.number;
            match self.random.bits() % 100 {
                0..35 => {
                    let seed = self.random.bits();
                    let content = page_of(seed);
                    match times.one(|| self.handle.write(page, &content)) {
                        Ok(()) => self.seeds[at] = Some(seed),
                        Err(StoreError::NoSpace { .. }) => {}
                        Err(other) => return Err(other),
                    }
                }
                35..95 => {
                    times.one(|| self.handle.read(page, &mut bytes))?;
                    let wanted = self.seeds[at].map_or([0; PAGE_BYTES], page_of);
                    if bytes != wanted {
                        return Ok(vec![format!("soak: page {page} came back different")]);
                    }
                }
                _ => {
                    times.one(|| self.handle.discard(page))?;
                    self.seeds[at] = None;
                }
            }
        }
        Ok(Vec::new())
    }
}

/// A histogram of how long calls took: a bucket for each sixteenth of a power of two.
struct Times(Box<[AtomicU64]>);

impl Default for Times {
    fn default() -> Self {
        Self((0..64 * 16).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Times {
    fn one<T>(&self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = call();
        let ns = start.elapsed().as_nanos() as u64;
        self.0[bucket_of(ns)].fetch_add(1, Relaxed);
        result
    }

    /// The number of calls since the last time, and their p99; resets both.
    fn drain(&self) -> (u64, u64) {
        let counts: Vec<u64> = self.0.iter().map(|count| count.swap(0, Relaxed)).collect();
        let calls: u64 = counts.iter().sum();
        let mut slower = calls;
        let at = counts.iter().position(|count| {
            slower -= count;
            slower <= calls / 100
        });
        (calls, at.map_or(0, least_of))
    }
}

fn bucket_of(ns: u64) -> usize {
    match ns {
        0..16 => ns as usize,
        _ => {
            let power = ns.ilog2() as usize;
            power * 16 + (ns >> (power - 4)) as usize % 16
        }
    }
}

/// The shortest time that falls into a bucket.
fn least_of(bucket: usize) -> u64 {
    let (power, part) = (bucket / 16, bucket as u64 % 16);
    match power {
        0 => part,
        _ => (16 + part) << power.saturating_sub(4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_hundredth_is_told_to_a_sixteenth() {
        for ns in [1, 15, 16, 17, 1000, 123_456_789] {
            let least = least_of(bucket_of(ns));
            assert!(least <= ns && ns - least <= ns / 16, "{ns}: {least}");
        }
        let times = Times::default();
        for ns in 1..=1000u64 {
            times.0[bucket_of(ns * 100)].fetch_add(1, Relaxed);
        }
        let (calls, p99) = times.drain();
        assert_eq!(calls, 1000);
        assert!((92_000..=99_000).contains(&p99), "{p99}");
        assert_eq!(times.drain().0, 0, "counted once");
    }

    #[test]
    fn what_grows_is_said_and_what_does_not_is_not() {
        let flat = Window {
            calls: 1,
            p99_ns: 100,
            page_bytes: 900,
            store_bytes: 1000,
            resident_bytes: 2000,
        };
        let mut soak = Soak {
            windows: vec![flat; WINDOWS as usize],
            judged: true,
        };
        let mut broken = Vec::new();
        soak.judge(&mut broken);
        assert!(broken.is_empty(), "{broken:?}");
        // More pages in more memory is not growth.
        for (at, window) in soak.windows.iter_mut().enumerate() {
            window.page_bytes += 900 * at as u64;
            window.store_bytes += 1000 * at as u64;
            window.resident_bytes += 1000 * at as u64;
        }
        soak.judge(&mut broken);
        assert!(broken.is_empty(), "{broken:?}");
        soak.windows.fill(flat);
        for (at, window) in soak.windows.iter_mut().enumerate() {
            window.store_bytes += 20 * at as u64;
            window.resident_bytes += 60 * at as u64;
            window.p99_ns *= 1 + at as u64;
        }
        soak.judge(&mut broken);
        assert_eq!(broken.len(), 3, "{broken:?}");
        for (broken, what) in broken.iter().zip(["store's memory for", "beside", "p99"]) {
            assert!(broken.contains(what), "{broken}");
        }
    }
}
