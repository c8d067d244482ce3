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
use dyno_pages::{Codec, PAGE_BYTES, Page, Settings, Store};

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
        "set           n zram_fill_us store_fill_us of_zram | zram_w_us store_w_us  of_zram | zram_r_us net_us store_r_us  of_zram of_net batch_r_us | zram_B store_B  of_zram | zstd_B of_zram zstd_r_us"
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

fn one_set(name: &str, pages: &[Page], rounds: usize) -> Result<(), Box<dyn std::error::Error>> {
    let count = pages.len();
    let device = Zram::new(2 * count)?;
    let settings = Settings {
        writer: Codec::Page,
        ..Settings::new(count as u64, 2 * bytes(count))
    };
    let store = Store::create(settings)?;
    let mut lane = store.lane()?;
    let order = order(count, 5);
    let mut times: [Best; 8] = std::array::from_fn(|_| Best::new(count));
    let [
        zram_w,
        store_w,
        zram_r,
        store_r,
        batch_r,
        call,
        zram_fill,
        store_fill,
    ] = &mut times;
    let aligned = aligned_pages(SLICE);
    for round in 0..rounds {
        // The first round meets memory that nobody has touched, on both sides.
        let (zram_w, store_w) = if round == 0 {
            (&mut *zram_fill, &mut *store_fill)
        } else {
            (&mut *zram_w, &mut *store_w)
        };
        for (slice, chunk) in pages.chunks(SLICE).enumerate() {
            let from = slice * SLICE;
            let source = &mut aligned[..chunk.len()];
            source.copy_from_slice(chunk);
            zram_w.time(slice, || -> io::Result<()> {
                for (at, page) in source.iter().enumerate() {
                    device.file.write_all_at(page, bytes(from + at))?;
                }
                Ok(())
            })?;
            store_w.time(slice, || lane.write_many(from as u64, source))?;
        }
        for (slice, wanted) in order.chunks(SLICE).enumerate() {
            let into = &mut aligned[..wanted.len()];
            zram_r.time(slice, || -> io::Result<()> {
                for (page, into) in wanted.iter().zip(into.iter_mut()) {
                    device.file.read_exact_at(into, bytes(*page as usize))?;
                }
                Ok(())
            })?;
            compare(pages, wanted, into);
            into.iter_mut().for_each(|page| page.fill(1));
            store_r.time(slice, || {
                wanted
                    .iter()
                    .zip(into.iter_mut())
                    .try_for_each(|(page, into)| lane.read(*page, into))
            })?;
            compare(pages, wanted, into);
            into.iter_mut().for_each(|page| page.fill(1));
            batch_r.time(slice, || lane.read_many(wanted, into))?;
            compare(pages, wanted, into);
            call.time(slice, || -> io::Result<()> {
                for (page, into) in wanted.iter().zip(into.iter_mut()) {
                    device
                        .file
                        .read_exact_at(into, bytes(count + *page as usize))?;
                }
                Ok(())
            })?;
        }
    }
    let held = (device.held_bytes(count)?, store_bytes(&store)?);
    let packed = second_tier(&store, pages, &order)?;
    let [
        zram_w,
        store_w,
        zram_r,
        store_r,
        batch_r,
        call,
        zram_fill,
        store_fill,
    ] = times.map(|t| t.us(count));
    let net = zram_r - call;
    let of = |kernel: f64, ours: f64| kernel / ours;
    println!(
        "{name:10} {count:6} {zram_fill:6.2} {store_fill:6.2} {:5.2} | {zram_w:8.2} {store_w:8.2} {:8.2}  | {zram_r:8.2} {net:6.2} {store_r:8.2} {:8.2} {:6.2} {batch_r:8.2}   | {:6} {:6} {:6.3} | {:6} {:6.3} {:6.2}",
        of(zram_fill, store_fill),
        of(zram_w, store_w),
        of(zram_r, store_r),
        of(net, store_r),
        held.0 / count as u64,
        held.1 / count as u64,
        held.1 as f64 / held.0 as f64,
        packed.0 / count as u64,
        packed.0 as f64 / held.0 as f64,
        packed.1,
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
