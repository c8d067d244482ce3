//! The block device in the hands of programs that we did not write: mkfs.ext4, fsck, mount, cp,
//! diff, dd, blkdiscard and fio; and its daemon killed under them.

mod rig;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rig::{Rig, possible, run, tried};

const PAGES: u64 = 24 << 8;
const BYTES: u64 = PAGES * 4096;

/// Not a test of its own: the holder, or the daemon.
#[test]
fn role() {
    rig::play_role();
}

#[test]
fn a_file_system_on_it_keeps_files() {
    if !possible(&["mkfs.ext4", "fsck.ext4", "mount", "diff"]) {
        return;
    }
    let mut rig = Rig::new(PAGES, 2 * BYTES, "fresh");
    let device = rig.block_device();
    run(&["mkfs.ext4", "-q", "-F", &device]);
    run(&["fsck.ext4", "-f", "-n", &device]);
    let at = rig.mount_ext4("ext4");
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (tree, copy) = (tree.to_str().expect("UTF-8"), at.join("copy"));
    let copy = copy.to_str().expect("UTF-8");
    run(&["cp", "-r", tree, copy]);
    run(&["diff", "-r", tree, copy]);
    rig.unmount_last();
    run(&["fsck.ext4", "-f", "-n", &device]);
    // From the device again, not from the system's cache.
    rig.mount_ext4("ext4");
    run(&["diff", "-r", tree, copy]);
    run(&["rm", "-r", copy]);
    rig.unmount_last();
    run(&["fsck.ext4", "-f", "-n", &device]);
    let pages = rig.check_pages();
    assert!(
        pages > 100 && pages < PAGES / 2,
        "{pages} of {PAGES} pages are left when files are gone"
    );
}

#[test]
fn a_full_store_is_a_full_device_until_something_is_discarded() {
    if !possible(&["dd", "blkdiscard"]) {
        return;
    }
    let mut rig = Rig::new(PAGES, 2 << 20, "fresh");
    let to = format!("of={}", rig.block_device());
    let write = [
        "dd",
        "if=/dev/urandom",
        &to,
        "bs=64k",
        "count=64",
        "oflag=direct",
        "conv=fsync",
    ];
    let full = tried(&write);
    let said = String::from_utf8_lossy(&full.stderr);
    assert!(
        !full.status.success() && said.contains("No space left"),
        "{said}"
    );
    run(&["blkdiscard", &rig.block_device()]);
    run(&[
        "dd",
        "if=/dev/urandom",
        &to,
        "bs=64k",
        "count=16",
        "oflag=direct",
        "conv=fsync",
    ]);
    rig.check_pages();
}

/// Starts fio with 8 writes under way.
fn fio(device: &str, options: &str) -> Child {
    let words = format!(
        "fio --filename={device} --direct=1 --ioengine=libaio --iodepth=8 --size={BYTES} {options}"
    );
    Command::new("timeout")
        .args(["--kill-after=10", "200"])
        .args(words.split_whitespace())
        .stdout(Stdio::piped())
        .spawn()
        .expect("fio")
}

#[test]
fn a_daemon_killed_under_writes_comes_back_and_nobody_sees_an_error() {
    const KILLS: u32 = 5;
    if !possible(&["fio"]) {
        return;
    }
    let mut rig = Rig::new(PAGES, 2 * BYTES, "fresh");
    let mut fio = fio(
        &rig.block_device(),
        "--name=verified --rw=randwrite --bsrange=4k-64k --verify=crc32c --verify_fatal=1 \
         --verify_state_save=0 --rate_iops=700",
    );
    let mut in_the_middle = 0;
    for kill in 0..KILLS {
        std::thread::sleep(Duration::from_millis(150 + u64::from(kill) * 70));
        in_the_middle += u32::from(fio.try_wait().expect("a child").is_none());
        rig.kill_daemon();
        // Requests wait meanwhile.
        std::thread::sleep(Duration::from_millis(50));
        rig.start_daemon("resumed");
    }
    let mut said = String::new();
    fio.stdout
        .take()
        .expect("a pipe")
        .read_to_string(&mut said)
        .expect("text");
    assert!(fio.wait().expect("its end").success(), "{said}");
    assert!(said.contains("err= 0"), "{said}");
    assert!(in_the_middle > 0, "fio was done before the first kill");
    rig.check_pages();
}

