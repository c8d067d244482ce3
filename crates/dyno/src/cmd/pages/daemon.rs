//! The two processes behind an attached device: a holder, which keeps the memory and the device's end, and a daemon,
//! which serves the device and may die and be started again.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use dyno_pages::{Background, Store};
use dyno_pages_disk::Disk;
use dyno_pages_fuse::{Connection, Serving, Start};
use dyno_pages_hold::{Client, Holder};
use dyno_pages_ublk::{Device, Settings, prepare_for_swap};
use dyno_suite::Stop;

use super::control::{self, Asked};
use super::device::{self, Front};
use super::kept::Kept;
use super::metrics;
use super::place::Place;
use crate::args::PagesDeviceArgs;
use crate::exit::Exit;

/// Names of what the holder keeps.
pub const MEMORY: &str = "store";
pub const CONNECTION: &str = "fuse";
pub const FILE: &str = "file";

const TICK: Duration = Duration::from_millis(20);

/// The holder: keeps what it is given until it is told to end.
pub fn hold(socket: &Path) -> anyhow::Result<Exit> {
    Holder::bind(socket)?.run()?;
    Ok(Exit::Done)
}

/// The daemon: serves the device until it is ended.
pub fn run(args: &PagesDeviceArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let place = Place::of(&args.name)?;
    let holder = Client::connect(&place.hold())?;
    let memory = holder.get(MEMORY)?;
    let kept = Kept::parse(&memory.note)?;
    let file = kept.has_file().then(|| holder.get(FILE)).transpose()?;
    let (store, found) = Store::reopen(memory.file, kept.settings(file.as_ref()))?;
    drop(file);
    if found.damaged > 0 {
        eprintln!(
            "dyno: {} entries are damaged; reading them is refused",
            found.damaged
        );
    }
    let store = Arc::new(store);
    if kept.swap {
        // Before the threads are made that the device is served by, which take it over.
        prepare_for_swap()?;
    }
    let disk = Arc::new(match kept.null {
        false => Disk::new(Arc::clone(&store)),
        true => Disk::null(Arc::clone(&store)),
    });
    let serving = begin(&kept, &place, &holder, &disk, args.again)?;
    let _background = Background::start(Arc::clone(&store), kept.schedule())?;
    let _endpoint = kept
        .metrics
        .map(|at| metrics::endpoint(at, &store))
        .transpose()?;
    let fixed = kept.swap;
    control::listen(&place.control(), Asked { disk, fixed })?;
    // Whoever ends it before the device is ended can start it again: the memory is the holder's.
    while !serving.has_ended() {
        if stop.asked() {
            return Ok(Exit::Done);
        }
        thread::sleep(TICK);
    }
    serving.wait()?;
    Ok(Exit::Done)
}

fn begin(
    kept: &Kept,
    place: &Place,
    holder: &Client,
    disk: &Arc<Disk>,
    again: bool,
) -> anyhow::Result<Served> {
    match kept.front {
        Front::Fuse => {
            let connection = Connection::of_held(holder.get(CONNECTION)?.file);
            let how = if again { Start::Resumed } else { Start::Fresh };
            let threads = usize::from(kept.queues);
            Ok(Served::Fuse(Serving::begin(
                &connection,
                disk,
                threads,
                how,
            )?))
        }
        Front::Ublk if again => {
            let path = device::of_place(place).context("no device is noted")?;
            let number = Device::number_of(&path).context("no device of ublk is noted")?;
            Ok(Served::Ublk(Device::recover(number, disk)?))
        }
        Front::Ublk => {
            let settings = Settings {
                queues: kept.queues,
                ..Settings::default()
            };
            let device = Device::create(disk, settings)?;
            fs::write(place.device(), device.path().display().to_string())?;
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
