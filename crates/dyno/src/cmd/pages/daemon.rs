//! The two processes behind an attached device: a holder, which keeps the memory and the device's
//! end, and a daemon, which serves the device and may die and be started again.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use dyno_pages::{Background, Store};
use dyno_pages_disk::Disk;
use dyno_pages_fuse::{Connection, Serving, Start, prepare_to_serve};
use dyno_pages_hold::{Client, HeldFile, Holder, ignore_hang_up};
use dyno_pages_ublk::{Device, Settings, prepare_for_swap};
use dyno_suite::Stop;
use tracing::{error, warn};

use super::about::{self, About, StatusService};
use super::attach::{HolderKind, start_holder};
use super::device::{self, Front};
use super::device_options::{DeviceOptions, word};
use super::store_dir::StoreDir;
use super::watch::watch;
use super::{control, metrics};
use crate::args::{PagesDeviceArgs, PagesHoldArgs};
use crate::exit::Exit;

/// Names of what the holder keeps.
pub const MEMORY: &str = "store";
pub const CONNECTION: &str = "fuse";
pub const FILE: &str = "file";

const TICK: Duration = Duration::from_millis(20);
/// Ticks between two checks of the holder: one second.
const LOOK: u32 = 50;

/// The holder: keeps what it is given until it is told to end, and starts the daemon again when
/// that dies, unless it is alone.
pub fn hold(args: &PagesHoldArgs) -> anyhow::Result<Exit> {
    ignore_hang_up();
    let store_dir = StoreDir::from_holder_socket(&args.socket)?;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let holder = Holder::bind(&args.socket)?;
    if !args.alone {
        // A daemon that has died leaves writes to its device waiting for the next one. So this
        // process, and those that it starts, which inherit it, wait for no write to a device when
        // they allocate.
        prepare_to_serve();
        thread::Builder::new()
            .name("pages-watch".to_string())
            .spawn(move || watch(&store_dir, program))?;
    }
    holder.run()?;
    Ok(Exit::Done)
}

/// Everything that the holder keeps, so that the daemon can give it to another holder if the first
/// one dies.
struct Holdings {
    note: Vec<u8>,
    store: Arc<Store>,
    connection: Option<Connection>,
    file: Option<HeldFile>,
}

impl Holdings {
    /// Starts a new holder and gives it everything. Without a holder the memory would be lost with
    /// this process. Returns false if a command holds the lock of the name, because it may be
    /// ending the device; the next check tries again.
    fn hold_again(&self, store_dir: &StoreDir) -> anyhow::Result<bool> {
        let Ok(_lock) = store_dir.lock(Duration::ZERO) else {
            return Ok(false);
        };
        let holder = start_holder(store_dir, HolderKind::Watching)?;
        holder.put(MEMORY, &self.note, self.store.memory_file())?;
        if let Some(connection) = &self.connection {
            holder.put(CONNECTION, b"", connection.file())?;
        }
        if let Some(file) = &self.file {
            holder.put(FILE, b"", file.file.as_fd())?;
        }
        Ok(true)
    }
}

