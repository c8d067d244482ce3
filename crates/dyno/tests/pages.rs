//! `dyno pages` as its users meet it: a store that is served and asked, and a device whose daemon is killed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn dyno(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dyno"));
    command
        .env("DYNO_PAGES_DIR", home.join("stores"))
        .args(arguments);
    command
}

fn said(mut command: Command) -> (bool, String) {
    let output = command.output().expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn json(mut command: Command) -> serde_json::Value {
    let output = command.output().expect("it starts");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{why}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Killed when dropped, however the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A store of 16 MiB that is served at `listen`, with more arguments.
fn serving(home: &Path, listen: &str, more: &[&str]) -> Running {
    let arguments = ["pages", "serve", "--size", "16MiB", "--nbd", listen];
    let serve = dyno(home, &[&arguments, more].concat())
        .stdout(Stdio::piped())
        .spawn();
    let mut serve = Running(serve.expect("it starts"));
    let out = serve.0.stdout.take().expect("piped");
    let first = BufReader::new(out).lines().next().expect("a line");
    let first = first.expect("text");
    assert!(first.starts_with("listening at unix:"), "{first}");
    serve
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1u32;
    (0..bytes)
        .map(|_| {
            // Knuth's and Lewis's constants.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect()
}

#[test]
fn a_served_store_answers_and_leaves_nothing_behind() {
    let home = tempfile::tempdir().expect("a directory");
    let socket = home.path().join("nbd");
    let listen = format!("unix:{}", socket.display());
    let mut serve = serving(home.path(), &listen, &[]);
    let (done, status) = said(dyno(home.path(), &["pages", "status", "--json"]));
    assert!(done && status.contains("\"pages\": 4096"), "{status}");
    let (done, compacted) = said(dyno(home.path(), &["pages", "compact"]));
    assert!(done && compacted.contains("moved: 0"), "{compacted}");
    let (done, again) = said(dyno(
        home.path(),
        &["pages", "serve", "--size", "1MiB", "--nbd", &listen],
    ));
    assert!(!done && again.contains("serves it already"), "{again}");
    let pid = serve.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .expect("kill")
            .success()
    );
    assert!(serve.0.wait().expect("its end").success());
    assert!(nothing_left(home.path()));
}

/// Whether no store and no lock of one is there.
fn nothing_left(home: &Path) -> bool {
    let stores = std::fs::read_dir(home.join("stores"));
    stores.is_err() || stores.is_ok_and(|mut stores| stores.next().is_none())
}

#[test]
fn a_start_that_fails_leaves_nothing_behind_and_says_why() {
    let home = tempfile::tempdir().expect("a directory");
    let listen = format!("unix:{}", home.path().join("nbd").display());
    let none: [&str; 0] = [];
    for (more, why) in [
        (
            &["--size", "0B", "--nbd", &listen][..],
            "--size must be 4KiB to 4PiB",
        ),
        (
            &["--size", "100TiB", "--nbd", &listen],
            "the index of that many pages takes up to",
        ),
        (
            &["--size", "16MiB", "--limit", "1KiB", "--nbd", &listen],
            "--limit must be 64KiB",
        ),
        (
            &["--size", "16MiB", "--idle", "0s", "--nbd", &listen],
            "it is less than 1s",
        ),
        (&["--size", "16MiB", "--nbd", "0.0.0.0:0"], "other machines"),
        (
            &[
                "--size",
                "16MiB",
                "--nbd",
                &listen,
                "--metrics",
                "0.0.0.0:0",
            ],
            "use 127.0.0.1 or [::1]",
        ),
    ] {
        let (done, said) = said(dyno(
            home.path(),
            &[&["pages", "serve"], more, &none].concat(),
        ));
        assert!(!done && said.contains(why), "{more:?}: {said}");
        assert!(nothing_left(home.path()), "{more:?}");
    }
    let (done, said) = said(dyno(home.path(), &["pages", "status"]));
    assert!(
        !done && said.contains("no store is served or attached here"),
        "{said}"
    );
}

#[test]
fn a_store_tells_what_an_operator_asks_and_keeps_its_pages_while_it_has_clients() {
    let home = tempfile::tempdir().expect("a directory");
    let socket = home.path().join("nbd");
    let listen = format!("unix:{}", socket.display());
    let serve = serving(
        home.path(),
        &listen,
        &["--connections", "3", "--limit", "8MiB"],
    );
    let ask = |words: &[&str]| {
        json(dyno(
            home.path(),
            &[&["pages"], words, &["--json"]].concat(),
        ))
    };
    let status = ask(&["status"]);
    assert_eq!(status["name"], "pages");
    assert_eq!(status["front"], "nbd");
    assert_eq!(status["address"], listen.as_str());
    assert_eq!(status["codec"], "auto");
    assert_eq!(status["size_bytes"], 16 << 20);
    assert_eq!(status["limit_bytes"], 8 << 20);
    assert_eq!(status["process"]["pid"], serve.0.id());
    assert_eq!(status["corrupt"]["pages"], 0);
    assert_eq!(status["clients"]["most"], 3);
    assert_eq!(ask(&["list"])[0]["address"], listen.as_str());
    let (_, shown) = said(dyno(home.path(), &["pages", "status"]));
    for line in [
        "limit        8 MiB, 0.0% in use",
        "background   ",
        "clients      0 of 3",
        "damage       none",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    // A client of any kind is one whose pages are in use.
    let client = std::os::unix::net::UnixStream::connect(&socket).expect("the server");
    let mut greeting = [0; 18];
    (&client).read_exact(&mut greeting).expect("a greeting");
    assert_eq!(ask(&["status"])["clients"]["connected"], 1);
    let (done, refused) = said(dyno(home.path(), &["pages", "reset"]));
    assert!(
        !done && refused.contains("an NBD client is connected"),
        "{refused}"
    );
    let (done, refused) = said(dyno(home.path(), &["pages", "detach"]));
    assert!(
        !done && refused.contains("is served to NBD clients by process"),
        "{refused}"
    );
    drop(client);
    while ask(&["status"])["clients"]["connected"] != 0 {
        std::thread::yield_now();
    }
    assert_eq!(ask(&["reset"])["forgotten_pages"], 0);
    // The end of the terminal would take every page along.
    signal("-HUP", serve.0.id());
    assert_eq!(ask(&["status"])["stored_pages"], 0);
}

fn signal(which: &str, process: u32) {
    let sent = Command::new("kill")
        .args([which, &process.to_string()])
        .status();
    assert!(sent.expect("kill").success());
}

/// Waits until `done`, two minutes at most.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !done() {
        assert!(std::time::Instant::now() < until, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Why no device can be made here.
fn no_device() -> Option<String> {
    ["/dev/fuse", "/dev/loop-control"].iter().find_map(|path| {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        opened.err().map(|error| format!("{path}: {error}"))
    })
}

#[test]
fn where_there_is_no_ublk_attach_says_what_is_missing() {
    if Path::new("/dev/ublk-control").exists() {
        println!(
            "skipped: a machine without ublk: this one has it, scripts/slow/ublk makes devices"
        );
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let [ublk, swap] = [&["--front", "ublk"][..], &["--swap", "--limit", "16MiB"]].map(|more| {
        let arguments = [&["pages", "attach", "--size", "16MiB"][..], more].concat();
        said(dyno(home.path(), &arguments))
    });
    for (done, text) in [ublk, swap] {
        assert!(
            !done && text.contains("no ublk here: cannot open"),
            "{text}"
        );
        let remedies = ["modprobe ublk_drv", "CONFIG_BLK_DEV_UBLK", "came with 6.0"];
        assert!(
            remedies.iter().any(|remedy| text.contains(remedy)),
            "{text}"
        );
    }
    assert!(nothing_left(home.path()), "nothing is left");
}

#[test]
fn a_store_with_a_file_writes_back_by_hand_and_is_emptied() {
    let home = tempfile::tempdir().expect("a directory");
    let (socket, file) = (home.path().join("nbd"), home.path().join("pages"));
    let (listen, file_name) = (
        format!("unix:{}", socket.display()),
        file.display().to_string(),
    );
    let more = ["--codec", "lz4", "--backing", &file_name];
    let _serve = serving(home.path(), &listen, &more);
    assert!(!file.exists(), "its name is gone");
    // Nothing packs it; another's client writes it.
    let image = home.path().join("image");
    let noise = noise(16 << 20);
    std::fs::write(&image, &noise).expect("room");
    let uri = format!("nbd+unix:///pages?socket={}", socket.display());
    let copied = Command::new("nbdcopy").arg(&image).arg(&uri).status();
    let Ok(copied) = copied else {
        println!("skipped: pages written back: nbdcopy (Debian: libnbd-bin) is not installed");
        return;
    };
    assert!(copied.success());
    let ask = |words: &[&str]| {
        json(dyno(
            home.path(),
            &[&["pages"], words, &["--json"]].concat(),
        ))
    };
    assert_eq!(ask(&["status"])["raw"]["pages"], 4096);
    assert_eq!(
        ask(&["writeback"])["written_back_pages"],
        0,
        "touched just now"
    );
    assert_eq!(ask(&["idle"])["idle_pages"], 4096);
    let most = ["writeback", "incompressible", "--most", "4MiB"];
    assert_eq!(ask(&most)["written_back_pages"], 1024);
    assert_eq!(ask(&["writeback"])["written_back_pages"], 3072);
    let status = ask(&["status"]);
    assert_eq!(
        (&status["file"]["pages"], &status["raw"]["pages"]),
        (&4096.into(), &0.into())
    );
    let back = home.path().join("back");
    let copied = Command::new("nbdcopy").arg(&uri).arg(&back).status();
    assert!(copied.expect("it was there").success());
    assert!(
        std::fs::read(&back).expect("a file") == noise,
        "what was written back"
    );
    assert!(ask(&["status"])["read_bytes"].as_u64() >= Some(16 << 20));
    assert_eq!(ask(&["reset"])["forgotten_pages"], 4096);
    assert_eq!(ask(&["status"])["stored_pages"], 0);
}

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
    if let Some(reason) = no_device() {
        println!("skipped: dyno pages attach: {reason}");
        return None;
    }
    let name = format!("pg-{purpose}-{}", std::process::id());
    let (done, device) = said(dyno(home, &[&ATTACH[..], &["--name", &name]].concat()));
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
    // The holder starts a killed daemon again by itself; who reads waits meanwhile.
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
