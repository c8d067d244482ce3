//! Suites and peers as files inside the program, so that it works from anywhere.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use dyno_suite::{Catalogue, Definition, Error};

use crate::args::{PeersFrom, SelectArgs};
use crate::{places, terminal};

const SUITES: [(&str, &str); 11] = [
    ("wspr", include_str!("../../../suites/wspr.toml")),
    (
        "wspr-queries",
        include_str!("../../../suites/wspr-queries.toml"),
    ),
    (
        "wspr-clickhouse",
        include_str!("../../../suites/wspr-clickhouse.toml"),
    ),
    ("chain", include_str!("../../../suites/chain.toml")),
    ("tpch", include_str!("../../../suites/tpch.toml")),
    ("pubsub", include_str!("../../../suites/pubsub.toml")),
    ("k2", include_str!("../../../suites/k2.toml")),
    ("llm", include_str!("../../../suites/llm.toml")),
    ("tpcc", include_str!("../../../suites/tpcc.toml")),
    ("pages", include_str!("../../../suites/pages.toml")),
    (
        "pages-device",
        include_str!("../../../suites/pages-device.toml"),
    ),
];

const PEERS: [(&str, &str); 23] = [
    (
        "spots_queries.sql",
        include_str!("../../../peers/spots_queries.sql"),
    ),
    ("duckdb.toml", include_str!("../../../peers/duckdb.toml")),
    (
        "duckdb_peer.py",
        include_str!("../../../peers/duckdb_peer.py"),
    ),
    ("chdb.toml", include_str!("../../../peers/chdb.toml")),
    ("chdb_peer.py", include_str!("../../../peers/chdb_peer.py")),
    (
        "tpchgen-cli.toml",
        include_str!("../../../peers/tpchgen-cli.toml"),
    ),
    (
        "tpchgen_cli_peer.py",
        include_str!("../../../peers/tpchgen_cli_peer.py"),
    ),
    (
        "duckdb-tpch.toml",
        include_str!("../../../peers/duckdb-tpch.toml"),
    ),
    (
        "duckdb_tpch_peer.py",
        include_str!("../../../peers/duckdb_tpch_peer.py"),
    ),
    ("pyarrow.toml", include_str!("../../../peers/pyarrow.toml")),
    (
        "pyarrow_peer.py",
        include_str!("../../../peers/pyarrow_peer.py"),
    ),
    (
        "pg-msg-bench.toml",
        include_str!("../../../peers/pg-msg-bench.toml"),
    ),
    ("pgbench.toml", include_str!("../../../peers/pgbench.toml")),
    (
        "postgres.toml",
        include_str!("../../../peers/postgres.toml"),
    ),
    (
        "postgres-serializable.toml",
        include_str!("../../../peers/postgres-serializable.toml"),
    ),
    ("etcd.toml", include_str!("../../../peers/etcd.toml")),
    (
        "clickhouse-client.toml",
        include_str!("../../../peers/clickhouse-client.toml"),
    ),
    (
        "zram-lz4.toml",
        include_str!("../../../peers/zram-lz4.toml"),
    ),
    (
        "zram-lzo-rle.toml",
        include_str!("../../../peers/zram-lzo-rle.toml"),
    ),
    ("tmpfs.toml", include_str!("../../../peers/tmpfs.toml")),
    ("tpch.py", include_str!("../../../peers/tpch.py")),
    ("door.py", include_str!("../../../peers/door.py")),
    ("spots.py", include_str!("../../../peers/spots.py")),
];

/// The word that stands for all suites with a seed document.
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
        None => Catalogue::built_in(&PEERS, &root)?,
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
            path if path.ends_with(".toml") => vec![Definition::read(Path::new(path))?],
            name => vec![by_name(&known, name)?],
        };
        for mut suite in found {
            suite.set(&select.set.iter().cloned().collect())?;
            if chosen.iter().all(|there| there.name != suite.name) {
                chosen.push(suite);
            }
        }
    }
    Ok(chosen)
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
    let seeds = [SEEDS, "All suites that make the tables of a seed document."];
    let rows = suites.chain([seeds.map(str::to_owned)]);
    Ok(format!("Suites:\n{}\n", terminal::columns(rows)))
}

fn known_suites(dir: Option<&Path>) -> anyhow::Result<Vec<Definition>> {
    let Some(dir) = dir else {
        return SUITES
            .iter()
            .map(|(name, text)| {
                Ok(Definition::parse(
                    name,
                    &format!("suites/{name}.toml"),
                    text,
                )?)
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
        .map(|path| Ok(Definition::read(path)?))
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
