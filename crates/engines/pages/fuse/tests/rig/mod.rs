//! A device with all that belongs to it: a holder and a daemon, which are this program again in the
//! role that a variable names; the file system of one file; and the loop device. All of it goes
//! when the test ends, however it ends.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use dyno_pages::{Settings, Store};
use dyno_pages_disk::Disk;
use dyno_pages_fuse::{
    Connection, DEVICE, LoopDevice, LoopOptions, Serving, Start, mount, unmount,
};
use dyno_pages_hold::{Client, Holder, start};
use tempfile::TempDir;

const ROLE: &str = "DYNO_PAGES_FUSE_ROLE";
const SOCKET: &str = "DYNO_PAGES_FUSE_SOCKET";
/// A step of the system that takes longer has hung.
const MOST_SECONDS: u64 = 240;

/// What this process is when it is not the test.
pub fn play_role() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let socket = PathBuf::from(std::env::var(SOCKET).expect("a path"));
    let start = match role.as_str() {
        "holder" => {
            return Holder::bind(&socket)
                .expect("a place")
                .run()
                .expect("a socket");
        }
        "resumed" => Start::Resumed,
        _ => Start::Fresh,
    };
    let client = Client::connect(&socket).expect("a holder");
    let memory = client.get("store").expect("held").file;
    let (store, found) = Store::reopen(memory, Settings::new(1, 1)).expect("a store");
    assert_eq!(found.damaged, 0);
    let disk = Arc::new(Disk::new(Arc::new(store)));
    let connection = Connection::from_held(client.get("fuse").expect("held").file);
    if role == "swallowing" {
        return swallow_a_write(&connection);
    }
    if role == "alone" {
        client.drop_held("fuse").expect("held");
    }
    let serving = Serving::begin(&connection, &disk, 2, start).expect("threads");
    drop(connection);
    serving.wait().expect("an unmount");
}

/// Takes requests until one of them is a write, and ends with all of them unanswered.
fn swallow_a_write(connection: &Connection) {
    const WRITE: u32 = 16;
    let mut end = File::from(
        connection
            .file()
            .try_clone_to_owned()
            .expect("a descriptor"),
    );
    let mut bytes = vec![0; (1 << 20) + 4096];
    while end.read(&mut bytes).is_ok() {
        if bytes[4..8] == WRITE.to_ne_bytes() {
            return;
        }
    }
    panic!("the file system has ended");
}

fn again(role: &str, socket: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "role", "--nocapture"])
        .env(ROLE, role)
        .env(SOCKET, socket)
        .stdout(Stdio::null());
    command
}

/// See the top.
pub struct Rig {
    daemon: Option<Child>,
    device: Option<LoopDevice>,
    mounted: Vec<PathBuf>,
    holder: Client,
    socket: PathBuf,
    dir: TempDir,
    _watch: Sender<()>,
}

