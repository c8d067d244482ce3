//! `dyno site RECORDS`: all records as static pages.

use anyhow::ensure;
use dyno_report::{counted, write_site};

use crate::args::SiteArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &SiteArgs) -> anyhow::Result<Exit> {
    let records = &args.records;
    ensure!(
        records.is_dir(),
        "{} is not a directory; name one with records below it",
        records.display()
    );
    let engine = |workload: &str| dyno_rigs::engine_of(workload).to_owned();
    let site = write_site(records, &args.out, engine)?;
    terminal::print(&format!(
        "{}: a site of {}",
        site.index.display(),
        counted(site.records as u64, "record")
    ))?;
    if site.damaged.is_empty() {
        return Ok(Exit::Done);
    }
    // The site is complete without the damaged records, but a build that publishes it should notice
    // that they are missing.
    let number = counted(site.damaged.len() as u64, "record");
    eprintln!("dyno: {number} cannot be read, so the site has no page for:");
    for damaged in &site.damaged {
        eprintln!("  {damaged}");
    }
    Ok(Exit::No)
}
