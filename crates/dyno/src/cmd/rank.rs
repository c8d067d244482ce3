//! `dyno rank RECORD...`: the systems of each case in their order, over several records.

use dyno_report::{Report, build_stored, rank};

use crate::args::RankArgs;
use crate::exit::Exit;
use crate::{runs, terminal};

pub fn run(args: &RankArgs) -> anyhow::Result<Exit> {
    let mut records: Vec<(String, Report)> = Vec::new();
    for path in &args.records {
        let (dir, stored) = runs::open_at(path)?;
        records.push((dir.display().to_string(), build_stored(&stored)));
    }
    let ranking = rank(&records, &args.baseline).map_err(anyhow::Error::msg)?;
    terminal::print(&if args.json {
        serde_json::to_string_pretty(&ranking)?
    } else {
        terminal::markdown(ranking.to_markdown())
    })?;
    Ok(Exit::Done)
}
