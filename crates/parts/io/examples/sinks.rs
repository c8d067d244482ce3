//! What O_DIRECT brings and what io_uring brings, apart from each other.
//!
//! ```text
//! cargo run --release -p dyno-io --example sinks -- [DIRECTORY] [MIB] [ROUNDS]
//! ```
//!
//! Each way writes the same blocks of 1 MiB into a new file and syncs it. The ways take turns
//! within a round, so that what else the machine does falls on all of them, and in another order in
//! each round, since the page cache that one way leaves is memory that the next need not fetch from
//! a host. The figures are medians.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dyno_io::{
    Access, BlockFile, Caching, DirectSink, Durability, FileSink, Ring, Sink, UringSink,
};

const BLOCK_BYTES: usize = 1 << 20;

/// Name, page cache or not, and writes at once through io_uring (none: one pwrite after another).
const WAYS: [(&str, Caching, Option<usize>); 7] = [
    ("std", Caching::Cached, None),
    ("uring cached, depth 4", Caching::Cached, Some(4)),
    ("direct", Caching::Direct, None),
    ("uring, depth 1", Caching::Direct, Some(1)),
    ("uring, depth 2", Caching::Direct, Some(2)),
    ("uring, depth 4", Caching::Direct, Some(4)),
    ("uring, depth 16", Caching::Direct, Some(16)),
];

#[derive(Debug, Clone, Copy)]
struct Sample {
    wall_s: f64,
    user_s: f64,
    system_s: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let mib: usize = arguments.next().map_or(Ok(2048), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let mut samples = vec![Vec::new(); WAYS.len()];
    for round in 0..rounds {
        for turn in 0..WAYS.len() {
            // The number of ways is prime, so each step visits all.
            let way = (turn * (1 + round % (WAYS.len() - 1)) + round) % WAYS.len();
            samples[way].push(measure(&directory, mib, WAYS[way])?);
        }
    }
    println!(
        "{mib} MiB, blocks of 1 MiB, synced; medians of {rounds}, rate from lowest to highest"
    );
    println!(
        "{:<22} {:>7} {:>15} {:>7} {:>7}",
        "", "MB/s", "range", "user s", "sys s"
    );
    for (way, samples) in WAYS.iter().zip(&samples) {
        let rate = |wall_s: f64| (mib << 20) as f64 / 1e6 / wall_s;
        let walls = sorted(samples, |s| s.wall_s);
        let range = format!("{:.0} to {:.0}", rate(walls[rounds - 1]), rate(walls[0]));
        let middle = |of: fn(&Sample) -> f64| sorted(samples, of)[rounds / 2];
        println!(
            "{:<22} {:>7.0} {range:>15} {:>7.2} {:>7.2}",
            way.0,
            rate(middle(|s| s.wall_s)),
            middle(|s| s.user_s),
            middle(|s| s.system_s)
        );
    }
    Ok(())
}

fn sorted(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> Vec<f64> {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn measure(
    directory: &Path,
    mib: usize,
    (name, caching, depth): (&str, Caching, Option<usize>),
) -> Result<Sample, Box<dyn Error>> {
    let path = directory.join("sinks.data");
    let expected_bytes = Some((mib as u64) << 20);
    let file = BlockFile::open(&path, Access::Create, caching)
        .map_err(|error| format!("{name}: {error}"))?;
    let mut sink: Box<dyn Sink> = match (caching, depth) {
        (_, Some(depth)) => {
            let ring = Ring::new(file, depth)?;
            Box::new(UringSink::over(ring, BLOCK_BYTES, expected_bytes))
        }
        (Caching::Direct, None) => Box::new(DirectSink::over(
            Box::new(file),
            BLOCK_BYTES,
            expected_bytes,
        )),
        (Caching::Cached, None) => Box::new(FileSink::over(Box::new(file), BLOCK_BYTES)),
    };
    let block: Vec<u8> = (0..BLOCK_BYTES as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let (user_before, system_before) = processor_s()?;
    let started = Instant::now();
    for _ in 0..mib {
        sink.write(&block)?;
    }
    sink.finish(Durability::Stable)?;
    let wall_s = started.elapsed().as_secs_f64();
    let (user_after, system_after) = processor_s()?;
    drop(sink);
    std::fs::remove_file(&path)?;
    Ok(Sample {
        wall_s,
        user_s: user_after - user_before,
        system_s: system_after - system_before,
    })
}

/// User and system time of this process with the kernel's workers for it, in ticks of 10 ms.
fn processor_s() -> Result<(f64, f64), Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?.1;
    let mut fields = after_name.split_whitespace().skip(11);
    let mut seconds = || -> Result<f64, Box<dyn Error>> {
        let ticks: f64 = fields.next().ok_or("a short /proc/self/stat")?.parse()?;
        Ok(ticks / 100.0)
    };
    Ok((seconds()?, seconds()?))
}
