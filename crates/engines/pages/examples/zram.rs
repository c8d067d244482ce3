//! The store beside the kernel's zram with lz4, in one thread, on the same pages in turns.
//!
//! ```text
//! cargo run --release -p dyno-pages --example zram -- [pages of each class] [rounds]
//! ```
//!
//! Needs root and a kernel with zram; it adds a device of its own and removes it at the end. Both
//! sides get the same pages in the same order, page by page through direct I/O (zram) or calls (the
//! store); reads come in a random order after everything was written, and every page that is read is
//! compared. `net` is zram less what the same call takes for a page of the same device that was never
//! written: the system call and the block layer, which the store does without. Has `unsafe`: pages aligned as direct I/O wants them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dyno_pages::corpus::{Class, Corpus, Places};
use dyno_pages::{Lane, PAGE_BYTES, Page, Settings, Store, StoreError};

/// Pages timed together, so that the clock costs little.
const SLICE: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse::<usize>().ok());
    let pages = numbers.next().unwrap_or(8192);
    let rounds = numbers.next().unwrap_or(5);
    let mut sets: Vec<(String, Vec<Page>)> = Vec::new();
    let mut all = Vec::new();
    for class in Class::ALL {
        match Corpus::make(class, pages, 1, &Places::default()) {
            Ok(corpus) => {
                let facts = corpus.facts();
                println!(
                    "corpus {:10} {:6} pages, {:5} left out, entropy {:.2} bits, xxh3 {:032x}",
                    class.name(),
                    facts.count,
                    facts.left_out,
                    facts.entropy_bits,
                    facts.hash
                );
                if class.is_real() {
                    all.extend_from_slice(corpus.pages());
                }
                sets.push((class.name().to_owned(), corpus.pages().to_vec()));
            }
            Err(why) => println!("skipped: {}: {why}", class.name()),
        }
    }
    sets.push(("all-real".to_owned(), all));
    println!("load {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    println!(
        "us a page; of: zram's time by the store's, above 1 means that the store is faster; B a page"
    );
    println!(
        "set             n | fill: zram, store, of | write: zram, store, of | read: zram, store, of, zram net, of net, batch, of | B: zram, store, of | all idle packed: B, of zram, read us"
    );
    for (name, pages) in sets {
        one_set(&name, &shuffled(&pages), rounds)?;
    }
    println!("load {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    Ok(())
}

/// In a random order, so that a class's neighbours are not each other's.
fn shuffled(pages: &[Page]) -> Vec<Page> {
    order(pages.len(), 9)
        .into_iter()
        .map(|at| pages[at as usize])
        .collect()
}

fn order(len: usize, seed: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..len as u64).collect();
    let mut state = seed;
    for at in (1..len).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, (state >> 33) as usize % (at + 1));
    }
    order
}

/// Best time of each slice over the rounds, summed, in microseconds a page.
struct Best(Vec<Duration>);

impl Best {
    fn new(pages: usize) -> Self {
        Self(vec![Duration::MAX; pages.div_ceil(SLICE)])
    }

    fn time<T>(&mut self, slice: usize, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let out = call();
        self.0[slice] = self.0[slice].min(start.elapsed());
        out
    }

    fn us(&self, pages: usize) -> f64 {
        self.0.iter().sum::<Duration>().as_secs_f64() * 1e6 / pages as f64
    }
}

/// One set of pages on both sides.
struct Bench<'a> {
    pages: &'a [Page],
    device: &'a Zram,
    lane: Lane<'a>,
    /// Pages aligned as direct I/O wants them.
    slice: &'a mut [Page],
    zram_fill: Best,
    store_fill: Best,
    zram_write: Best,
    store_write: Best,
    zram_read: Best,
    store_read: Best,
    batch_read: Best,
    /// A page of the device that was never written: the call and the block layer.
    call: Best,
}

