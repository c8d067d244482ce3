//! `dyno pages` as its users meet it: a store that is served and asked, and a device and a pager
//! whose daemon is killed.

mod device;
mod pager;

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn dyno(home: &Path, arguments: &[&str]) -> Command {
    dyno_at(assert_cmd::cargo::cargo_bin!("dyno"), home, arguments)
}

fn dyno_at(program: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
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

#[test]
fn a_file_that_is_not_a_socket_is_not_taken_for_the_one_that_a_dead_process_left() {
    let home = tempfile::tempdir().expect("a directory");
    let folder = home.path().join("stores/pages");
    std::fs::create_dir_all(&folder).expect("a folder");
    let control = folder.join("control");
    std::fs::write(&control, "a user's").expect("a file");
    let listen = format!("unix:{}", home.path().join("nbd").display());
    let serve = ["pages", "serve", "--size", "1MiB", "--nbd", &listen];
    let (done, refused) = said(dyno(home.path(), &serve));
    assert!(!done && refused.contains("not a socket"), "{refused}");
    let kept = std::fs::read_to_string(&control).expect("it is there");
    assert_eq!(kept, "a user's");
}

#[test]
fn attach_without_root_says_that_it_needs_it() {
    use std::os::unix::process::CommandExt;
    let home = tempfile::tempdir().expect("a directory");
    let mut attach = dyno(home.path(), &["pages", "attach", "--size", "1MiB"]);
    if std::fs::metadata("/proc/self").is_ok_and(|us| std::os::unix::fs::MetadataExt::uid(&us) == 0)
    {
        // The user without rights, by the number that it has everywhere.
        attach.uid(65_534);
    }
    let output = match attach.output() {
        Ok(output) => output,
        Err(error) => return println!("skipped: another user cannot start the program: {error}"),
    };
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && text.contains("attach needs root"),
        "{text}"
    );
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
fn a_watched_status_ends_at_ctrl_c_and_not_a_turn_later() {
    let home = tempfile::tempdir().expect("a directory");
    let listen = format!("unix:{}", home.path().join("nbd").display());
    let _serve = serving(home.path(), &listen, &[]);
    let watch = dyno(home.path(), &["pages", "status", "--watch", "10m"])
        .stdout(Stdio::piped())
        .spawn();
    let mut watch = Running(watch.expect("it starts"));
    let mut out = BufReader::new(watch.0.stdout.take().expect("piped"));
    out.read_line(&mut String::new()).expect("a first turn");
    signal("-INT", watch.0.id());
    wait_until("the watch ends", || {
        watch.0.try_wait().expect("a child").is_some()
    });
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
