//! `pages-fault`: a touch of a page that is not in memory, beside a bare userfaultfd fault. Has
//! `unsafe`: waiting for a descriptor, and dropping pages.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use dyno_pages::{PAGE_BYTES, Settings, Store};
use dyno_pages_region::userfault::Userfault;
use dyno_pages_region::{LEAST_RESIDENT_PAGES, Region, RegionError};
use dyno_record::Answer;
use dyno_suite::protocol::{Phase, Reply, Request};

use super::passes::shuffled;
use super::source::Source;
use super::{PagesError, bytes_of, store};
use crate::quantiles::of_sorted;
use crate::{Params, RigError, Windows};

/// For `seconds`, pages of a region are touched in random order, by a read or a write, while the
/// fewest pages are in memory that a region can have; or, with `bare`, of memory whose faults a
/// thread answers with zeros and nothing else. What was read is compared outside the time.
pub(crate) fn fault(params: &mut Params<'_>, request: &Request) -> Result<Reply, RigError> {
    let touch = match params.text("touch")? {
        "read" => Touch::Read,
        "write" => Touch::Write,
        "bare" => Touch::Bare,
        other => {
            let text = format!("`{other}` is not one of read, write, bare");
            return Err(params.wrong("touch", text));
        }
    };
    let source = store::source(params)?;
    let seconds = params.seconds("seconds")?;
    let lasts = match request.phase {
        Phase::Verify => Duration::ZERO,
        _ => seconds,
    };
    let mut times = match touch {
        Touch::Bare => bare(source.count() as usize, lasts)?,
        Touch::Read | Touch::Write => region(&source, touch, lasts)?,
    };
    let windows = windows_of(&times, seconds);
    times.sort_unstable();
    let seconds: f64 = times.iter().map(|&ns| ns as f64 / 1e9).sum();
    let times_s: Vec<f64> = times.iter().map(|&ns| ns as f64 / 1e9).collect();
    let mut metrics: BTreeMap<String, f64> = of_sorted(&times_s).into_iter().collect();
    metrics.insert("throughput".to_string(), times.len() as f64 / seconds);
    let mut reply = Reply {
        answer: Some(Answer {
            // The number of touches depends on the time, so the answer counts pages.
            count: source.count(),
            checksum: "-".to_string(),
        }),
        metrics,
        facts: BTreeMap::new(),
        ..Reply::default()
    };
    windows.tell(&mut reply, 1.0);
    Ok(reply)
}

