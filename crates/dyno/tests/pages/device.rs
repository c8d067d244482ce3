//! Block devices whose processes are killed, and commands that meet at one name.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::{Running, dyno, dyno_at, json, no_device, nothing_left, said, signal, wait_until};

/// A device that is taken away however the test ends.
struct Attached<'a> {
    home: &'a Path,
    name: String,
    device: String,
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        let _ = said(dyno(self.home, &["pages", "detach", "--name", &self.name]));
    }
}

const ATTACH: [&str; 8] = [
    "pages", "attach", "--size", "16MiB", "--front", "fuse", "--idle", "1m",
];

/// A device, or the word that none can be made here.
fn attached<'a>(home: &'a Path, purpose: &str) -> Option<Attached<'a>> {
    attached_by(assert_cmd::cargo::cargo_bin!("dyno"), home, purpose)
}

/// The same, whose holder starts the daemon from `program`.
fn attached_by<'a>(program: &Path, home: &'a Path, purpose: &str) -> Option<Attached<'a>> {
    if let Some(reason) = no_device() {
        println!("skipped: dyno pages attach: {reason}");
        return None;
    }
    let name = format!("pg-{purpose}-{}", std::process::id());
    let arguments = [&ATTACH[..], &["--name", &name]].concat();
    let (done, device) = said(dyno_at(program, home, &arguments));
    if !done && (device.contains("ermi") || device.contains("needs root")) {
        println!("skipped: dyno pages attach: {device}");
        return None;
    }
    assert!(done, "{device}");
    let device = device.lines().last().expect("its path").to_string();
    Some(Attached { home, name, device })
}

impl Attached<'_> {
    fn status(&self) -> serde_json::Value {
        json(dyno(
            self.home,
            &["pages", "status", "--name", &self.name, "--json"],
        ))
    }

    fn daemon(&self) -> u32 {
        self.status()["process"]["pid"].as_u64().expect("a process") as u32
    }

    fn holder(&self) -> u32 {
        let found = Command::new("pgrep")
            .args(["-f", &format!("pages hold .*/{}/hold", self.name)])
            .output();
        let text = String::from_utf8_lossy(&found.expect("pgrep").stdout).into_owned();
        text.trim().parse().expect("one process")
    }

    fn command(&self, verb: &str) -> (bool, String) {
        said(dyno(self.home, &["pages", verb, "--name", &self.name]))
    }

    fn write(&self, bytes: &[u8]) {
        let mut file = OpenOptions::new()
            .write(true)
            .open(&self.device)
            .expect("the device");
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .expect("room");
    }

    fn read(&self, count: usize) -> Vec<u8> {
        let mut file = File::open(&self.device).expect("the device");
        file.seek(SeekFrom::Start(0)).expect("its start");
        let mut read = vec![0; count];
        file.read_exact(&mut read).expect("its bytes");
        read
    }

    fn is_served_by_another(&self, than: u32) -> bool {
        let (answers, text) = said(dyno(
            self.home,
            &["pages", "status", "--name", &self.name, "--json"],
        ));
        let status: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        answers && status.is_some_and(|status| status["process"]["pid"] != than)
    }
}

#[test]
fn a_device_outlives_its_daemon_and_its_holder() {
    let home = tempfile::tempdir().expect("a directory");
    let Some(attached) = attached(home.path(), "outlives") else {
        return;
    };
    let written = [0x5a; 8192];
    attached.write(&written);
    let (_, refused) = said(dyno(
        home.path(),
        &[&ATTACH[..], &["--name", &attached.name]].concat(),
    ));
    assert!(refused.contains("is attached already"), "{refused}");
    // The holder starts a killed daemon again by itself, and reads wait until it has.
    let daemon = attached.daemon();
    signal("-KILL", daemon);
    assert!(attached.read(8192) == written);
    wait_until("another daemon serves", || {
        attached.is_served_by_another(daemon)
    });
    // The daemon starts a dead holder again, and after that one more kill costs nothing either.
    let holder = attached.holder();
    signal("-KILL", holder);
    wait_until("another holder holds", || {
        attached.status()["holder"] == true
    });
    let daemon = attached.daemon();
    signal("-KILL", daemon);
    wait_until("another daemon serves", || {
        attached.is_served_by_another(daemon)
    });
    assert!(attached.read(8192) == written);
    let (done, text) = attached.command("detach");
    assert!(done, "{text}");
    assert!(nothing_left(home.path()));
}

