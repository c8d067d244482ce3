//! `dyno pages attach` and `detach`: a store as a block device of this machine, by ublk or by a
//! file system of one file (FUSE) and a loop device on it. Three processes: this one, which ends; a
//! holder, which keeps the memory and the device's end; and a daemon, which serves the device, and
//! which the holder starts again when it dies.

use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use dyno_pages::Store;
use dyno_pages_fuse::{DEVICE, LoopDevice, LoopOptions, mount};
use dyno_pages_hold::{Client, start};

use super::daemon::{CONNECTION, FILE, MEMORY};
use super::device::{self, Front};
use super::device_options::DeviceOptions;
use super::store_dir::{self, StoreDir};
use super::watch::{WAIT, log, start_daemon};
use super::{control, pager, store};
use crate::args::{FrontArg, PagesAttachArgs, PagesNameArgs};
use crate::exit::Exit;
use crate::terminal;

/// How long another command of the same name may take.
const LOCK_WAIT: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(20);

pub fn run(args: &PagesAttachArgs) -> anyhow::Result<Exit> {
    let store_dir = StoreDir::from_name(&args.name)?;
    if args.swap {
        refuse_with_swap(args)?;
    }
    store::check_metrics(args.metrics)?;
    // Checked before a front is chosen. Without root the choice would report drivers that cannot be
    // opened, which is not the reason.
    ensure!(
        args.front != FrontArg::Auto || store_dir::user()? == 0,
        "attach needs root, as it makes a block device; `dyno pages serve` needs none"
    );
    let front = Front::choose(args)?;
    // The lock covers everything from looking at what is there to the finished device. Two commands
    // of one name could otherwise both find nothing, and the second would take over the first one's
    // folder.
    let _lock = store_dir.lock(LOCK_WAIT)?;
    refuse_living(&store_dir)?;
    pager::refuse_held(&store_dir)?;
    // A holder that answers has pages in it. Making a new store over them would lose data that
    // waits for a daemon.
    if let Ok(holder) = Client::connect(&store_dir.hold()) {
        return attach_again(args, &store_dir, &holder);
    }
    clear_remains(&store_dir)?;
    store_dir.make()?;
    let made = attach(args, front, &store_dir).and_then(|device| {
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
        let _ = end(&store_dir);
    }
    terminal::print(&made?.display().to_string())?;
    Ok(Exit::Done)
}

/// Refuses a name whose store a process serves.
fn refuse_living(store_dir: &StoreDir) -> anyhow::Result<()> {
    let name = store_dir.name();
    if let Ok(about) = control::ask(&store_dir.control(), "about") {
        match about["front"].as_str() {
            Some("nbd") => bail!(
                "{name} is served to NBD clients by process {}: end that first, or take another --name",
                about["process"]["pid"]
            ),
            Some(pager::FRONT) => bail!(
                "{name} is a pager of microVMs, process {}: end that first, or take another --name",
                about["process"]["pid"]
            ),
            _ => bail!("{name} is attached already; `dyno pages detach --name {name}` ends it"),
        }
    }
    if let Some(process) = store_dir.server() {
        bail!(
            "process {process} serves {name} and does not answer; see {}",
            store_dir.log().display()
        );
    }
    Ok(())
}

/// Starts a daemon for a store whose daemon is gone but whose memory is held. Requests that wait on
/// the device then continue.
fn attach_again(
    args: &PagesAttachArgs,
    store_dir: &StoreDir,
    holder: &Client,
) -> anyhow::Result<Exit> {
    let memory = holder
        .get(MEMORY)
        .context("the holder is there, but no store in it")?;
    let options = DeviceOptions::parse(&memory.note)?;
    drop(memory);
    start_daemon(&own_program()?, store_dir, true)?;
    let differences = options.differences(args);
    if !differences.is_empty() {
        eprintln!(
            "dyno: it is served as it was made: {}; `dyno pages detach` first, and its pages are forgotten",
            differences.join(", ")
        );
    }
    let device = device::of_store(store_dir).context("no device is noted")?;
    let text = format!("{} again, with all its pages", device.display());
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// Removes what a dead holder and a dead daemon left behind. It is of no use, because the memory
/// was lost with the holder, and it would be in the way of a new store.
fn clear_remains(store_dir: &StoreDir) -> anyhow::Result<()> {
    if !store_dir.exists() {
        return Ok(());
    }
    if device::is_left(store_dir)? {
        eprintln!(
            "dyno: the holder and the daemon of {} are dead and its pages with them; what is left of it is taken away",
            store_dir.name()
        );
    }
    device::end(store_dir, WAIT)?;
    store_dir.remove()
}

/// Refuses options that allocate memory while pages are written: when the system swaps, it has none
/// left, and the write would wait for itself.
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

fn own_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find this program's own file")
}

fn attach(args: &PagesAttachArgs, front: Front, store_dir: &StoreDir) -> anyhow::Result<PathBuf> {
    let file = store::file_of(&args.store)?;
    let store = Store::create(store::settings(&args.store, file.as_ref())?)?;
    let holder = start_holder(store_dir, HolderKind::Watching)?;
    // The file is handed over before the memory: a daemon that finds the memory must find the file
    // that the memory's entries point into.
    if let Some(file) = &file {
        holder.put(FILE, b"", file.as_fd())?;
    }
    let note = DeviceOptions::from_args(args, front, store.settings().limit_bytes)?.note();
    holder.put(MEMORY, &note, store.memory_file())?;
    // Dropped before a daemon opens the same memory, so that one process at a time has the store.
    drop(store);
    if front == Front::Ublk {
        start_daemon(&own_program()?, store_dir, false)?;
        return device::of_store(store_dir).context("the daemon noted no device");
    }
    fs::create_dir_all(store_dir.mount())?;
    let connection = mount(&store_dir.mount())?;
    holder.put(CONNECTION, b"", connection.file())?;
    drop(connection);
    start_daemon(&own_program()?, store_dir, false)?;
    // The loop device is attached last: attaching opens the file, which the daemon has to answer.
    let device = LoopDevice::attach(&store_dir.mount().join(DEVICE), LoopOptions::default())?;
    let path = device.path().to_path_buf();
    device::note(store_dir, &path)?;
    Ok(path)
}

/// Whether a holder starts a daemon again that has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderKind {
    Watching,
    Alone,
}