/// Counts touches by the sum of earlier touch times, because what lies between two touches is not
/// measured.
fn windows_of(times: &[u64], measured: Duration) -> Windows {
    let mut windows = Windows::over(measured);
    let mut at_ns = 0;
    for ns in times {
        at_ns += ns;
        windows.count(at_ns, 1);
    }
    windows
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touch {
    Read,
    Write,
    Bare,
}

fn failed(error: RegionError) -> PagesError {
    PagesError::Refused(error.to_string())
}

/// Nanoseconds of each touch, the pages in random order, again and again until all touches together
/// have lasted for so long, and each page was touched once at least.
fn touched(
    pages: usize,
    lasts: Duration,
    mut one: impl FnMut(usize) -> u64,
    mut again: impl FnMut() -> Result<(), PagesError>,
    right: impl Fn(usize, u64) -> bool,
) -> Result<Vec<u64>, PagesError> {
    let order = shuffled(pages, 3);
    let mut times = Vec::with_capacity(pages);
    let mut lasted = Duration::ZERO;
    loop {
        for page in &order {
            let page = *page as usize;
            // Only the touch is between the two readings of the clock. Their cost is in every time,
            // but it is small beside a fault.
            let start = Instant::now();
            let read = black_box(one(page));
            let took = start.elapsed();
            lasted += took;
            times.push(took.as_nanos() as u64);
            if !right(page, read) {
                return Err(PagesError::Wrong(format!(
                    "page {page} came back different"
                )));
            }
        }
        if lasted >= lasts {
            return Ok(times);
        }
        again()?;
    }
}

fn region(source: &Source, touch: Touch, lasts: Duration) -> Result<Vec<u64>, PagesError> {
    let pages = source.count();
    let store = Arc::new(Store::create(Settings::new(
        pages,
        bytes_of(pages) + (32 << 20),
    ))?);
    let mut handle = store.handle()?;
    let mut page = [0; PAGE_BYTES];
    // One word of each page, at an offset that differs from page to page.
    let place = |number: usize| 8 * (number % (PAGE_BYTES / 8));
    let mut words = Vec::with_capacity(pages as usize);
    for number in 0..pages {
        source.fill(number, &mut page);
        handle.write(number, &page)?;
        words.push(word(&page, place(number as usize)));
    }
    drop(handle);
    let mut region = Region::new(Arc::clone(&store), LEAST_RESIDENT_PAGES).map_err(failed)?;
    let count = pages as usize;
    let times = match touch {
        Touch::Write => touched(
            count,
            lasts,
            |number| {
                region[number * PAGE_BYTES + 4000] ^= 1;
                0
            },
            // As few pages as possible are in memory, so the first of the last round have been
            // evicted.
            || Ok(()),
            |_, _| true,
        )?,
        Touch::Read | Touch::Bare => touched(
            count,
            lasts,
            |number| word(&region, number * PAGE_BYTES + place(number)),
            || Ok(()),
            |number, read| read == words[number],
        )?,
    };
    // Dirty pages that are still in memory go back to the store first, so that the check sees every
    // page that was touched.
    region.store_all()?;
    match store.check()?.first() {
        None => Ok(times),
        Some(bad) => Err(PagesError::Wrong(bad.error.to_string())),
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

/// The baseline: a thread answers each fault with a page of zeros, with no store behind it.
fn bare(pages: usize, lasts: Duration) -> Result<Vec<u64>, PagesError> {
    // Memory that the kernel has not backed with pages yet, as a large vector of zeros is.
    let memory = vec![0u8; (pages + 1) * PAGE_BYTES];
    let from = memory.as_ptr().align_offset(PAGE_BYTES);
    let memory = &memory[from..from + pages * PAGE_BYTES];
    let (faults, _) = Userfault::open().map_err(failed)?;
    faults
        .register(memory.as_ptr().cast_mut(), memory.len())
        .map_err(failed)?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| answer(&faults, &done));
        let times = touched(
            pages,
            lasts,
            |page| u64::from(memory[page * PAGE_BYTES]),
            || forget(memory),
            |_, read| read == 0,
        );
        done.store(true, Relaxed);
        answering.join().map_err(|_| PagesError::Panicked)?;
        times
    })
}

/// Drops all pages, so that the next touch of each faults again.
fn forget(memory: &[u8]) -> Result<(), PagesError> {
    let start = memory.as_ptr().cast_mut().cast();
    // SAFETY: the pages lie within a vector that this program alone has, they hold zeros, and they
    // are answered with zeros when they are touched again: what is read of them does not change.
    match unsafe { libc::madvise(start, memory.len(), libc::MADV_DONTNEED) } {
        0 => Ok(()),
        _ => Err(PagesError::system(
            "madvise",
            std::io::Error::last_os_error(),
        )),
    }
}

fn answer(faults: &Userfault, done: &AtomicBool) {
    let zeros = [0; PAGE_BYTES];
    let mut found = Vec::new();
    while !done.load(Relaxed) {
        if !wait(faults) {
            continue;
        }
        let answered = faults.faults(&mut found).and_then(|()| {
            for fault in found.drain(..) {
                let page = fault.address as usize / PAGE_BYTES * PAGE_BYTES;
                faults.place(page as *mut u8, &zeros, false)?;
            }
            Ok(())
        });
        if let Err(error) = answered {
            // Without an answer the touching thread waits for ever, and only this thread can
            // answer.
            eprintln!("a fault was not answered: {error}");
            std::process::abort();
        }
    }
}

fn wait(faults: &Userfault) -> bool {
    let mut one = libc::pollfd {
        fd: faults.file().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the structure lives through the call.
    unsafe { libc::poll(&raw mut one, 1, 10) > 0 }
}
