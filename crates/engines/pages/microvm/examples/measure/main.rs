//! Restores of one snapshot, measured: by this pager, with and without its working set; by a plain
//! pager, which maps the file and answers each fault with one copy; and by the kernel alone, which
//! maps the file privately into each clone.
//!
//! `cargo run --release -p dyno-pages-microvm --example measure -- [MIB] [ROUNDS]`
//!
//! The snapshot is made of what this machine has: libraries, sources, documents, the heap of an
//! interpreter; a third of it are zeros, and a tenth repeats other pages. Every clone is a process.
//! Each round measures every way once, so that a machine that is busy for a while is so for all.

mod part;
mod plain;
mod snapshot;

use std::fs;
use std::hint::black_box;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use dyno_pages::PAGE_BYTES;
use dyno_pages_hold::{Client, Holder, start};
use dyno_pages_microvm::stand_in::GuestMemory;
use dyno_pages_microvm::{Options, Pager, Snapshot};

use part::{Figures, Part};
use plain::{Mapped, plain};
use snapshot::{make_snapshot, shuffled};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Pages that a restore touches first.
const FIRST: usize = 1000;
/// Pages that the rate of faults is measured over.
const MANY: usize = 12_000;
const CLONES: usize = 20;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["holder", folder] => Ok(Holder::bind(&Path::new(folder).join("hold"))?.run()?),
        ["pager", folder, set] => pager(Path::new(folder), set == "set"),
        ["plain", folder] => plain(Path::new(folder)),
        ["clone", folder, way] => clone(Path::new(folder), way),
        [] => measure(256, 7),
        [mib, rounds] => measure(mib.parse()?, rounds.parse()?),
        _ => Err("measure [MIB ROUNDS]".into()),
    }
}

fn pager(folder: &Path, set: bool) -> Result<()> {
    let holder = Client::connect(&folder.join("hold"))?;
    let began = Instant::now();
    let snapshot = Snapshot::pack(&folder.join("memory"))?;
    let took = began.elapsed();
    let stats = snapshot.store().stats()?;
    let pager = Pager::start(
        snapshot,
        holder,
        Options {
            working_set: set.then(|| folder.join("working-set")),
            ..Options::new(folder.join("socket"))
        },
    )?;
    println!(
        "packed to {} and {} beside, {} pages shared, in {:.2} s",
        stats.resident_bytes,
        stats.beside_bytes,
        stats.shared,
        took.as_secs_f64()
    );
    for order in std::io::stdin().lines() {
        order?;
        println!("{}", pager.figures().prefetched);
    }
    Ok(())
}

/// Memory of a clone, by either way.
enum Memory {
    Handed {
        memory: GuestMemory,
        /// Its end tells the pager that the clone has ended.
        _connection: UnixStream,
    },
    Mapped(Mapped),
}

impl Memory {
    fn touch(&self, page: u64) {
        black_box(match self {
            Memory::Handed { memory, .. } => memory.touch(page),
            Memory::Mapped(mapped) => mapped.bytes()[page as usize * PAGE_BYTES],
        });
    }
}

/// A clone: restores when told, touches pages when told, and says how long that took.
fn clone(folder: &Path, way: &str) -> Result<()> {
    let pages = fs::metadata(folder.join("memory"))?.len() as usize / PAGE_BYTES;
    let mut memory = None;
    println!("ready");
    for order in std::io::stdin().lines() {
        let order = order?;
        let words: Vec<u64> = order
            .split(' ')
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        let [threads, count, seed] = words[..] else {
            return Err("threads, count and seed".into());
        };
        let touched = shuffled(pages, count as usize, seed);
        let began = Instant::now();
        if memory.is_none() {
            memory = Some(match way {
                "kernel" => Memory::Mapped(Mapped::open(&folder.join("memory"))?),
                _ => {
                    let memory = GuestMemory::map(&[pages as u64], true)?;
                    let _connection = memory.hand_over(&folder.join("socket"))?;
                    Memory::Handed {
                        memory,
                        _connection,
                    }
                }
            });
        }
        let memory = memory.as_ref().ok_or("memory")?;
        std::thread::scope(|scope| {
            for part in touched.chunks(touched.len().div_ceil(threads as usize)) {
                scope.spawn(move || part.iter().for_each(|&page| memory.touch(page)));
            }
        });
        println!("{}", began.elapsed().as_secs_f64());
    }
    Ok(())
}

/// The server of a way, and its holder.
struct Server {
    part: Option<Part>,
    holder: Option<Client>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.part = None;
        if let Some(holder) = &self.holder {
            // It may have ended by itself.
            let _ = holder.end();
        }
    }
}