/// The daemon: serves the device until it is ended. It locks the store before it opens anything of
/// it, so that two daemons never serve one memory.
pub fn run(args: &PagesDeviceArgs, stop: &Stop) -> anyhow::Result<Exit> {
    ignore_hang_up();
    let store_dir = StoreDir::from_name(&args.name)?;
    let _serves = store_dir.serve()?;
    let holder = Client::connect(&store_dir.hold())?;
    let memory = holder.get(MEMORY)?;
    let options = DeviceOptions::parse(&memory.note)?;
    // Before the memory is opened, because a daemon that takes over a swap device must wait for no
    // write to it when it allocates; the threads that serve the device inherit it.
    if options.swap {
        prepare_for_swap()?
    } else {
        prepare_to_serve()
    }
    let file = options.has_file().then(|| holder.get(FILE)).transpose()?;
    let (store, found) = Store::reopen(memory.file, options.settings(file.as_ref()))?;
    if found.damaged > 0 {
        error!(
            "{} entries are damaged; reading them is refused",
            found.damaged
        );
    }
    let store = Arc::new(store);
    let disk = if options.null { Disk::null } else { Disk::new };
    let disk = Arc::new(disk(Arc::clone(&store)));
    let serving = begin(&options, &store_dir, &holder, &disk, args.again)?;
    let background = Background::start(Arc::clone(&store), options.schedule())?;
    let about = Arc::new(About {
        store_dir: store_dir.clone(),
        front: about::Front::Device(options.front),
        codec: word(options.codec),
        level: options.level,
        schedule: options.schedule(),
        progress: Arc::clone(background.progress()),
        disk,
        metrics: options.metrics,
        fixed: options.swap,
    });
    let _endpoint = options
        .metrics
        .map(|at| metrics::endpoint(at, &about))
        .transpose()?;
    // Opened last, so that a command that gets an answer knows that the device is served.
    StatusService(about).listen(&store_dir.control())?;
    let holdings = Holdings {
        note: memory.note,
        store,
        connection: match options.front {
            Front::Fuse => Some(Connection::from_held(holder.get(CONNECTION)?.file)),
            Front::Ublk => None,
        },
        file,
    };
    // A kill loses nothing: the memory is the holder's, which starts another daemon.
    let mut ticks = 0;
    while !serving.has_ended() {
        if stop.asked() {
            return Ok(Exit::Done);
        }
        thread::sleep(TICK);
        ticks += 1;
        if ticks % LOOK == 0 {
            look_around(&holdings, &store_dir);
        }
    }
    // Its duplicate of the connection would keep the file system, and so the threads, alive.
    drop(holdings);
    serving.wait()?;
    Ok(Exit::Done)
}

/// Logs damage that was found, and replaces a holder that has died.
fn look_around(holdings: &Holdings, store_dir: &StoreDir) {
    control::log_damage(&holdings.store);
    // A store whose folder is gone was detached, and needs no holder.
    if Client::connect(&store_dir.hold()).is_ok() || !store_dir.exists() {
        return;
    }
    match holdings.hold_again(store_dir) {
        Ok(false) => {}
        Ok(true) => warn!(
            "the holder of {} had died; another one holds its memory",
            store_dir.name()
        ),
        Err(error) => error!(
            "the holder of {} has died, and there is no other: the pages go with this process: {error:#}",
            store_dir.name()
        ),
    }
}

fn begin(
    options: &DeviceOptions,
    store_dir: &StoreDir,
    holder: &Client,
    disk: &Arc<Disk>,
    again: bool,
) -> anyhow::Result<Served> {
    match options.front {
        Front::Fuse => {
            let connection = Connection::from_held(holder.get(CONNECTION)?.file);
            // The kernel greets a connection once. If an earlier daemon has died, that greeting is
            // over, and this daemon must not wait for another.
            let how = if again { Start::Resumed } else { Start::Fresh };
            let threads = usize::from(options.queues);
            Ok(Served::Fuse(Serving::begin(
                &connection,
                disk,
                threads,
                how,
            )?))
        }
        Front::Ublk if again => {
            let path = device::of_store(store_dir).context("no device is noted")?;
            let number = Device::number_of(&path).context("no device of ublk is noted")?;
            Ok(Served::Ublk(Device::recover(number, disk)?))
        }
        Front::Ublk => {
            let settings = Settings {
                queues: options.queues,
                ..Settings::default()
            };
            let device = Device::create(disk, settings)?;
            device::note(store_dir, &device.path())?;
            Ok(Served::Ublk(device))
        }
    }
}

/// The threads of a device.
enum Served {
    Fuse(Serving),
    Ublk(Device),
}

impl Served {
    fn has_ended(&self) -> bool {
        match self {
            Served::Fuse(serving) => serving.has_ended(),
            Served::Ublk(device) => device.has_ended(),
        }
    }

    fn wait(self) -> anyhow::Result<()> {
        match self {
            Served::Fuse(serving) => Ok(serving.wait()?),
            Served::Ublk(device) => Ok(device.wait()?),
        }
    }
}