/// The first long requests of a daemon go into memory that it has not used yet, which is when the
/// kernel may fail them instead of keeping them for the next daemon.
#[test]
fn a_daemon_killed_while_it_takes_its_first_requests_loses_none() {
    const KILLS: u64 = 60;
    if !possible(&["fio"]) {
        return;
    }
    let mut rig = Rig::new(PAGES, 2 * BYTES, "fresh");
    let options = "--name=long --rw=write --bs=1m --time_based --runtime=2";
    let fio = fio(&rig.block_device(), options);
    for kill in 0..KILLS {
        // A daemon is up after 5 to 10 ms, so the times lie around its first requests.
        std::thread::sleep(Duration::from_millis(2 + kill * 7 % 20));
        rig.kill_daemon();
        rig.start_daemon("resumed");
    }
    let output = fio.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("err= 0"), "{said}");
    rig.check_pages();
}

#[test]
fn a_write_that_died_with_its_daemon_is_done_by_the_next_one() {
    if !possible(&["dd", "cmp"]) {
        return;
    }
    let mut rig = Rig::new(PAGES, 2 * BYTES, "fresh");
    let device = rig.block_device();
    let source = tempfile::NamedTempFile::new().expect("a file");
    let noise: Vec<u8> = (0..1u32 << 20)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    std::fs::write(source.path(), &noise).expect("a file");
    let path = source.path().to_str().expect("UTF-8");
    rig.kill_daemon();
    rig.start_daemon("swallowing");
    let mut dd = Command::new("timeout")
        .args(["--kill-after=10", "200", "dd", "bs=64k", "oflag=direct"])
        .args([format!("if={path}"), format!("of={device}")])
        .stderr(Stdio::null())
        .spawn()
        .expect("dd");
    rig.await_daemon();
    assert!(
        dd.try_wait().expect("a child").is_none(),
        "nobody has answered it"
    );
    rig.start_daemon("resumed");
    assert!(dd.wait().expect("its end").success());
    run(&["cmp", "-n", "1048576", path, &device]);
    rig.check_pages();
}

#[test]
fn without_a_holder_of_its_end_a_killed_daemon_means_errors_and_the_pages_stay() {
    if !possible(&["umount"]) {
        return;
    }
    let mut rig = Rig::new(64, 1 << 20, "alone");
    let open = |rig: &Rig| {
        std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(rig.file())
    };
    let mut file = open(&rig).expect("the file");
    file.write_all(b"a few bytes").expect("space");
    assert_eq!(file.metadata().expect("a file").len(), 64 * 4096);
    rig.kill_daemon();
    assert!(file.write_all(b"x").is_err());
    drop(file);
    assert!(open(&rig).is_err());
    rig.unmount_last();
    rig.mount("fresh");
    let mut bytes = [0; 11];
    open(&rig)
        .expect("the file")
        .read_exact(&mut bytes)
        .expect("whole");
    assert_eq!(&bytes, b"a few bytes");
    assert_eq!(rig.check_pages(), 1);
}

#[test]
fn the_file_has_the_size_of_the_device_and_keeps_it() {
    if !possible(&["stat"]) {
        return;
    }
    let rig = Rig::new(64, 1 << 20, "fresh");
    let names: Vec<_> = std::fs::read_dir(rig.file().parent().expect("a directory"))
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["device"]);
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(rig.file())
        .expect("the file");
    use std::os::unix::fs::FileExt;
    file.write_all_at(&[7; 5000], 3000).expect("space");
    let mut back = [0; 5002];
    file.read_exact_at(&mut back, 2999).expect("whole");
    assert!(back[0] == 0 && back[1..5001] == [7; 5000] && back[5001] == 0);
    file.sync_all().expect("a file");
    assert!(file.set_len(4096).is_err());
    file.set_len(64 * 4096).expect("the size that it has");
    assert!(file.write_all_at(b"x", 64 * 4096).is_err());
    assert_eq!(file.read_at(&mut back, 64 * 4096).expect("the end"), 0);
    drop(file);
    assert_eq!(rig.check_pages(), 2);
}

#[test]
fn swap_is_refused_with_the_reason() {
    let error = dyno_pages_fuse::refuse_swap()
        .expect_err("never")
        .to_string();
    assert!(error.contains("ublk"), "{error}");
}
