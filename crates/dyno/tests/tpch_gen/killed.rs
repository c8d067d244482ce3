//! Killed with signal 9 at any moment, a job leaves only complete files under their names, and the
//! same command once more ends with the bytes of an undisturbed run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::{files, generate, is_final};

const KILLS: u32 = 10;
const ROUNDS_MAX: u32 = 60;
/// Fills the unit interval evenly, in an order without pattern: the golden ratio's fraction.
const STRIDE: f64 = 0.618_033_988_749_895;

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn job(folder: &Path) -> std::process::Command {
    let folder = folder.display();
    generate(&format!(
        "--sf 0.3 --sink std --threads 2 --group-bytes 2MiB --out {folder}"
    ))
}

fn succeed(folder: &Path) -> Duration {
    let start = Instant::now();
    let output = job(folder).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    start.elapsed()
}

/// Starts the job and kills it at a moment; whether it was still at work.
fn kill_after(folder: &Path, delay: Duration) -> bool {
    let mut command = job(folder);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    thread::sleep(delay);
    let ended = child.try_wait().expect("it can be asked").is_some();
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    !ended
}

/// The inodes of finished files: one that is made again has another.
fn inodes(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let Ok(entries) = fs::read_dir(folder) else {
        return BTreeMap::new();
    };
    let entries = entries.map(|entry| entry.expect("an entry").path());
    entries
        .filter(|path| is_final(path.strip_prefix(folder).unwrap_or(path)))
        .map(|path| (path.clone(), fs::metadata(path).expect("a file").ino()))
        .collect()
}

fn check_what_is_left(folder: &Path, expected: &Files) {
    if !folder.exists() {
        return;
    }
    for (name, bytes) in files(folder) {
        if is_final(&name) {
            assert!(bytes == expected[&name], "{} is half", name.display());
        }
    }
}

#[test]
fn a_killed_job_leaves_whole_files_and_is_finished_by_the_same_command() {
    let scratch = tempfile::tempdir().expect("a folder");
    let undisturbed = scratch.path().join("undisturbed");
    let mut duration = succeed(&undisturbed);
    let expected = files(&undisturbed);
    assert_eq!(expected.keys().filter(|name| is_final(name)).count(), 8);

    let folder = scratch.path().join("killed");
    let (mut kills, mut finished) = (0, 0);
    for round in 1..=ROUNDS_MAX {
        let before = inodes(&folder);
        let share = (f64::from(round) * STRIDE).fract();
        let delay = duration.mul_f64(share);
        let killed = kill_after(&folder, delay);
        kills += u32::from(killed);
        // A whole job ended before its kill, so other tests slowed down the undisturbed one. With
        // its duration most kills would come too late.
        if !killed && before.is_empty() {
            duration = delay;
        }
        check_what_is_left(&folder, &expected);
        let after = inodes(&folder);
        for (path, inode) in &before {
            assert_eq!(after.get(path), Some(inode), "{} again", path.display());
        }
        // Some kills hit a job that begins, others one that goes on after two kills.
        if round % 3 == 0 {
            succeed(&folder);
            for (path, inode) in &after {
                assert_eq!(inodes(&folder)[path], *inode, "{} again", path.display());
            }
            assert!(files(&folder) == expected, "after round {round}");
            fs::remove_dir_all(&folder).expect("it can be removed");
            finished += 1;
        }
        if kills >= KILLS && finished > 0 {
            println!("{kills} kills in {round} rounds, {finished} times finished");
            return;
        }
    }
    panic!("{kills} kills in {ROUNDS_MAX} rounds: the job is too short");
}