fn serve(folder: &Path, way: &str, say: bool) -> Result<Server> {
    let _none_is_fine = fs::remove_file(folder.join("socket"));
    let text = folder.to_str().ok_or("a path")?;
    let mut server = Server {
        part: None,
        holder: None,
    };
    if let "dyno" | "dyno-set" = way {
        let mut holder = Command::new(std::env::current_exe()?);
        holder.args(["holder", text]);
        let wait = Duration::from_secs(10);
        server.holder = Some(start(holder, &folder.join("hold"), wait)?);
    }
    let arguments = match way {
        "dyno" => vec!["pager", text, "none"],
        "dyno-set" => vec!["pager", text, "set"],
        "plain" => vec!["plain", text],
        _ => return Ok(server),
    };
    let mut part = Part::start(&arguments)?;
    let said = part.heard()?;
    if say {
        println!("{way}: {said}");
    }
    server.part = Some(part);
    Ok(server)
}

const WAYS: [&str; 4] = ["dyno", "dyno-set", "plain", "kernel"];

fn measure(mib: usize, rounds: usize) -> Result<()> {
    let folder: PathBuf = std::env::temp_dir().join(format!("microvm-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let measured = measure_in(&folder, mib, rounds);
    fs::remove_dir_all(&folder)?;
    measured
}

fn measure_in(folder: &Path, mib: usize, rounds: usize) -> Result<()> {
    let pages = make_snapshot(&folder.join("memory"), mib)?;
    // Read once, so that the page cache has it for those ways that live on it.
    let bytes = fs::read(folder.join("memory"))?;
    println!("snapshot: {pages} pages, {} bytes", bytes.len());
    drop(bytes);
    let mut figures = Figures::default();
    for round in 0..rounds {
        for at in 0..WAYS.len() {
            let way = WAYS[(at + round) % WAYS.len()];
            one(folder, way, round, &mut figures)?;
        }
    }
    figures.print();
    Ok(())
}

/// Measures each figure of one way once.
fn one(folder: &Path, way: &str, round: usize, figures: &mut Figures) -> Result<()> {
    let _none_is_fine = fs::remove_file(folder.join("working-set"));
    let server = serve(folder, way, round == 0)?;
    let text = folder.to_str().ok_or("a path")?;
    let new = || -> Result<Part> {
        let mut clone = Part::start(&["clone", text, way])?;
        clone.heard()?;
        Ok(clone)
    };
    let seed = 1000 + round as u64;
    if way == "dyno-set" {
        // The first restore is recorded until it ends.
        new()?.told(&format!("1 {FIRST} {seed}"))?;
        while !folder.join("working-set").exists() {
            std::thread::yield_now();
        }
    }
    let first: f64 = new()?.told(&format!("1 {FIRST} {seed}"))?.parse()?;
    figures.add(way, "first 1,000 pages, ms", first * 1e3);
    let one: f64 = new()?.told(&format!("1 1 {seed}"))?.parse()?;
    figures.add(way, "restore and first page, ms", one * 1e3);
    for threads in [1, 4] {
        let mut clone = new()?;
        // Another seed, so that these are not the pages that were brought ahead.
        clone.told(&format!("1 1 {}", seed + 500))?;
        let before = server.part.as_ref().map(Part::cpu_s).transpose()?;
        let took: f64 = clone
            .told(&format!("{threads} {MANY} {}", seed + 700))?
            .parse()?;
        let name = format!("pages a second, {threads} threads");
        figures.add(way, &name, MANY as f64 / took);
        if let (Some(part), Some(before)) = (&server.part, before) {
            let name = format!("pager's CPU us a page, {threads} threads");
            figures.add(way, &name, (part.cpu_s()? - before) * 1e6 / MANY as f64);
        }
    }
    if way == "dyno-set" {
        return Ok(());
    }
    let pages = fs::metadata(folder.join("memory"))?.len() / PAGE_BYTES as u64;
    let mut clones = Vec::new();
    for at in 0..CLONES {
        let mut clone = new()?;
        clone.told(&format!("1 {} {}", pages / 10, seed + at as u64))?;
        clones.push(clone);
    }
    let clones_kib: u64 = clones.iter().map(Part::memory_kib).sum::<Result<u64>>()?;
    let server_kib = server.part.as_ref().map_or(Ok(0), Part::memory_kib)?;
    figures.add(
        way,
        "20 clones, MiB of their own",
        clones_kib as f64 / 1024.0,
    );
    figures.add(
        way,
        "20 clones, MiB of the pager",
        server_kib as f64 / 1024.0,
    );
    Ok(())
}
