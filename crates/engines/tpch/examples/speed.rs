//! How fast one core fills batches, and what the text pool costs:
//!
//! ```text
//! cargo run --release -p dyno-tpch --example speed -- 1
//! ```
//!
//! Times are processor time of the thread (Linux: /proc/thread-self/schedstat), the median of
//! several rounds. "Equivalent TBL" is the size of the text that dbgen would print for the same
//! rows.

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::time::Instant;

use dyno_tpch::{Batch, Generator, PADDING_BYTES, Scale, Table, TextPool, Values, tbl};

const ROUNDS: usize = 5;
const ROUND_NS: u64 = 200_000_000;
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
    for table in Table::ALL.into_iter().skip(2) {
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

/// Copies the comments out of the pool, one after the other.
fn copy(batch: &Batch, pool: &TextPool, out: &mut Vec<u8>) {
    let Values::Passages(passages) = batch.values(batch.table().columns().len() - 1) else {
        return;
    };
    let space = passages.total_bytes() + PADDING_BYTES;
    if out.len() < space {
        out.resize(space, 0);
    }
    let written = passages.copy_to(pool, out);
    black_box(&out[..written]);
}

/// Of the first rows, which are like all others.
fn bytes_per_row(generator: &Generator, table: Table) -> Result<f64, Box<dyn Error>> {
    let mut batch = Batch::new(table);
    generator.fill(&mut batch, 0..generator.scale().units(table).min(10_000))?;
    let mut text = Vec::new();
    tbl::append(&batch, TextPool::shared(), &mut text);
    Ok(text.len() as f64 / batch.rows() as f64)
}

/// Nanoseconds of processor time. The kernel counts them in ticks, so a round takes many.
fn median(mut work: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut times = [0.0; ROUNDS];
    for time in &mut times {
        let begin = cpu_ns()?;
        let mut repeats = 0.0;
        while cpu_ns()? - begin < ROUND_NS {
            work()?;
            repeats += 1.0;
        }
        *time = (cpu_ns()? - begin) as f64 / repeats;
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times[ROUNDS / 2])
}

fn cpu_ns() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split(' ').next().unwrap_or_default();
    Ok(first.parse()?)
}
