//! `dyno pages attach` and `detach`: a store as a block device of this machine, by a file system of one file (FUSE) and
//! a loop device on it. Three processes: this one, which ends; a holder, which keeps the memory and the mount; and a
//! daemon, which serves the file and may die and be started again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use dyno_pages::{Background, Settings, Store};
use dyno_pages_disk::Disk;
use dyno_pages_fuse::{
    Connection, DEVICE, LoopDevice, LoopOptions, Serving, Start, mount, refuse_swap, unmount,
};
use dyno_pages_hold::{Client, Holder, start};
use dyno_suite::Stop;

use super::place::Place;
use super::{control, serve};
use crate::args::{FrontArg, PagesAttachArgs, PagesDeviceArgs, PagesNameArgs};
use crate::exit::Exit;
use crate::terminal;

/// How long a process may take to answer.
const WAIT: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(20);
/// Names of what the holder keeps.
const MEMORY: &str = "store";
const CONNECTION: &str = "fuse";

pub fn run(args: &PagesAttachArgs) -> anyhow::Result<Exit> {
    if args.front == FrontArg::Ublk {
        bail!(
            "--front ublk: this command does not make one yet, the library dyno-pages-ublk does; \
             there is --front fuse"
        );
    }
    if args.swap {
        refuse_swap()?;
    }
    let place = Place::of(&args.name)?;
    if control::ask(&place.control(), "status").is_ok() {
        bail!(
            "{} is attached already; `dyno pages detach --name {0}` ends it",
            args.name
        );
    }
    if let Ok(holder) = Client::connect(&place.hold()) {
        // The daemon is gone and its memory is there: what waits for it goes on.
        holder
            .get(MEMORY)
            .context("the holder is there, but no store in it")?;
        start_daemon(args, &place, true)?;
        let device = fs::read_to_string(place.device())?;
        terminal::print(&format!("{} again, with all its pages", device.trim()))?;
        return Ok(Exit::Done);
    }
    place.make()?;
    let made = attach(args, &place);
    if made.is_err() {
        // What was made so far goes again; the reason is the first error, not one of these.
        let _ = end(&place);
    }
    let device = made?;
    if let Some(kind) = &args.mkfs {
        make_file_system(kind, &device)?;
    }
    terminal::print(&device.display().to_string())?;
    Ok(Exit::Done)
}

fn attach(args: &PagesAttachArgs, place: &Place) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(own);
    command.args(["pages", "hold"]).arg(place.hold());
    // It stays when this process ends, and so would a pipe that somebody reads to its end.
    command.stderr(log(place)?);
    let holder = start(command, &place.hold(), WAIT)?;
    let store = Store::create(serve::settings(&args.store))?;
    holder.put(MEMORY, b"", store.memory_file())?;
    drop(store);
    fs::create_dir_all(place.mount())?;
    let connection = mount(&place.mount())?;
    holder.put(CONNECTION, b"", connection.file())?;
    drop(connection);
    start_daemon(args, place, false)?;
    let device = LoopDevice::attach(&place.mount().join(DEVICE), LoopOptions::default())?;
    let path = device.path().to_path_buf();
    fs::write(place.device(), path.display().to_string())?;
    Ok(path)
}

/// Where both processes say what goes wrong.
fn log(place: &Place) -> anyhow::Result<File> {
    let path = place.log();
    let opened = File::options().create(true).append(true).open(&path);
    opened.with_context(|| format!("cannot write to {}", path.display()))
}

/// Starts the daemon, and waits until it answers.
fn start_daemon(args: &PagesAttachArgs, place: &Place, again: bool) -> anyhow::Result<()> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let log = log(place)?;
    let mut command = Command::new(own);
    command
        .args(["pages", "device", "--name", &args.name])
        .args(["--threads", &args.queues.to_string()])
        .args(["--cpu", &args.store.cpu.to_string()])
        .args(["--idle", &format!("{}ms", args.store.idle.as_millis())]);
    if again {
        command.arg("--again");
    }
    // In a group of its own, so that a Ctrl-C here does not end it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut daemon = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()?;
    let until = Instant::now() + WAIT;
    while control::ask(&place.control(), "status").is_err() {
        if let Some(status) = daemon.try_wait()? {
            let said = fs::read_to_string(place.log()).unwrap_or_default();
            bail!("the daemon ended ({status}): {}", said.trim());
        }
        ensure!(Instant::now() < until, "the daemon does not answer");
        thread::sleep(TICK);
    }
    Ok(())
}

/// The daemon: serves the file until it is unmounted.
pub fn device(args: &PagesDeviceArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let place = Place::of(&args.name)?;
    let holder = Client::connect(&place.hold())?;
    let (store, found) = Store::reopen(holder.get(MEMORY)?.file, Settings::new(1, 1))?;
    if found.damaged > 0 {
        eprintln!(
            "dyno: {} entries are damaged; reading them is refused",
            found.damaged
        );
    }
    let store = Arc::new(store);
    let disk = Arc::new(Disk::new(Arc::clone(&store)));
    let connection = Connection::of_held(holder.get(CONNECTION)?.file);
    let how = if args.again {
        Start::Resumed
    } else {
        Start::Fresh
    };
    let serving = Serving::begin(&connection, &disk, args.threads, how)?;
    drop(connection);
    let schedule = serve::schedule_of(args.idle, args.cpu);
    let _background = Background::start(Arc::clone(&store), schedule)?;
    control::listen(&place.control(), store)?;
    // Whoever ends it before an unmount can start it again: the memory is the holder's.
    while !serving.has_ended() && !stop.asked() {
        thread::sleep(TICK);
    }
    Ok(Exit::Done)
}

/// The holder: keeps what it is given until it is told to end.
pub fn hold(socket: &Path) -> anyhow::Result<Exit> {
    Holder::bind(socket)?.run()?;
    Ok(Exit::Done)
}

pub fn detach(args: &PagesNameArgs) -> anyhow::Result<Exit> {
    let place = Place::of(&args.name)?;
    ensure!(place.hold().exists(), "{} is not attached", args.name);
    end(&place)?;
    Ok(Exit::Done)
}

/// Ends the device, the mount, the daemon and the holder, in this order.
fn end(place: &Place) -> anyhow::Result<()> {
    if let Ok(device) = fs::read_to_string(place.device()) {
        refuse_used(device.trim())?;
        LoopDevice::of_path(PathBuf::from(device.trim())).detach()?;
    }
    unmount_when_free(place)?;
    if let Ok(holder) = Client::connect(&place.hold()) {
        holder.end()?;
    }
    place.remove()
}

/// A device whose file system is mounted is not taken away.
fn refuse_used(device: &str) -> anyhow::Result<()> {
    let mounts = fs::read_to_string("/proc/mounts").context("/proc/mounts")?;
    let used = mounts
        .lines()
        .find_map(|line| line.strip_prefix(device)?.split(' ').nth(1));
    match used {
        None => Ok(()),
        Some(at) => bail!("{device} is mounted at {at}: unmount it first"),
    }
}

/// The loop device lets go of the file a moment after it was told to.
fn unmount_when_free(place: &Place) -> anyhow::Result<()> {
    let until = Instant::now() + WAIT;
    loop {
        match unmount(&place.mount()) {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() >= until => return Err(error.into()),
            Err(_) => thread::sleep(TICK),
        }
    }
}

fn make_file_system(kind: &str, device: &Path) -> anyhow::Result<()> {
    let program = format!("mkfs.{kind}");
    let output = Command::new(&program)
        .arg(device)
        .output()
        .with_context(|| format!("--mkfs {kind}: cannot start {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}", said.trim());
    Ok(())
}
