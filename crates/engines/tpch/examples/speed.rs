//! How fast one core fills batches, and what the text pool costs:
//!
//! ```text
//! cargo run --release -p dyno-tpch --example speed -- 1
//! ```
//!
//! Times are processor time of the thread (Linux: /proc/thread-self/schedstat), the median of several
//! rounds. "Equivalent TBL" is the size of the text that dbgen would print for the same rows.

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::time::Instant;

use dyno_tpch::{Batch, Generator, Scale, Table, TextPool, Values, tbl};

const ROUNDS: usize = 5;
const UNITS_AT_ONCE: u64 = 2048;

fn main() -> Result<(), Box<dyn Error>> {
    let scale = std::env::args().nth(1).unwrap_or("1".to_owned()).parse()?;
    let generator = Generator::new(Scale::new(scale)?);
    let begin = cpu_ns()?;
    let pool = TextPool::build(1);
    println!(
        "text pool, 1 thread: {:.3} CPU-s",
        (cpu_ns()? - begin) as f64 / 1e9
    );
    drop(pool);
    let begin = Instant::now();
    let pool = TextPool::shared();
    println!(
        "text pool, all cores: {:.3} s wall",
        begin.elapsed().as_secs_f64()
    );
    println!(
        "{:10} {:>12} {:>10} {:>10} {:>16}",
        "", "rows", "M rows/s", "GB/s TBL", "and comments, M/s"
    );
    for table in Table::ALL {
        let bytes = generator.rows(table) as f64 * bytes_per_row(&generator, table)?;
        let plain = median(|| fill(&generator, table, |_| {}))?;
        let mut text = Vec::new();
        let copied = median(|| fill(&generator, table, |batch| copy(batch, pool, &mut text)))?;
        let rows = generator.rows(table) as f64;
        println!(
            "{:10} {rows:>12} {:>10.1} {:>10.2} {:>16.1}",
            table.name(),
            rows * 1e3 / plain,
            bytes / plain,
            rows * 1e3 / copied
        );
    }
    Ok(())
}

fn fill(
    generator: &Generator,
    table: Table,
    mut then: impl FnMut(&Batch),
) -> Result<(), Box<dyn Error>> {
    let mut batch = Batch::new(table);
    let units = generator.scale().units(table);
    let mut first = 0;
    while first < units {
        let end = units.min(first + UNITS_AT_ONCE);
        generator.fill(&mut batch, first..end)?;
        then(black_box(&batch));
        first = end;
    }
    Ok(())
}

/// Copies the comments one after the other, each by moves of 32 bytes, as a writer would.
fn copy(batch: &Batch, pool: &TextPool, out: &mut Vec<u8>) {
    let Values::Passages(passages) = batch.values(batch.table().columns().len() - 1) else {
        return;
    };
    let space: usize = passages
        .lengths
        .iter()
        .map(|&length| usize::from(length))
        .sum();
    if out.len() < space + 256 {
        out.resize(space + 256, 0);
    }
    let mut at = 0;
    for (&offset, &length) in passages.offsets.iter().zip(passages.lengths) {
        let (offset, length) = (offset as usize, usize::from(length));
        let moved = length.next_multiple_of(32);
        let from = &pool.padded()[offset..offset + moved];
        for (to, from) in out[at..at + moved]
            .chunks_exact_mut(32)
            .zip(from.chunks_exact(32))
        {
            to.copy_from_slice(from);
        }
        at += length;
    }
    black_box(&out[..at]);
}

/// Of the first rows, which are like all others.
fn bytes_per_row(generator: &Generator, table: Table) -> Result<f64, Box<dyn Error>> {
    let mut batch = Batch::new(table);
    generator.fill(&mut batch, 0..generator.scale().units(table).min(10_000))?;
    let mut text = Vec::new();
    tbl::append(&batch, TextPool::shared(), &mut text);
    Ok(text.len() as f64 / batch.rows() as f64)
}

/// Nanoseconds of processor time.
fn median(mut work: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut times = [0; ROUNDS];
    for time in &mut times {
        let begin = cpu_ns()?;
        work()?;
        *time = cpu_ns()? - begin;
    }
    times.sort_unstable();
    Ok(times[ROUNDS / 2] as f64)
}

fn cpu_ns() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split(' ').next().unwrap_or_default();
    Ok(first.parse()?)
}
