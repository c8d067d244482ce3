//! What the log adds to the disk: a loop of plain O_DIRECT and O_DSYNC writes to a file that was
//! written before, as the limit, and beside it the log at several batch sizes and depths, a stream
//! of records, and the reading back of all that.
//!
//! `cargo run --release -p dyno-txn-log --example append -- DIRECTORY [SECONDS_PER_ROW]`

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dyno_io::{
    Access, AlignedBuffer, BlockFile, Caching, Device, HostFiles, Meanwhile, Opening, Syncing,
    write_whole,
};
use dyno_txn_log::{FileLog, Options, Recovery, fresh_identity};

/// What the polling thread does while it waits: the kernel's own thread that ends an O_DSYNC write
/// may need the core that spins.
#[derive(Debug, Clone, Copy)]
enum Wait {
    Spin,
    Yield,
}

impl Wait {
    fn once(self) {
        match self {
            Self::Spin => std::hint::spin_loop(),
            Self::Yield => std::thread::yield_now(),
        }
    }
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const FILE_BYTES: u64 = 64 << 20;
const RECORD: [u8; 100] = [7; 100];

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("which directory?")?;
    let seconds = arguments.next().map_or(Ok(1.0), |given| given.parse())?;
    let span = Duration::from_secs_f64(seconds);
    let directory = Path::new(&directory).join(format!("append-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let measured = all(&directory, span);
    std::fs::remove_dir_all(&directory)?;
    measured
}

fn all(directory: &Path, span: Duration) -> Outcome<()> {
    println!("load {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    println!(
        "{:<44} {:>10} {:>9} {:>9} {:>12}",
        "what", "n", "p50 us", "p99 us", "per s"
    );
    for bytes in [4 << 10, 16 << 10, 64 << 10, 256 << 10] {
        plain(directory, bytes, true, span)?;
        plain(directory, bytes, false, span)?;
    }
    for wait in [Wait::Yield, Wait::Spin] {
        for depth in [1, 2, 4] {
            for batch in [1, 64, 512, 4096] {
                batches(&directory.join("batch"), depth, batch, wait, span)?;
            }
            stream(&directory.join("stream"), depth, wait, span)?;
        }
    }
    read_back(&directory.join("back"))?;
    println!("load {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    Ok(())
}

/// Writes of one size, each to the next place, or all to the same.
fn plain(directory: &Path, bytes: usize, onward: bool, span: Duration) -> Outcome<()> {
    let opening = Opening {
        access: Access::Create,
        caching: Caching::Direct,
        syncing: Syncing::EachWrite,
    };
    let file = BlockFile::open_with(&directory.join("plain"), opening)?;
    file.allocate(FILE_BYTES)?;
    let zeros = AlignedBuffer::zeroed(1 << 20);
    for at in (0..FILE_BYTES).step_by(1 << 20) {
        write_whole(&file, at, &zeros)?;
    }
    let block = AlignedBuffer::zeroed(bytes);
    let (mut at, mut took, begun) = (0, Vec::new(), Instant::now());
    while begun.elapsed() < span {
        let one = Instant::now();
        write_whole(&file, at, &block)?;
        took.push(one.elapsed());
        if onward {
            at = (at + bytes as u64) % FILE_BYTES;
        }
    }
    let way = if onward { "next place" } else { "same place" };
    row(
        &format!("pwrite {bytes} bytes, {way}"),
        &mut took,
        begun.elapsed(),
        1,
    );
    Ok(())
}

fn new_log(directory: &Path, depth: usize) -> Outcome<FileLog> {
    let options = Options {
        identity: fresh_identity(),
        depth,
        segments: 4,
        ..Options::default()
    };
    Ok(Recovery::open(Arc::new(HostFiles), directory, options)?
        .finish()?
        .0)
}

/// Nothing of the log is needed: each time a segment is full its records are forgotten.
fn forget(log: &mut FileLog) -> Outcome<()> {
    let durable = log.flush()?;
    Ok(log.checkpointer().begin()?.commit(durable)?)
}

/// Appends a batch, writes it, and spins until it is durable.
fn batches(directory: &Path, depth: usize, batch: u32, wait: Wait, span: Duration) -> Outcome<()> {
    let mut log = new_log(directory, depth)?;
    let (mut took, begun, mut forgotten) = (Vec::new(), Instant::now(), log.end());
    while begun.elapsed() < span {
        if log.end().0 - forgotten.0 > 2 * FILE_BYTES {
            forget(&mut log)?;
            forgotten = log.end();
        }
        let one = Instant::now();
        let mut end = log.end();
        for _ in 0..batch {
            end = log.append(&RECORD)?;
        }
        log.submit(Meanwhile::GoesOn)?;
        while log.poll()? < end {
            wait.once();
        }
        took.push(one.elapsed());
    }
    row(
        &format!("log, {wait:?}, depth {depth}, {batch} records"),
        &mut took,
        begun.elapsed(),
        batch,
    );
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

/// Appends without end; each record's time from append to durable, of every 64th.
fn stream(directory: &Path, depth: usize, wait: Wait, span: Duration) -> Outcome<()> {
    let mut log = new_log(directory, depth)?;
    let (mut took, begun, mut forgotten) = (Vec::new(), Instant::now(), log.end());
    let mut waiting = std::collections::VecDeque::new();
    let mut appended = 0u64;
    while begun.elapsed() < span {
        if log.end().0 - forgotten.0 > 2 * FILE_BYTES {
            forget(&mut log)?;
            forgotten = log.end();
        }
        // As a core does it: some requests, then a look at the log.
        for _ in 0..32 {
            match log.append(&RECORD) {
                Ok(end) => {
                    appended += 1;
                    if appended.is_multiple_of(64) {
                        waiting.push_back((end, Instant::now()));
                    }
                }
                Err(e) if e.is_passing() => {
                    wait.once();
                    break;
                }
                Err(e) => return Err(e.into()),
            }
        }
        log.submit(Meanwhile::GoesOn)?;
        let durable = log.poll()?;
        while let Some((_, since)) = waiting.pop_front_if(|(end, _)| *end <= durable) {
            took.push(since.elapsed());
        }
    }
    row(
        &format!("log, {wait:?}, depth {depth}, a stream"),
        &mut took,
        begun.elapsed(),
        64,
    );
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

/// Writes 1 GiB and recovers it.
fn read_back(directory: &Path) -> Outcome<()> {
    let mut log = new_log(directory, 2)?;
    let begin = log.end();
    let mut appended = 0u64;
    while log.end().0 - begin.0 < 1 << 30 {
        match log.append(&RECORD) {
            Ok(_) => appended += 1,
            Err(e) if e.is_passing() => {
                log.submit(Meanwhile::GoesOn)?;
                log.poll()?;
            }
            Err(e) => return Err(e.into()),
        }
    }
    log.flush()?;
    drop(log);
    let begun = Instant::now();
    let mut recovery = Recovery::open(Arc::new(HostFiles), directory, Options::default())?;
    let (mut records, mut sum) = (0u64, 0u64);
    while let Some(record) = recovery.next_record()? {
        records += 1;
        sum += u64::from(record.bytes[0]);
    }
    let took = begun.elapsed().as_secs_f64();
    let (_, found) = recovery.finish()?;
    assert_eq!((records, sum), (appended, appended * 7));
    let gib = found.read_bytes as f64 / f64::from(1 << 30);
    println!(
        "recovery: {records} records, {gib:.2} GiB in {took:.2} s, {:.2} GiB/s",
        gib / took
    );
    Ok(())
}

fn row(what: &str, took: &mut [Duration], whole: Duration, each: u32) {
    took.sort_unstable();
    let at = |share: f64| {
        let index = ((took.len() as f64 * share) as usize).min(took.len().saturating_sub(1));
        took.get(index).map_or(0.0, |t| t.as_secs_f64() * 1e6)
    };
    let rate = took.len() as f64 * f64::from(each) / whole.as_secs_f64();
    println!(
        "{what:<44} {:>10} {:>9.0} {:>9.0} {rate:>12.0}",
        took.len(),
        at(0.5),
        at(0.99)
    );
}
