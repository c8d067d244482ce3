//! The pager of microVMs as a program. This process plays the VMM: it maps memory, sends what
//! Firecracker sends, and compares what it reads with the snapshot.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use dyno_pages_microvm::stand_in::GuestMemory;
use dyno_pages_region::RegionError;

use super::{Running, dyno, json, noise, nothing_left, said};

const PAGES: u64 = 500;

/// Memory of a guest, or the line that this machine cannot have any.
fn guest() -> Option<GuestMemory> {
    match GuestMemory::map(&[100, PAGES - 100], true) {
        Err(error @ (RegionError::NotAllowed { .. } | RegionError::NotSupported { .. })) => {
            println!("skipped: memory of microVMs: {error}");
            None
        }
        made => Some(made.expect("memory")),
    }
}

fn snapshot(home: &Path) -> Vec<u8> {
    let mut bytes = noise(PAGES as usize * 4096);
    // Some pages are zeros, and some repeat others.
    bytes[40 * 4096..80 * 4096].fill(0);
    bytes.copy_within(0..20 * 4096, 100 * 4096);
    std::fs::write(home.join("memory"), &bytes).expect("space");
    bytes
}

fn paging(home: &Path) -> Running {
    let socket = home.join("uffd.sock");
    let snapshot = home.join("memory");
    let (socket, snapshot) = (socket.to_str(), snapshot.to_str());
    let mut command = dyno(home, &["pages", "pager", "--record-for", "1m"]);
    command.args([
        "--socket",
        socket.expect("text"),
        "--snapshot",
        snapshot.expect("text"),
    ]);
    let pager = command.stdout(Stdio::piped()).spawn();
    let mut pager = Running(pager.expect("it starts"));
    let out = pager.0.stdout.take().expect("piped");
    let first = BufReader::new(out).lines().next().expect("a line");
    let first = first.expect("text");
    assert!(first.starts_with("listening at unix:"), "{first}");
    pager
}

fn interrupt(pager: &mut Running) {
    let pid = pager.0.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill").success());
    assert!(pager.0.wait().expect("its end").success());
}

/// Counts pages that differ from the snapshot.
fn wrong(memory: &GuestMemory, snapshot: &[u8]) -> usize {
    let mut page = [0; 4096];
    let pages = snapshot.chunks(4096).enumerate();
    let wrong = pages.filter(|(number, expected)| {
        memory.read(*number as u64, &mut page);
        page[..] != **expected
    });
    wrong.count()
}

#[test]
fn a_microvm_outlives_a_pager_that_is_killed() {
    let Some(memory) = guest() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let bytes = snapshot(home.path());
    let mut pager = paging(home.path());
    let _connection = memory
        .hand_over(&home.path().join("uffd.sock"))
        .expect("a pager");
    (0..50).for_each(|page| assert_eq!(memory.touch(page), bytes[page as usize * 4096]));
    let status = json(dyno(
        home.path(),
        &["pages", "status", "--name", "pager", "--json"],
    ));
    assert_eq!(status["machines"][0]["pid"], std::process::id(), "{status}");
    assert_eq!(status["machines"][0]["served"]["placed_pages"], 50);
    assert_eq!(status["size_bytes"], PAGES * 4096);
    let (done, text) = said(dyno(home.path(), &["pages", "status", "--name", "pager"]));
    assert!(done && text.contains("microVM      0, process"), "{text}");
    let (done, refused) = said(dyno(home.path(), &["pages", "detach", "--name", "pager"]));
    assert!(
        !done && refused.contains("is a pager of microVMs, process"),
        "{refused}"
    );
    pager.0.kill().expect("SIGKILL");
    pager.0.wait().expect("its end");
    for command in [
        &["pages", "status", "--name", "pager"][..],
        &[
            "pages",
            "serve",
            "--name",
            "pager",
            "--size",
            "1MiB",
            "--nbd",
            "127.0.0.1:1",
        ],
    ] {
        let (done, refused) = said(dyno(home.path(), command));
        assert!(
            !done && refused.contains("a pager of microVMs that has ended"),
            "{refused}"
        );
    }
    std::thread::scope(|scope| {
        // It waits at the first page that the dead pager had not served.
        let compared = scope.spawn(|| wrong(&memory, &bytes));
        pager = paging(home.path());
        assert_eq!(compared.join().expect("no panic"), 0);
    });
    let status = json(dyno(
        home.path(),
        &["pages", "status", "--name", "pager", "--json"],
    ));
    assert_eq!(status["machines"][0]["taken_over"], true, "{status}");
    // A pager that is stopped leaves the microVM to the next one, until it is given up.
    interrupt(&mut pager);
    assert!(!nothing_left(home.path()));
    let (done, text) = said(dyno(home.path(), &["pages", "detach", "--name", "pager"]));
    assert!(done, "{text}");
    assert!(nothing_left(home.path()));
}

#[test]
fn a_pager_without_microvms_leaves_nothing_behind() {
    let home = tempfile::tempdir().expect("a directory");
    snapshot(home.path());
    let mut pager = paging(home.path());
    let (done, listed) = said(dyno(home.path(), &["pages", "list"]));
    assert!(done && listed.contains("uffd.sock"), "{listed}");
    interrupt(&mut pager);
    assert!(nothing_left(home.path()));
    assert!(!home.path().join("uffd.sock").exists());
}

#[test]
fn a_snapshot_that_cannot_be_served_is_named() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("memory");
    std::fs::write(&path, [0; 5000]).expect("space");
    let socket = home.path().join("uffd.sock");
    let arguments = ["--socket", socket.to_str().expect("text"), "--snapshot"];
    let mut command = dyno(home.path(), &["pages", "pager"]);
    command.args(arguments).arg(&path);
    let (done, refused) = said(command);
    assert!(!done && refused.contains("it has 5000 bytes"), "{refused}");
    assert!(nothing_left(home.path()));
}
