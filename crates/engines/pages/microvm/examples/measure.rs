//! Restores of one snapshot, measured: by this pager, with and without its working set; by a plain
//! pager, which maps the file and answers each fault with one copy; and by the kernel alone, which
//! maps the file privately into each clone. Has `unsafe`: mapped files.
//!
//! `cargo run --release -p dyno-pages-microvm --example measure -- [MIB] [ROUNDS]`
//!
//! The snapshot is made of what this machine has: libraries, sources, documents, the heap of an
//! interpreter; a third of it are zeros, and a tenth repeats other pages. Every clone is a process.
//! Each round measures every way once, so that a machine that is busy for a while is so for all.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use dyno_pages::PAGE_BYTES;
use dyno_pages::corpus::{Class, Corpus, Places};
use dyno_pages_hold::{Client, Holder, receive_part, start};
use dyno_pages_microvm::stand_in::GuestMemory;
use dyno_pages_microvm::{Layout, Options, Pager, Snapshot};
use dyno_pages_region::userfault::{Event, Userfault};

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

/// A process of this program in another part.
struct Part {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Part {
    fn start(arguments: &[&str]) -> Result<Part> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = child.stdin.take().ok_or("a pipe")?;
        let answers = BufReader::new(child.stdout.take().ok_or("a pipe")?);
        Ok(Part {
            child,
            orders,
            answers,
        })
    }

    fn heard(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Err("a part has ended".into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    fn told(&mut self, order: &str) -> Result<String> {
        writeln!(self.orders, "{order}")?;
        self.heard()
    }

    /// Private and proportional memory in KiB, page tables included.
    fn memory_kib(&self) -> Result<u64> {
        let id = self.child.id();
        let field = |text: &str, name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            number.unwrap_or(0)
        };
        let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup"))?;
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        Ok(field(&rollup, "Pss:") + field(&status, "VmPTE:"))
    }

    /// Processor time so far, in seconds.
    fn cpu_s(&self) -> Result<f64> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()))?;
        let mut sum_ns = 0.0;
        for thread in threads.flatten() {
            let text = fs::read_to_string(thread.path().join("schedstat"))?;
            let first = text.split(' ').next().unwrap_or_default();
            sum_ns += first.parse::<f64>()?;
        }
        Ok(sum_ns / 1e9)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes the snapshot file, and returns how many pages it has.
fn make_snapshot(path: &Path, mib: usize) -> Result<usize> {
    let pages = mib * 256;
    let real = pages * 57 / 100;
    let classes = [
        (Class::ElfText, 30),
        (Class::ElfData, 20),
        (Class::Heap, 30),
        (Class::Source, 10),
        (Class::Documents, 10),
    ];
    let mut kinds = Vec::new();
    for (class, percent) in classes {
        let corpus = Corpus::make(class, real * percent / 100, 1, &Places::default())?;
        kinds.push(corpus);
    }
    let mut file = std::io::BufWriter::new(File::create(path)?);
    let mut at = vec![0; kinds.len()];
    let mut number = 0;
    // Runs of one kind, as memory has them; where a kind is used up, its pages come again.
    let mut draws = Draws(7);
    while number < pages {
        let run = (1 + draws.below(64)).min(pages - number);
        match draws.below(100) {
            0..33 => file.write_all(&vec![0; run * PAGE_BYTES])?,
            share => {
                let kind = share % kinds.len();
                let repeat = draws.below(100) < 15;
                for _ in 0..run {
                    let corpus = &kinds[kind];
                    let page = match repeat {
                        true => draws.below(corpus.count()),
                        false => at[kind] % corpus.count(),
                    };
                    at[kind] += usize::from(!repeat);
                    file.write_all(corpus.page(page))?;
                }
            }
        }
        number += run;
    }
    file.into_inner()?.sync_all()?;
    Ok(pages)
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Distinct pages in random order, the same for the same seed.
fn shuffled(pages: usize, count: usize, seed: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..pages as u64).collect();
    let mut draws = Draws(seed | 1);
    for at in 0..count {
        let other = at + draws.below(pages - at);
        all.swap(at, other);
    }
    all.truncate(count);
    all
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

/// A mapped file, read-only and as the page cache has it.
struct Mapped {
    at: *mut libc::c_void,
    bytes: usize,
}

impl Mapped {
    fn open(path: &Path) -> Result<Mapped> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len() as usize;
        // SAFETY: a new mapping wherever the system likes.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        match at {
            libc::MAP_FAILED => Err(std::io::Error::last_os_error().into()),
            at => Ok(Mapped { at, bytes }),
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self`; nothing writes to it.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.bytes) }
    }
}

// SAFETY: it is only read.
unsafe impl Sync for Mapped {}
// SAFETY: see above.
unsafe impl Send for Mapped {}

/// The plain pager: no store, no holder, one copy for each fault.
fn plain(folder: &Path) -> Result<()> {
    let mapped = Mapped::open(&folder.join("memory"))?;
    let listener = UnixListener::bind(folder.join("socket"))?;
    println!("listening");
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            let (stream, mapped) = (stream?, &mapped);
            // The end of a clone ends its thread, by an error of whatever it was about to do.
            scope.spawn(move || plain_clone(&stream, mapped).map_err(|error| error.to_string()));
        }
        Ok(())
    })
}

fn plain_clone(stream: &UnixStream, mapped: &Mapped) -> Result<()> {
    let mut message = vec![0; 65_536];
    let (bytes, descriptor) = receive_part(stream, &mut message)?;
    let layout = Layout::parse(&message[..bytes], mapped.bytes as u64)?.ok_or("cut")?;
    let faults = Userfault::adopt(descriptor.ok_or("no descriptor")?)?;
    let mut events = Vec::new();
    loop {
        let mut files = [faults.file().as_raw_fd(), stream.as_raw_fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: the structures live through the call.
        unsafe { libc::poll(files.as_mut_ptr(), 2, -1) };
        if files[1].revents != 0 {
            return Ok(());
        }
        faults.events(&mut events)?;
        for event in events.drain(..) {
            if let Event::Fault(fault) = event {
                let address = fault.address & !4095;
                let page = layout.page_at(address).ok_or("elsewhere")? as usize;
                let from = page * PAGE_BYTES;
                faults.copy(address, &mapped.bytes()[from..from + PAGE_BYTES])?;
            }
        }
    }
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

/// Figures of all rounds, by name.
#[derive(Default)]
struct Figures(BTreeMap<String, Vec<f64>>);

impl Figures {
    fn add(&mut self, way: &str, what: &str, value: f64) {
        let name = format!("{what:<34} {way}");
        self.0.entry(name).or_default().push(value);
    }

    fn print(&mut self) {
        println!("| figure | way | n | median | least | most |\n|---|---|---|---|---|---|");
        for (name, values) in &mut self.0 {
            values.sort_by(f64::total_cmp);
            let (what, way) = name.split_at(34);
            println!(
                "| {} | {} | {} | {:.2} | {:.2} | {:.2} |",
                what.trim(),
                way.trim(),
                values.len(),
                values[values.len() / 2],
                values[0],
                values[values.len() - 1]
            );
        }
    }
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

/// Measures a way once.
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
