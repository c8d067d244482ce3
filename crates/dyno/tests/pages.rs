//! `dyno pages` as its users meet it: a store that is served and asked, and a device whose daemon is killed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn dyno(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dyno"));
    command.env("XDG_RUNTIME_DIR", home).args(arguments);
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
    assert!(
        !done && again.contains("a process answers there already"),
        "{again}"
    );
    let pid = serve.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .expect("kill")
            .success()
    );
    assert!(serve.0.wait().expect("its end").success());
    assert!(!home.path().join("dyno-pages/pages").exists());
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
    assert!(!home.path().join("dyno-pages").exists(), "nothing is left");
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

#[test]
fn a_device_outlives_its_daemon() {
    if let Some(reason) = no_device() {
        println!("skipped: dyno pages attach: {reason}");
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let name = format!("outlives-{}", std::process::id());
    let attach = [
        "pages", "attach", "--size", "16MiB", "--name", &name, "--front", "fuse",
    ];
    let (done, device) = said(dyno(home.path(), &attach));
    if !done && device.contains("ermi") {
        println!("skipped: dyno pages attach: {device}");
        return;
    }
    assert!(done, "{device}");
    let device = device.trim().to_string();
    let written = [0x5a; 8192];
    let mut file = OpenOptions::new()
        .write(true)
        .open(&device)
        .expect("the device");
    file.write_all(&written)
        .and_then(|()| file.sync_all())
        .expect("room");
    drop(file);
    let (_, refused) = said(dyno(home.path(), &attach));
    assert!(refused.contains("is attached already"), "{refused}");
    // The holder's process has the folder's name in its arguments, the daemon its own.
    let daemon = format!("pages device --name {name}");
    let found = Command::new("pgrep").args(["-f", &daemon]).output();
    let pid = String::from_utf8_lossy(&found.expect("pgrep").stdout)
        .trim()
        .to_string();
    assert!(
        Command::new("kill")
            .args(["-KILL", &pid])
            .status()
            .expect("kill")
            .success()
    );
    // The kernel may still have the killed one's socket for a moment.
    let again = (0..100).find_map(|_| {
        let (done, again) = said(dyno(home.path(), &attach));
        std::thread::sleep(std::time::Duration::from_millis(20));
        done.then_some(again)
    });
    assert!(again.expect("it comes back").contains("with all its pages"));
    let mut file = File::open(&device).expect("the device");
    file.seek(SeekFrom::Start(0)).expect("its start");
    let mut read = vec![0; written.len()];
    file.read_exact(&mut read).expect("its bytes");
    drop(file);
    assert!(read == written);
    let (done, text) = said(dyno(home.path(), &["pages", "detach", "--name", &name]));
    assert!(done, "{text}");
    assert!(!home.path().join("dyno-pages").join(&name).exists());
}
