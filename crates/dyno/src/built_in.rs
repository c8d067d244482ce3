//! Suites and peers as files inside the program, so that it works from anywhere.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use dyno_suite::{Catalogue, Definition, Error, Selection};

use crate::args::{PeersFrom, SelectArgs};
use crate::{places, terminal};

// `SUITES` and `PEERS`: name and content of each file of the folders, made by `build.rs`.
include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The word that stands for all suites with a seed document, which is the published report whose
/// tables a suite makes again.
const SEEDS: &str = "seeds";

/// The peers, from a directory or from inside the program.
pub fn peers(from: &PeersFrom) -> anyhow::Result<Catalogue> {
    let root = places::peers_root()?;
    Ok(match &from.peers_dir {
        Some(dir) => {
            let dir = dir
                .canonicalize()
                .with_context(|| format!("{}", dir.display()))?;
            let catalogue = Catalogue::from_dir(&dir, &root)?;
            anyhow::ensure!(
                !catalogue.peers().is_empty(),
                "{} holds no peer (*.toml)",
                dir.display()
            );
            catalogue
        }
        None => Catalogue::built_in(PEERS, &root)?,
    })
}

/// The suites that the words of a command line name, each once.
pub fn suites(select: &SelectArgs) -> anyhow::Result<Vec<Definition>> {
    let known = known_suites(select.suites_dir.as_deref())?;
    let mut chosen: Vec<Definition> = Vec::new();
    for word in &select.suites {
        let found = match word.as_str() {
            SEEDS => known
                .iter()
                .filter(|s| s.seed_document().is_some())
                .cloned()
                .collect(),
            path if path.ends_with(".toml") => {
                vec![on_this_machine(Definition::read(Path::new(path))?)]
            }
            name => vec![by_name(&known, name)?],
        };
        for mut suite in found {
            // Set before cases are selected, because a parameter may decide which cases there are.
            suite.set(&select.set.iter().cloned().collect())?;
            suite.select(Selection {
                only: select.case.clone(),
                skip: select.skip.clone(),
            });
            // `seeds wspr` names wspr twice. A suite that ran twice would write two records of one
            // session.
            if chosen.iter().all(|there| there.name != suite.name) {
                chosen.push(suite);
            }
        }
    }
    Ok(chosen)
}

/// The suite with the sweeps that this machine's cores make, of which a container or `taskset` may
/// grant fewer than there are.
fn on_this_machine(suite: Definition) -> Definition {
    suite.on_cores(std::thread::available_parallelism().map_or(1, usize::from))
}

/// The suite of this name.
pub fn suite(name: &str, dir: Option<&Path>) -> anyhow::Result<Definition> {
    Ok(by_name(&known_suites(dir)?, name)?)
}

fn by_name(known: &[Definition], name: &str) -> Result<Definition, Error> {
    let found = known.iter().find(|suite| suite.name == name).cloned();
    found.ok_or_else(|| {
        let names = known.iter().map(|suite| suite.name.as_str());
        Error::unknown("suite", name, &names.chain([SEEDS]).collect::<Vec<_>>())
    })
}

/// The suites that there are, each with what it is for.
pub fn listed(select: &SelectArgs) -> anyhow::Result<String> {
    let known = known_suites(select.suites_dir.as_deref())?;
    let suites = known
        .iter()
        .map(|suite| [suite.name.clone(), suite.purpose()]);
    let seeds = [
        SEEDS,
        "All suites that make the tables of a published report again.",
    ];
    let rows = suites.chain([seeds.map(str::to_owned)]);
    Ok(format!("Suites:\n{}\n", terminal::columns(rows)))
}

fn known_suites(dir: Option<&Path>) -> anyhow::Result<Vec<Definition>> {
    let Some(dir) = dir else {
        return SUITES
            .iter()
            .map(|(file, text)| {
                let name = file.trim_end_matches(".toml");
                let suite = Definition::parse(name, &format!("suites/{file}"), text)?;
                Ok(on_this_machine(suite))
            })
            .collect();
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry
            .with_context(|| format!("cannot list {}", dir.display()))?
            .path();
        if path.extension().is_some_and(|x| x == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    anyhow::ensure!(
        !paths.is_empty(),
        "{} holds no suite (*.toml)",
        dir.display()
    );
    paths
        .iter()
        .map(|path| Ok(on_this_machine(Definition::read(path)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use dyno_record::Size;
    use dyno_suite::Planned;

    #[test]
    fn every_suite_makes_a_plan_in_every_size() {
        for suite in known_suites(None).expect("they are good") {
            let peers = suite.peers();
            for size in [Size::Tiny, Size::Quick, Size::Full] {
                let planned = Planned::new(&suite, size, &peers).expect("it expands");
                assert!(planned.samples() > 0);
            }
        }
    }
}