/// Starts a holder, which outlives this process. Its stderr is a file: a caller that reads a pipe
/// to its end would otherwise wait for the holder too.
pub fn start_holder(store_dir: &StoreDir, kind: HolderKind) -> anyhow::Result<Client> {
    let mut command = Command::new(own_program()?);
    command.args(["pages", "hold"]).arg(store_dir.hold());
    if kind == HolderKind::Alone {
        command.arg("--alone");
    }
    command.stderr(log(store_dir)?);
    Ok(start(command, &store_dir.hold(), WAIT)?)
}

pub fn detach(args: &PagesNameArgs) -> anyhow::Result<Exit> {
    let store_dir = StoreDir::from_name(&args.name)?;
    let name = &args.name;
    ensure!(store_dir.exists(), "{name} is not attached");
    let _lock = store_dir.lock(LOCK_WAIT)?;
    // A pager has a holder too, and ends by itself.
    if let (true, Some(process)) = (pager::answers(&store_dir), store_dir.server()) {
        bail!(
            "{name} is a pager of microVMs, process {process}: Ctrl-C or SIGTERM ends it, and then `dyno pages detach \
             --name {name}` gives up those that wait"
        );
    }
    let attached = store_dir.hold().exists() || device::is_left(&store_dir)?;
    if !attached {
        if let Some(process) = store_dir.server() {
            bail!(
                "{name} is served to NBD clients by process {process}: Ctrl-C or SIGTERM ends it, and its pages"
            );
        }
        bail!("{name} is not attached");
    }
    end(&store_dir)?;
    Ok(Exit::Done)
}

/// Ends the device, the mount, the daemon and the holder, in this order.
fn end(store_dir: &StoreDir) -> anyhow::Result<()> {
    device::end(store_dir, WAIT)?;
    // The daemon ends after its device, and writes to its log until then. Removing the folder
    // before that would fail, or leave a log behind.
    let until = Instant::now() + WAIT;
    while let Some(process) = store_dir.server() {
        ensure!(
            Instant::now() < until,
            "the daemon of {}, process {process}, does not end",
            store_dir.name()
        );
        thread::sleep(TICK);
    }
    if let Ok(holder) = Client::connect(&store_dir.hold()) {
        holder.end()?;
    }
    store_dir.remove()
}
