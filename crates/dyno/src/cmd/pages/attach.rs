//! `dyno pages attach` and `detach`: a store as a block device of this machine, by ublk or by a file system of one file
//! (FUSE) and a loop device on it. Three processes: this one, which ends; a holder, which keeps the memory and the
//! device's end; and a daemon, which serves the device and may die and be started again.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use dyno_pages::Store;
use dyno_pages_fuse::{DEVICE, LoopDevice, LoopOptions, mount};
use dyno_pages_hold::{Client, start};

use super::daemon::{CONNECTION, FILE, MEMORY};
use super::device::{self, Front};
use super::kept::Kept;
use super::place::Place;
use super::{control, store};
use crate::args::{PagesAttachArgs, PagesNameArgs};
use crate::exit::Exit;
use crate::terminal;

/// How long a process may take to answer.
const WAIT: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(20);

pub fn run(args: &PagesAttachArgs) -> anyhow::Result<Exit> {
    let place = Place::of(&args.name)?;
    if control::ask(&place.control(), "status").is_ok() {
        bail!(
            "{} is attached already; `dyno pages detach --name {0}` ends it",
            args.name
        );
    }
    if let Ok(holder) = Client::connect(&place.hold()) {
        // The daemon is gone and its memory is there: what waits for it goes on.
        let memory = holder
            .get(MEMORY)
            .context("the holder is there, but no store in it")?;
        let kept = Kept::parse(&memory.note)?;
        drop(memory);
        start_daemon(args, &place, true)?;
        if Kept::of(args, kept.front)? != kept {
            eprintln!("dyno: it is served as it was made; other settings take a detach first");
        }
        let device = device::of_place(&place).context("no device is noted")?;
        let text = format!("{} again, with all its pages", device.display());
        terminal::print(&text)?;
        return Ok(Exit::Done);
    }
    let front = Front::choose(args)?;
    if args.swap {
        refuse_with_swap(args)?;
    }
    place.make()?;
    let made = attach(args, front, &place).and_then(|device| {
        if args.swap {
            device::swap_on(&device)?;
        }
        if let Some(kind) = &args.mkfs {
            device::make_file_system(kind, &device)?;
        }
        Ok(device)
    });
    if made.is_err() {
        // What was made so far goes again; the reason is the first error, not one of these.
        let _ = end(&place);
    }
    terminal::print(&made?.display().to_string())?;
    Ok(Exit::Done)
}

/// What takes memory while pages are written, when the system has none left.
fn refuse_with_swap(args: &PagesAttachArgs) -> anyhow::Result<()> {
    ensure!(
        !args.store.share,
        "--swap and --share: a store that shares takes more memory with each page that is written"
    );
    ensure!(
        args.store.backing.is_none(),
        "--swap and --backing: to write to a file the system takes memory, which it has none of when it swaps"
    );
    Ok(())
}

fn attach(args: &PagesAttachArgs, front: Front, place: &Place) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(own);
    command.args(["pages", "hold"]).arg(place.hold());
    // It stays when this process ends, and so would a pipe that somebody reads to its end.
    command.stderr(log(place)?);
    let holder = start(command, &place.hold(), WAIT)?;
    let file = store::file_of(&args.store)?;
    let store = Store::create(store::settings(&args.store, file.as_ref())?)?;
    if let Some(file) = &file {
        holder.put(FILE, b"", file.as_fd())?;
    }
    let note = Kept::of(args, front)?.note();
    holder.put(MEMORY, &note, store.memory_file())?;
    drop(store);
    if front == Front::Ublk {
        start_daemon(args, place, false)?;
        return device::of_place(place).context("the daemon noted no device");
    }
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
    command.args(["pages", "device", "--name", &args.name]);
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

pub fn detach(args: &PagesNameArgs) -> anyhow::Result<Exit> {
    let place = Place::of(&args.name)?;
    ensure!(place.hold().exists(), "{} is not attached", args.name);
    end(&place)?;
    Ok(Exit::Done)
}

/// Ends the device, the mount, the daemon and the holder, in this order.
fn end(place: &Place) -> anyhow::Result<()> {
    device::end(place, WAIT)?;
    if let Ok(holder) = Client::connect(&place.hold()) {
        holder.end()?;
    }
    place.remove()
}