impl Bench<'_> {
    /// Writes all pages; who goes first changes from slice to slice and round to round.
    fn write(&mut self, round: usize) -> Result<(), StoreError> {
        for (number, chunk) in self.pages.chunks(SLICE).enumerate() {
            let from = number * SLICE;
            let source = &mut self.slice[..chunk.len()];
            source.copy_from_slice(chunk);
            // The first round meets memory that nobody has touched, on both sides.
            let (zram, store) = match round {
                0 => (&mut self.zram_fill, &mut self.store_fill),
                _ => (&mut self.zram_write, &mut self.store_write),
            };
            for turn in 0..2 {
                if (turn + number + round).is_multiple_of(2) {
                    zram.time(number, || self.device.write(from, source))
                        .expect("zram takes it");
                } else {
                    store.time(number, || self.lane.write_many(from as u64, source))?;
                }
            }
        }
        Ok(())
    }

    /// Reads all pages one by one, and compares them.
    fn read(&mut self, order: &[u64], round: usize) -> Result<(), StoreError> {
        for (number, wanted) in order.chunks(SLICE).enumerate() {
            let into = &mut self.slice[..wanted.len()];
            for turn in 0..2 {
                into.iter_mut().for_each(|page| page.fill(1));
                if (turn + number + round).is_multiple_of(2) {
                    let read = || self.device.read(wanted, 0, into);
                    self.zram_read.time(number, read).expect("zram gives it");
                } else {
                    let mut places = wanted.iter().zip(into.iter_mut());
                    let read = || places.try_for_each(|(page, into)| self.lane.read(*page, into));
                    self.store_read.time(number, read)?;
                }
                compare(self.pages, wanted, into);
            }
        }
        Ok(())
    }

    /// Reads all pages a slice at a time, in a pass of its own, so that no cache has them from the
    /// single reads; and the pages of the device that were never written.
    fn read_batches(&mut self, order: &[u64]) -> Result<(), StoreError> {
        let count = self.pages.len();
        for (number, wanted) in order.chunks(SLICE).enumerate() {
            let into = &mut self.slice[..wanted.len()];
            self.batch_read
                .time(number, || self.lane.read_many(wanted, into))?;
            compare(self.pages, wanted, into);
            self.call
                .time(number, || self.device.read(wanted, count, into))
                .expect("zeros");
        }
        Ok(())
    }
}

fn one_set(name: &str, pages: &[Page], rounds: usize) -> Result<(), Box<dyn std::error::Error>> {
    let count = pages.len();
    let device = Zram::new(2 * count)?;
    let store = Store::create(Settings::new(count as u64, 2 * bytes(count)))?;
    let best = || Best::new(count);
    let mut bench = Bench {
        pages,
        device: &device,
        lane: store.lane()?,
        slice: aligned_pages(SLICE),
        zram_fill: best(),
        store_fill: best(),
        zram_write: best(),
        store_write: best(),
        zram_read: best(),
        store_read: best(),
        batch_read: best(),
        call: best(),
    };
    let order = order(count, 5);
    for round in 0..rounds {
        bench.write(round)?;
        bench.read(&order, round)?;
        bench.read_batches(&order)?;
    }
    let us = |best: &Best| best.us(count);
    let side = |zram: f64, store: f64| format!("{zram:7.2} {store:7.2} {:5.2}", zram / store);
    let fill = side(us(&bench.zram_fill), us(&bench.store_fill));
    let write = side(us(&bench.zram_write), us(&bench.store_write));
    let (zram, ours, batch) = (
        us(&bench.zram_read),
        us(&bench.store_read),
        us(&bench.batch_read),
    );
    let net = zram - us(&bench.call);
    let held = device.held_bytes(count)? as f64;
    let first = store_bytes(&store)? as f64;
    let (second, second_us) = second_tier(&store, pages, &order)?;
    let each = |bytes: f64| bytes / count as f64;
    println!(
        "{name:10} {count:6} | {fill} | {write} | {} {net:7.2} {:5.2} {batch:7.2} {:5.2} | {:6.0} {:6.0} {:5.3} | {:6.0} {:5.3} {second_us:6.2}",
        side(zram, ours),
        net / ours,
        zram / batch,
        each(held),
        each(first),
        first / held,
        each(second as f64),
        second as f64 / held,
    );
    Ok(())
}