fn shell(script: &str) -> bool {
    let output = Command::new("sh").args(["-c", script]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Whether a device can be made here; says so if not.
pub fn possible(programs: &[&str]) -> bool {
    let opens = |path: &&str| {
        let opened = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path);
        opened.err().map(|error| format!("{path}: {error}"))
    };
    let missing = |program: &&str| {
        let found = shell(&format!("command -v {program}"));
        (!found).then(|| format!("{program} is not installed"))
    };
    // Root in a container may be no root.
    let probe = r#"d=$(mktemp -d) && mount -t tmpfs none "$d" && umount "$d" && rmdir "$d" && test -b "$(losetup -f)""#;
    let reason = ["/dev/fuse", "/dev/loop-control"].iter().find_map(opens);
    let reason = reason
        .or_else(|| programs.iter().find_map(missing))
        .or_else(|| (!shell(probe)).then(|| "no mounts or loop devices here".to_owned()));
    if let Some(reason) = &reason {
        println!("skipped: block device by FUSE and loop: {reason}");
    }
    reason.is_none()
}

impl Rig {
    /// A device of `pages` pages in `limit_bytes`; `daemon` is its role.
    pub fn new(pages: u64, limit_bytes: u64, daemon: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("hold");
        let holder =
            start(again("holder", &socket), &socket, Duration::from_secs(60)).expect("a holder");
        let store = Store::create(Settings::new(pages, limit_bytes)).expect("memory");
        holder.put("store", b"", store.memory_file()).expect("room");
        drop(store);
        let end = dir.path().join("end");
        std::fs::create_dir(&end).expect("a directory");
        let (watch, over) = channel::<()>();
        let watched = end.clone();
        // What waits for a daemon that does not answer fails then, and the test with it.
        std::thread::spawn(move || {
            if over.recv_timeout(Duration::from_secs(MOST_SECONDS))
                == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                let _said = Command::new("umount").arg("-f").arg(watched).status();
            }
        });
        let mut rig = Self {
            daemon: None,
            device: None,
            mounted: Vec::new(),
            holder,
            socket,
            dir,
            _watch: watch,
        };
        rig.mount(daemon);
        rig
    }

    /// The file system of one file, and a daemon for it.
    pub fn mount(&mut self, daemon: &str) {
        let end = self.dir.path().join("end");
        let connection = mount(&end).expect("root, and a directory");
        self.mounted.push(end);
        self.holder
            .put("fuse", b"", connection.file())
            .expect("room");
        drop(connection);
        self.start_daemon(daemon);
    }

    pub fn start_daemon(&mut self, role: &str) {
        let daemon = again(role, &self.socket).spawn().expect("a process");
        self.daemon = Some(daemon);
    }

    /// Waits for the daemon to end by itself.
    pub fn await_daemon(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            assert!(daemon.wait().expect("its end").success());
        }
    }

    pub fn kill_daemon(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().expect("SIGKILL");
            daemon.wait().expect("its end");
        }
    }

    /// The one file.
    pub fn file(&self) -> PathBuf {
        self.dir.path().join("end").join(DEVICE)
    }

    /// The block device, made at the first call.
    pub fn block_device(&mut self) -> String {
        if self.device.is_none() {
            let device = LoopDevice::attach(&self.file(), LoopOptions::default());
            self.device = Some(device.expect("a loop device"));
        }
        let device = self.device.as_ref().expect("made");
        device.path().to_str().expect("UTF-8").to_owned()
    }

    /// Mounts the block device's ext4 in a directory of that name.
    pub fn mount_ext4(&mut self, name: &str) -> PathBuf {
        let at = self.dir.path().join(name);
        std::fs::create_dir_all(&at).expect("a directory");
        let device = self.block_device();
        run(&[
            "mount",
            "-t",
            "ext4",
            "-o",
            "discard",
            &device,
            at.to_str().expect("UTF-8"),
        ]);
        self.mounted.push(at.clone());
        at
    }

    /// Takes the mount that was made last away.
    pub fn unmount_last(&mut self) {
        let at = self.mounted.pop().expect("a mount");
        run(&["umount", at.to_str().expect("UTF-8")]);
    }

    /// Ends the device and its daemon, and reads every page of the store.
    pub fn check_pages(mut self) -> u64 {
        if let Some(device) = self.device.take() {
            device.detach().expect("a device");
        }
        while let Some(at) = self.mounted.pop() {
            unmount(&at).expect("a mount");
        }
        self.kill_daemon();
        let memory = self.holder.get("store").expect("held").file;
        let (store, found) = Store::reopen(memory, Settings::new(1, 1)).expect("a store");
        assert_eq!(found.damaged, 0);
        let bad = store.check().expect("memory");
        assert!(bad.is_empty(), "{bad:?}");
        found.pages
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // In whatever state the test left it: each step is tried.
        while self.mounted.len() > 1 {
            if let Some(at) = self.mounted.pop() {
                let _ = unmount(&at);
            }
        }
        if let Some(device) = self.device.take() {
            let _ = device.detach();
        }
        if let Some(at) = self.mounted.pop() {
            let _ = Command::new("umount").arg("-f").arg(&at).output();
            let _ = unmount(&at);
        }
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        let _ = self.holder.end();
    }
}

/// Runs a command within the time limit; returns what it said.
pub fn tried(words: &[&str]) -> Output {
    Command::new("timeout")
        .args(["--kill-after=10", &MOST_SECONDS.to_string()])
        .args(words)
        .output()
        .expect("timeout")
}

/// The same, and it must go well.
pub fn run(words: &[&str]) -> String {
    let output = tried(words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}{wrong}");
    said
}
