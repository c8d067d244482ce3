//! Each file of a database is deleted, one at a time: the database opens with every row, or it is
//! refused in words that name what is missing. It is never opened with less, and nothing dies of
//! it.

mod scene;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use dyno_txn_api::{Database, Key, Operation, TableDef, Target, Transact};
use dyno_txn_node::{Local, OpenOptions, open};

const ROWS: u64 = 600;

fn options() -> OpenOptions {
    OpenOptions {
        partitions: Some(2),
        segment_bytes: 256 << 10,
        checkpoint_bytes: 400 << 10,
        ..scene::options()
    }
}

fn fill(db: &dyn Database, from: u64, to: u64) {
    let table = db.create_table(&TableDef::hash("t", 0)).expect("a table");
    for number in from..to {
        let key = Key::new(table, number.to_be_bytes());
        let put = Operation::put(key, [7; 2_000]);
        db.one_shot(vec![put]).expect("it commits");
    }
}

/// All files below a directory, by their paths from there.
fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![below.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path)
            } else {
                found.push(path.strip_prefix(below).expect("below").to_path_buf())
            }
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(&file);
        fs::create_dir_all(target.parent().expect("a folder")).expect("room");
        fs::copy(from.join(&file), target).expect("room");
    }
}

/// Waits until no checkpoint and no segment is being made any more, which the threads of a database
/// do after its last answer: a copy would miss a file that is renamed meanwhile.
fn settle(path: &Path) {
    let look = || {
        let files = files(path).into_iter();
        let look = files.map(|file| {
            // A file that has just been renamed has no length under its old name.
            let length = fs::metadata(path.join(&file)).map_or(0, |found| found.len());
            (file, length)
        });
        look.collect::<Vec<_>>()
    };
    let mut before = look();
    for _ in 0..500 {
        thread::sleep(Duration::from_millis(100));
        let now = look();
        if now == before {
            return;
        }
        before = now;
    }
    panic!("the files go on changing: {before:?}");
}

/// Opens a copy without one file or folder; what it said.
fn without(whole: &Path, gone: &Path, scratch: &Path) -> Result<u64, String> {
    let path = scratch.join("copy");
    copy(whole, &path);
    let victim = path.join(gone);
    if victim.is_dir() {
        fs::remove_dir_all(&victim).expect("it is there")
    } else {
        fs::remove_file(&victim).expect("it is there")
    }
    let opened = open(&Target::Local(path.clone()), options());
    let result = match opened {
        Ok(db) => scene::count(&*db, "t").map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    fs::remove_dir_all(path).expect("it is there");
    result
}

fn delete_each(whole: &Path, scratch: &Path, what: &str) {
    let (mut refused, mut names) = (0, files(whole));
    names.extend(["partition-0", "partition-1"].map(PathBuf::from));
    for gone in &names {
        match without(whole, gone, scratch) {
            Ok(rows) => assert_eq!(rows, ROWS, "{what}, without {}", gone.display()),
            Err(said) => {
                refused += 1;
                println!("{what}, without {}: {said}", gone.display());
                assert!(!said.contains("panicked"), "{}: {said}", gone.display());
                assert!(
                    !said.contains("no-such-table"),
                    "{}: {said}",
                    gone.display()
                );
                let file = gone.file_name().expect("a name").to_string_lossy();
                let folder = gone.parent().expect("below").to_string_lossy();
                assert!(
                    said.contains(&*file) || !folder.is_empty() && said.contains(&*folder),
                    "{said}"
                );
            }
        }
    }
    // At least `format`, both folders, and in each of them the manifest and the checkpoint.
    assert!(refused >= 7, "{what}: {refused} of {names:?}");
}

#[test]
fn a_database_without_one_of_its_files_is_whole_or_refused() {
    let at = tempfile::tempdir().expect("a directory");
    let path = at.path().join("db");
    let killed = at.path().join("killed");
    let local = Local::open(&path, options()).expect("it opens");
    fill(local.database(), 0, ROWS);
    // Files as a kill leaves them: nothing is under way, and nothing was closed.
    let figure = |name: &str| {
        let stats = local.database().stats().expect("figures");
        stats
            .into_iter()
            .find(|(n, _)| n == name)
            .map_or(0, |(_, value)| value)
    };
    assert!(figure("checkpoints") >= 2);
    settle(&path);
    copy(&path, &killed);
    drop(local);
    delete_each(&path, at.path(), "closed");
    delete_each(&killed, at.path(), "killed");
}

#[test]
fn an_empty_log_without_its_manifest_is_refused_too() {
    let at = tempfile::tempdir().expect("a directory");
    let path = at.path().join("db");
    drop(open(&Target::Local(path.clone()), options()).expect("it opens"));
    fs::remove_file(path.join("partition-1/manifest")).expect("it was made");
    let refused = open(&Target::Local(path), options())
        .err()
        .expect("a file is missing");
    assert!(
        refused
            .text()
            .contains("partition-1 has no file `manifest`"),
        "{refused}"
    );
}
