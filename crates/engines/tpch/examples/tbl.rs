//! Writes a table as dbgen's text to standard output, in one thread:
//!
//! ```text
//! cargo run --release -p dyno-tpch --example tbl -- lineitem 10 | sha1sum
//! ```

use std::error::Error;
use std::io::Write;

use dyno_tpch::{Batch, Generator, Scale, Table, TextPool, tbl};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [table, scale] = &arguments[..] else {
        return Err("usage: tbl TABLE SCALE-FACTOR".into());
    };
    let generator = Generator::new(Scale::new(scale.parse()?)?);
    let table: Table = table.parse()?;
    let mut batch = Batch::new(table);
    let mut text = Vec::new();
    let mut out = std::io::stdout().lock();
    let units = generator.scale().units(table);
    let mut first = 0;
    while first < units {
        let end = units.min(first + 4096);
        generator.fill(&mut batch, first..end)?;
        text.clear();
        tbl::append(&batch, TextPool::shared(), &mut text);
        out.write_all(&text)?;
        first = end;
    }
    Ok(())
}