/// One failed start once ended all restarts, and the device then waited for an operator.
#[test]
fn a_daemon_whose_first_restart_fails_is_started_by_a_later_one() {
    let home = tempfile::tempdir().expect("a directory");
    let program = home.path().join("dyno");
    std::fs::copy(assert_cmd::cargo::cargo_bin!("dyno"), &program).expect("room");
    let Some(attached) = attached_by(&program, home.path(), "later") else {
        return;
    };
    attached.write(&[3; 4096]);
    let daemon = attached.daemon();
    let away = home.path().join("away");
    std::fs::rename(&program, &away).expect("its directory");
    signal("-KILL", daemon);
    let log = home.path().join("stores").join(&attached.name).join("log");
    wait_until("a restart fails", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("cannot start"))
    });
    std::fs::rename(&away, &program).expect("its directory");
    wait_until("another daemon serves", || {
        attached.is_served_by_another(daemon)
    });
    assert!(attached.read(4096) == [3; 4096]);
}

#[test]
fn what_has_a_device_in_use_is_not_pulled_away_from_under_it() {
    let home = tempfile::tempdir().expect("a directory");
    let Some(attached) = attached(home.path(), "in-use") else {
        return;
    };
    attached.write(&[7; 4096]);
    let user = File::open(&attached.device).expect("the device");
    for verb in ["detach", "reset"] {
        let (done, text) = attached.command(verb);
        let process = format!("is open in process {}", std::process::id());
        assert!(!done && text.contains(&process), "{verb}: {text}");
    }
    assert!(attached.read(4096) == [7; 4096]);
    drop(user);
    let (done, text) = attached.command("reset");
    assert!(done && text.contains("forgotten pages: 1"), "{text}");
    let (done, text) = attached.command("detach");
    assert!(done, "{text}");
}

