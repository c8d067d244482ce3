//! What a touch of a page costs that is not in memory: a bare userfaultfd fault (a page of zeros put in
//! place by a thread, nothing else) beside a region's, for pages of text, of zeros and of noise, read
//! and written. What was read is compared, outside the time. Has `unsafe`: waiting for a descriptor.
//!
//! `cargo run --release -p dyno-pages-region --example faults [PAGES]`

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use dyno_pages::corpus::{Class, Corpus, Places};
use dyno_pages::{PAGE_BYTES, Settings, Store};
use dyno_pages_region::userfault::Userfault;
use dyno_pages_region::{LEAST_RESIDENT_PAGES, Region};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pages: usize = std::env::args()
        .nth(1)
        .map_or(Ok(50_000), |text| text.parse())?;
    println!("{pages} pages in random order, {LEAST_RESIDENT_PAGES} of a region in memory; us");
    println!("{:<34}{:>8}{:>8}{:>8}", "", "p50", "p99", "mean");
    bare(pages)?;
    for class in [Class::Zeros, Class::Source, Class::ElfText, Class::Random] {
        region(&Corpus::make(class, pages, 7, &Places::default())?, pages)?;
    }
    Ok(())
}

/// Places zeros for whoever touches, with no store behind it.
fn bare(pages: usize) -> Result<(), Box<dyn std::error::Error>> {
    // Memory without pages, of which a vector of zeros is made.
    let mut memory = vec![0u8; (pages + 1) * PAGE_BYTES];
    let start = memory
        .as_mut_ptr()
        .wrapping_add(memory.as_ptr().align_offset(PAGE_BYTES));
    let (faults, _) = Userfault::open()?;
    faults.register(start, pages * PAGE_BYTES)?;
    let done = AtomicBool::new(false);
    let zeros = [0; PAGE_BYTES];
    let from = start as usize - memory.as_ptr() as usize;
    let times = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut found = Vec::new();
            while !done.load(Ordering::Relaxed) {
                if wait(&faults) && faults.faults(&mut found).is_ok() {
                    for fault in found.drain(..) {
                        let page = fault.address as usize / PAGE_BYTES * PAGE_BYTES;
                        if faults.place(page as *mut u8, &zeros, false).is_err() {
                            std::process::abort();
                        }
                    }
                }
            }
        });
        let memory = &memory[from..from + pages * PAGE_BYTES];
        let times = touch(
            pages,
            |page| u64::from(memory[page * PAGE_BYTES]),
            |_, read| read == 0,
        );
        done.store(true, Ordering::Relaxed);
        times
    });
    say("bare fault, zeros placed", times);
    Ok(())
}

fn wait(faults: &Userfault) -> bool {
    use std::os::fd::AsRawFd;
    let mut one = libc::pollfd {
        fd: faults.file().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the structure lives through the call.
    unsafe { libc::poll(&raw mut one, 1, 10) > 0 }
}

fn region(corpus: &Corpus, pages: usize) -> Result<(), Box<dyn std::error::Error>> {
    let bytes = pages * PAGE_BYTES;
    let name = corpus.class().name();
    let store = Arc::new(Store::create(Settings::new(
        pages as u64,
        2 * bytes as u64,
    ))?);
    let mut lane = store.lane()?;
    let of = |page: usize| corpus.page(page % corpus.count());
    for page in 0..pages {
        lane.write(page as u64, of(page))?;
    }
    let mut region = Region::new(Arc::clone(&store), LEAST_RESIDENT_PAGES)?;
    let word =
        |page: &[u8], at: usize| u64::from_le_bytes(std::array::from_fn(|byte| page[at + byte]));
    let place = |page: usize| 8 * (page % 512);
    let read = touch(
        pages,
        |page| word(&region, page * PAGE_BYTES + place(page)),
        |page, read| read == word(of(page), place(page)),
    );
    say(&format!("region, read, {name}"), read);
    let write = touch(
        pages,
        |page| {
            region[page * PAGE_BYTES + 4000] ^= 1;
            0
        },
        |_, _| true,
    );
    say(&format!("region, written, {name}"), write);
    region.store_all()?;
    assert!(store.check()?.is_empty());
    Ok(())
}

/// Nanoseconds of each touch, the pages in random order.
fn touch(
    pages: usize,
    mut one: impl FnMut(usize) -> u64,
    right: impl Fn(usize, u64) -> bool,
) -> Vec<u64> {
    let mut order: Vec<usize> = (0..pages).collect();
    let mut state = 88_172_645_463_325_252u64;
    for at in (1..pages).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(at, (state % (at as u64 + 1)) as usize);
    }
    order
        .into_iter()
        .map(|page| {
            let began = Instant::now();
            let read = black_box(one(page));
            let time = began.elapsed().as_nanos() as u64;
            assert!(right(page, read), "page {page}");
            time
        })
        .collect()
}

fn say(what: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let us = |ns: u64| ns as f64 / 1000.0;
    let mean = times.iter().sum::<u64>() / times.len() as u64;
    let at = |share: usize| us(times[(times.len() - 1) * share / 100]);
    println!("{what:<34}{:>8.2}{:>8.2}{:>8.2}", at(50), at(99), us(mean));
}
