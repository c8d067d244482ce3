//! A load that is killed with signal 9 at any moment leaves a table in which each archive is its
//! older or its newer self, and the same load once more makes it that of an undisturbed one.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracle;
mod table_of;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use dyno_ingest::generate::Generator;
use dyno_ingest::load::Options;
use dyno_ingest::table::Manifest;
use oracle::checksum;
use table_of::{child, copy_table, generate, lenient, load_files, rows_by_archive};

const KILLS: u32 = 24;
const ROUNDS_MAX: u32 = 60;

#[test]
fn child_that_is_killed() {
    child::load_if_child();
}

/// Checksum of each archive.
fn checksums(table: &Path) -> BTreeMap<String, String> {
    match Manifest::read(table).unwrap() {
        None => BTreeMap::new(),
        Some(_) => rows_by_archive(table)
            .into_iter()
            .map(|(identity, rows)| (identity, checksum(&rows)))
            .collect(),
    }
}

/// Two months that have grown since the table got them, and one that it does not know.
struct Scene {
    archives: Vec<PathBuf>,
    older: BTreeMap<String, String>,
    newer: BTreeMap<String, String>,
    older_table: PathBuf,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let months = |rows, name: &str| {
            let generator = Generator {
                rows,
                months: 3,
                quirks: 0.01,
                ..Generator::default()
            };
            generate(&generator, &folder.path().join(name))
        };
        let (before, archives) = (months(3_000, "before"), months(24_000, "now"));
        let older_table = folder.path().join("older");
        load_files(&before[..2], &older_table, &lenient());
        let newer_table = folder.path().join("newer");
        load_files(&archives, &newer_table, &lenient());
        Scene {
            older: checksums(&older_table),
            newer: checksums(&newer_table),
            archives,
            older_table,
            folder,
        }
    }

    fn load(&self, table: &Path) -> Command {
        let options = Options {
            workers: 2,
            ..lenient()
        };
        child::command("child_that_is_killed", &self.archives, table, &options)
    }

    /// Each archive is its older or its newer self, the unknown one may be absent; tells how many
    /// are new.
    fn check_between(&self, table: &Path) -> usize {
        let now = checksums(table);
        for identity in self.older.keys() {
            assert!(now.contains_key(identity), "{identity} is lost");
        }
        for (identity, checksum) in &now {
            let known = [self.older.get(identity), self.newer.get(identity)];
            assert!(known.contains(&Some(checksum)), "{identity} is neither");
        }
        let is_new = |(identity, checksum)| self.newer.get(identity) == Some(checksum);
        now.iter()
            .filter(|&(identity, checksum)| is_new((identity, checksum)))
            .count()
    }
}

/// The next of a series of shares, 0 to 1.
fn share(state: &mut u64) -> f64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

#[test]
fn a_load_killed_at_any_moment_is_finished_by_the_same_command() {
    let scene = Scene::new();
    assert_eq!((scene.older.len(), scene.newer.len()), (2, 3));
    let undisturbed = scene.folder.path().join("undisturbed");
    copy_table(&scene.older_table, &undisturbed);
    let begun = Instant::now();
    assert!(scene.load(&undisturbed).status().unwrap().success());
    let duration = begun.elapsed();
    assert_eq!(checksums(&undisturbed), scene.newer);

    let (mut seed, mut kills, mut committed) = (20_261_121, 0, [0u32; 4]);
    for round in 0..ROUNDS_MAX {
        let table = scene.folder.path().join(format!("round-{round}"));
        copy_table(&scene.older_table, &table);
        // Up to three kills on the way of one load, over the whole time that it takes.
        for _ in 0..3 {
            let moment = duration.mul_f64(share(&mut seed) * 1.1);
            let mut child = scene.load(&table).spawn().unwrap();
            let killed = kill_after(&mut child, moment);
            committed[scene.check_between(&table)] += u32::from(killed);
            kills += u32::from(killed);
            if !killed {
                break;
            }
        }
        assert!(scene.load(&table).status().unwrap().success());
        assert_eq!(checksums(&table), scene.newer, "round {round}");
        std::fs::remove_dir_all(&table).unwrap();
        if kills >= KILLS {
            break;
        }
    }
    println!("{kills} kills, by archives committed at that moment: {committed:?}");
    assert!(kills >= 20, "only {kills} kills found the load alive");
    assert!(committed[1..].iter().any(|&n| n > 0), "no kill came late");
}

/// Kills `child` after `moment`, a moment of real time, unless it has ended; tells whether it did.
fn kill_after(child: &mut std::process::Child, moment: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < moment {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return false;
        }
        std::thread::park_timeout(Duration::from_micros(200));
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    !status.success()
}