fn store_bytes(store: &Store) -> Result<u64, Box<dyn std::error::Error>> {
    let stats = store.stats()?;
    Ok(stats.resident_bytes
        + stats.beside_bytes * stats.span_bytes / (2 * bytes(store.pages() as usize)))
}

/// Every page idle and packed again: bytes held, and microseconds a random read.
fn second_tier(
    store: &Store,
    pages: &[Page],
    order: &[u64],
) -> Result<(u64, f64), Box<dyn std::error::Error>> {
    store.age();
    let endless = Duration::from_secs(1 << 30);
    store
        .recompressor()?
        .pass(0, 1, endless, || Duration::ZERO)?;
    store.compact(usize::MAX)?;
    let mut lane = store.lane()?;
    let mut into = vec![[0; PAGE_BYTES]; SLICE];
    let mut best = Best::new(order.len());
    for (slice, wanted) in order.chunks(SLICE).enumerate() {
        let into = &mut into[..wanted.len()];
        best.time(slice, || {
            wanted
                .iter()
                .zip(into.iter_mut())
                .try_for_each(|(page, into)| lane.read(*page, into))
        })?;
        compare(pages, wanted, into);
    }
    Ok((store_bytes(store)?, best.us(order.len())))
}

fn compare(pages: &[Page], wanted: &[u64], found: &[Page]) {
    for (page, found) in wanted.iter().zip(found) {
        assert!(
            pages[*page as usize] == *found,
            "page {page} came back different"
        );
    }
}

fn bytes(pages: usize) -> u64 {
    (pages * PAGE_BYTES) as u64
}

fn aligned_pages(count: usize) -> &'static mut [Page] {
    let whole = Box::leak(vec![0u8; (count + 1) * PAGE_BYTES].into_boxed_slice());
    let skip = whole.as_ptr().align_offset(PAGE_BYTES);
    &mut whole[skip..].as_chunks_mut().0[..count]
}

/// A device of our own.
struct Zram {
    number: u32,
    file: File,
}

impl Zram {
    fn new(pages: usize) -> io::Result<Self> {
        let number = std::fs::read_to_string("/sys/class/zram-control/hot_add")?;
        let number = number.trim().parse().map_err(io::Error::other)?;
        let set = |name: &str, value: &str| std::fs::write(Self::path(number, name), value);
        set("comp_algorithm", "lz4")?;
        set("disksize", &bytes(pages).to_string())?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_DIRECT)
            .open(format!("/dev/zram{number}"))?;
        Ok(Self { number, file })
    }

    fn write(&self, from: usize, pages: &[Page]) -> io::Result<()> {
        let mut numbered = (from..).zip(pages);
        numbered.try_for_each(|(at, page)| self.file.write_all_at(page, bytes(at)))
    }

    fn read(&self, wanted: &[u64], behind: usize, into: &mut [Page]) -> io::Result<()> {
        let mut places = wanted.iter().zip(into);
        places.try_for_each(|(page, into)| {
            self.file
                .read_exact_at(into, bytes(behind + *page as usize))
        })
    }

    fn path(number: u32, name: &str) -> PathBuf {
        PathBuf::from(format!("/sys/block/zram{number}/{name}"))
    }

    /// Memory that zram says it holds, and its table of 16 bytes a page, which it does not count.
    fn held_bytes(&self, pages: usize) -> io::Result<u64> {
        let text = std::fs::read_to_string(Self::path(self.number, "mm_stat"))?;
        let field = |at: usize| text.split_ascii_whitespace().nth(at)?.parse::<u64>().ok();
        let table = pages as u64 * 16;
        field(2)
            .map(|held| held + table)
            .ok_or_else(|| io::Error::other("mm_stat"))
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let _left_over_when_busy = std::fs::write(Self::path(self.number, "reset"), "1");
        let number = self.number;
        // Removed once this process, whose file is still open, is gone or has closed it.
        let _left_over_when_busy = std::process::Command::new("sh")
            .arg("-c")
            .arg(format!(
                "sleep 1; echo {number} > /sys/class/zram-control/hot_remove"
            ))
            .spawn();
    }
}