#[test]
fn serve_keeps_off_a_device_whose_daemon_is_dead_and_attach_says_what_is_other() {
    let home = tempfile::tempdir().expect("a directory");
    let Some(attached) = attached(home.path(), "kept-off") else {
        return;
    };
    attached.write(&[9; 4096]);
    // Neither process may start the other again: as when an operator has stopped both.
    let (holder, daemon) = (attached.holder(), attached.daemon());
    signal("-STOP", holder);
    signal("-KILL", daemon);
    let listen = format!("unix:{}", home.path().join("nbd").display());
    let arguments = [
        "pages",
        "serve",
        "--size",
        "8MiB",
        "--nbd",
        &listen,
        "--name",
        &attached.name,
    ];
    let serve = dyno(home.path(), &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let serve = serve.expect("it starts");
    signal("-CONT", holder);
    let output = serve.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    assert!(
        text.contains("attached device") || text.contains("serves it already"),
        "{text}"
    );
    wait_until("another daemon serves", || {
        attached.is_served_by_another(daemon)
    });
    assert!(attached.read(4096) == [9; 4096]);
}

#[test]
fn two_commands_of_one_name_take_turns() {
    let home = tempfile::tempdir().expect("a directory");
    let Some(attached) = attached(home.path(), "turns") else {
        return;
    };
    let (done, text) = attached.command("detach");
    assert!(done, "{text}");
    let arguments = [&ATTACH[..], &["--name", &attached.name]].concat();
    let both = [0, 1].map(|_| {
        let started = dyno(home.path(), &arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        started.expect("it starts")
    });
    let outputs = both.map(|child| child.wait_with_output().expect("its end"));
    let won = outputs
        .iter()
        .filter(|output| output.status.success())
        .count();
    assert_eq!(won, 1, "{outputs:?}");
    let lost = outputs.iter().find(|output| !output.status.success());
    let text = String::from_utf8_lossy(&lost.expect("the other").stderr).into_owned();
    assert!(text.contains("is attached already"), "{text}");
}

#[test]
fn a_loop_device_that_is_another_images_by_now_is_left_alone() {
    let home = tempfile::tempdir().expect("a directory");
    let Some(attached) = attached(home.path(), "another") else {
        return;
    };
    let (holder, daemon) = (attached.holder(), attached.daemon());
    signal("-KILL", holder);
    signal("-KILL", daemon);
    let losetup = |arguments: &[&str]| Command::new("losetup").args(arguments).output();
    wait_until("the device is taken away", || {
        losetup(&["-d", &attached.device]).is_ok_and(|output| output.status.success())
    });
    let image = home.path().join("image");
    std::fs::write(&image, vec![0; 1 << 20]).expect("room");
    let image = image.display().to_string();
    wait_until("another image takes the device", || {
        losetup(&[&attached.device, &image]).is_ok_and(|output| output.status.success())
    });
    let (done, text) = attached.command("detach");
    let listed = losetup(&[&attached.device]).expect("it was there");
    let _ = losetup(&["-d", &attached.device]);
    assert!(done && text.contains("is left alone"), "{text}");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("image"), "{listed}");
}

/// Benchmarks of the devices as the tests run them, with what the test adds, or `None` where none
/// can be made.
fn benchmark(home: &Path, more: &[&str]) -> Option<Command> {
    if no_device().is_some() || !Path::new("/usr/bin/fio").exists() {
        println!("skipped: a benchmark of devices: no device can be made here, or fio is missing");
        return None;
    }
    let run = ["run", "pages-device", "--tiny", "--case", "device-p3"];
    let mut run = dyno(home, &[&run[..], more].concat());
    run.arg("--out").arg(home.join("runs"));
    Some(run)
}

/// Held while a benchmark runs: on a machine that has not prepared the pages yet, one of two that
/// start at once is refused, because the other is preparing them.
static BENCHMARK: Mutex<()> = Mutex::new(());

/// The device of a benchmark that was killed once stayed attached until it was detached by hand.
#[test]
fn a_benchmark_takes_away_the_device_of_one_that_was_killed() {
    let _alone = BENCHMARK.lock().unwrap_or_else(PoisonError::into_inner);
    let home = tempfile::tempdir().expect("a directory");
    let Some(run) = benchmark(home.path(), &[]) else {
        return;
    };
    let mut killed = Command::new("true").spawn().expect("it starts");
    killed.wait().expect("it ends");
    let name = format!("bench-{}", killed.id());
    let attach = [&ATTACH[..], &["--name", &name]].concat();
    let (done, text) = said(dyno(home.path(), &attach));
    if !done && (text.contains("ermi") || text.contains("needs root")) {
        println!("skipped: dyno pages attach: {text}");
        return;
    }
    assert!(done, "{text}");
    let (done, text) = said(run);
    assert!(done, "{text}");
    let stores = json(dyno(home.path(), &["pages", "list", "--json"]));
    assert_eq!(stores, serde_json::json!([]));
}

/// It once stayed attached, with its pages in memory, until another benchmark of devices began.
#[test]
fn a_benchmark_that_ctrl_c_ends_leaves_no_device() {
    let _alone = BENCHMARK.lock().unwrap_or_else(PoisonError::into_inner);
    let home = tempfile::tempdir().expect("a directory");
    let Some(mut run) = benchmark(home.path(), &["--set", "seconds=60"]) else {
        return;
    };
    let run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut run = Running(run.expect("it starts"));
    let listed = || json(dyno(home.path(), &["pages", "list", "--json"]));
    wait_until("a device is attached", || {
        let ended = run.0.try_wait().expect("a child");
        assert_eq!(ended, None, "the benchmark ended by itself");
        listed()[0]["device"].is_string()
    });
    signal("-INT", run.0.id());
    assert_eq!(run.0.wait().expect("its end").code(), Some(130));
    assert!(nothing_left(home.path()), "{}", listed());
}
