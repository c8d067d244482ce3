//! Prints the HTML report of a run: `cargo run -p dyno-report --example print_report -- DIR`.

use std::io::Write;
use std::path::Path;

use dyno_record::RunDir;
use dyno_report::build_stored;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("name the run's directory")?;
    let html = build_stored(&RunDir::open(Path::new(&dir))?).to_html()?;
    std::io::stdout().write_all(html.as_bytes())?;
    Ok(())
}
