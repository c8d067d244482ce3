//! A disk that is full: the error names the file and the reason, nothing half stands under a final
//! name, and with more room the same command finishes the job.
//!
//! The disk is a small tmpfs in a mount namespace of its own, which goes with its last process.

use std::path::Path;
use std::process::{Command, Output};

use crate::{files, is_final};

/// Fits the small tables of scale factor 0.05 and not the large ones.
const SMALL: &str = "6m";
const LARGE: &str = "64m";

/// Runs a script in a mount namespace; nothing where the system does not allow one with a tmpfs in
/// it.
fn in_namespace(disk: &Path, script: &str) -> Option<Output> {
    let mount = format!("mount -t tmpfs -o size={SMALL} tmpfs '{}'", disk.display());
    for flags in ["-m", "-rm"] {
        let run = |script: &str| {
            Command::new("unshare")
                .args([flags, "sh", "-c", script])
                .output()
        };
        if run(&mount).is_ok_and(|output| output.status.success()) {
            let script = format!("set -e\n{mount}\n{script}");
            return Some(run(&script).expect("it ran before"));
        }
    }
    None
}

#[test]
fn a_full_disk_leaves_no_half_file_and_more_room_lets_the_job_finish() {
    let scratch = tempfile::tempdir().expect("a folder");
    let [disk, small, large, whole] = ["disk", "small", "large", "whole"].map(|name| {
        let path = scratch.path().join(name);
        std::fs::create_dir(&path).expect("a folder");
        path
    });
    let program = assert_cmd::cargo::cargo_bin!("dyno");
    let job = format!("{} tpch gen --sf 0.05 --threads 1", program.display());
    // What is on the disk is copied out, since it goes with the namespace.
    let script = format!(
        "code=0; {job} --out '{disk}' >&2 || code=$?; cp -a '{disk}/.' '{small}'\n\
         mount -o remount,size={LARGE} '{disk}'; {job} --out '{disk}' --json >&2; cp -a '{disk}/.' '{large}'\n\
         {job} --sink std --out '{whole}' --json >&2; echo $code",
        disk = disk.display(),
        small = small.display(),
        large = large.display(),
        whole = whole.display(),
    );
    let Some(output) = in_namespace(&disk, &script) else {
        println!("skipped: tpch gen onto a full disk: this system allows no tmpfs in a namespace");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "2",
        "{said}"
    );
    assert!(said.contains(".parquet.partial: No space left"), "{said}");

    let (small, large, whole) = (files(&small), files(&large), files(&whole));
    let finals = |name: &&std::path::PathBuf| is_final(name);
    assert!(small.keys().filter(finals).count() < 8);
    for (name, bytes) in &small {
        assert!(bytes == &whole[name], "{} is half", name.display());
    }
    assert!(large == whole, "{:?}", large.keys());
}
