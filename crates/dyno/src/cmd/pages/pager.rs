//! `dyno pages pager`: the memory of microVMs that are restored from one snapshot.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use dyno_pages::Stats;
use dyno_pages_hold::{Client, ignore_hang_up};
use dyno_pages_microvm::{
    Figures, MachineReport, Options, Pager, Snapshot, held_machines, held_snapshot,
};
use dyno_serve::Endpoint;
use dyno_suite::Stop;
use serde_json::{Value, json};
use tracing::{error, info, warn};

use super::about::{self, resident_bytes};
use super::attach::{HolderKind, start_holder};
use super::store_dir::StoreDir;
use super::{control, device, metrics, store};
use crate::args::PagesPagerArgs;
use crate::exit::Exit;
use crate::logging;
use crate::terminal;

/// The word for a pager in the answer to `about`.
pub const FRONT: &str = "microvm";
/// Time between two checks for a request to stop.
const TICK: Duration = Duration::from_millis(50);
/// Ticks between two checks of the holder: one second.
const LOOK: u32 = 20;
/// How long another command of the same name may take.
const LOCK_WAIT: Duration = Duration::from_secs(10);

pub fn run(args: &PagesPagerArgs, stop: &Stop) -> anyhow::Result<Exit> {
    logging::start(args.log);
    let store_dir = StoreDir::from_name(&args.name)?;
    store::check_metrics(args.metrics)?;
    // Closing the terminal would otherwise end the process, and microVMs would wait.
    ignore_hang_up();
    // The lock covers everything up to the open socket, so that of two commands of one name the
    // second finds the first one's server, and not a holder that seems to wait for a pager.
    let lock = store_dir.lock(LOCK_WAIT)?;
    refuse_others(&store_dir)?;
    store_dir.make()?;
    let _serves = store_dir.serve()?;
    // A holder that answers there already is used: it has what an earlier pager left.
    let holder = start_holder(&store_dir, HolderKind::Alone)?;
    let started = start(args, &store_dir, &holder);
    if started.is_err() && !waits(&holder) {
        // A holder with no microVM in it goes. The first error is the reason.
        let _ = end(&store_dir, &holder);
    }
    let (about, endpoint) = started?;
    let mut text = format!("listening at unix:{}\n", args.socket.display());
    if let Some(endpoint) = &endpoint {
        text += &format!("metrics at http://{}/metrics\n", endpoint.address());
    }
    terminal::print(&text)?;
    drop(lock);
    let mut ticks = 0;
    while !stop.asked() {
        thread::sleep(TICK);
        ticks += 1;
        if ticks % LOOK == 0 {
            look_around(&about, &store_dir);
        }
    }
    // The pager stops before the lock is taken: its machines wait from here on in any case, and a
    // command that waits for the lock finds them in the holder.
    let machines = about.pager.stop();
    let _lock = store_dir.lock(LOCK_WAIT);
    if machines > 0 {
        warn!(
            "stopping: {machines} microVMs wait at their next page until `dyno pages pager --name {}` runs again",
            args.name
        );
        return Ok(Exit::Done);
    }
    info!("stopping");
    end(&store_dir, &holder)?;
    Ok(Exit::Done)
}

/// Refuses a name that is in use by a process, or by a device whose daemon is dead.
fn refuse_others(store_dir: &StoreDir) -> anyhow::Result<()> {
    let name = store_dir.name();
    store_dir.refuse_served()?;
    // Its holder would answer a pager just as well, and the pager would let go of the files of the
    // device when it ends.
    let attached = match Client::connect(&store_dir.hold()) {
        Ok(holder) => holder
            .list()?
            .iter()
            .any(|held| held == super::daemon::MEMORY),
        Err(_) => false,
    };
    ensure!(
        !attached && !device::is_left(store_dir)?,
        "{name} is a block device; take another --name"
    );
    Ok(())
}

/// Whether a pager answers for this name.
pub fn answers(store_dir: &StoreDir) -> bool {
    let about = control::ask(&store_dir.control(), "about");
    about.is_ok_and(|about| about["front"] == FRONT)
}

/// Refuses a name under which microVMs wait for a pager.
pub fn refuse_held(store_dir: &StoreDir) -> anyhow::Result<()> {
    let name = store_dir.name();
    let held = Client::connect(&store_dir.hold()).and_then(|holder| holder.list());
    let waits = held.is_ok_and(|held| held.iter().any(|held| held == Pager::HELD_AS));
    ensure!(
        !waits,
        "{name} is a pager of microVMs that has ended: `dyno pages pager --name {name}` with the same snapshot goes on, \
         `dyno pages detach --name {name}` gives its microVMs up"
    );
    Ok(())
}

/// Whether a living microVM waits for a pager. One that cannot be looked at counts as living.
fn waits(holder: &Client) -> bool {
    match held_snapshot(holder) {
        Ok(Some(snapshot)) => held_machines(holder, &snapshot).map_or(true, |count| count > 0),
        Ok(None) => false,
        Err(_) => true,
    }
}

/// Ends the holder and removes the folder.
fn end(store_dir: &StoreDir, holder: &Client) -> anyhow::Result<()> {
    holder.end()?;
    store_dir.remove()
}

/// The snapshot that the holder has, if it is the one at `path`; otherwise the file is packed.
fn snapshot(path: &Path, holder: &Client) -> anyhow::Result<Snapshot> {
    if let Some(held) = held_snapshot(holder)? {
        // Compared by inode and time of change and not by contents: microVMs wait meanwhile, and
        // reading the whole file would take as long as packing it.
        if held.is_of(path)? {
            return Ok(held);
        }
        // Their memory is a mixture of pages that they have and pages of the old file. Pages of
        // another file would fit to none of them.
        let machines = held_machines(holder, &held)?;
        ensure!(
            machines == 0,
            "{machines} microVMs wait for another snapshot than {}, or for this file as it was: serve it under another \
             --name, or give them up with `dyno pages detach`",
            path.display()
        );
    }
    let began = std::time::Instant::now();
    let packed = Snapshot::pack(path)?;
    info!(
        "{}: {} MiB packed to {} MiB in {:.1?}",
        path.display(),
        packed.bytes() >> 20,
        packed.store().stats()?.resident_bytes >> 20,
        began.elapsed()
    );
    Ok(packed)
}

/// A pager with everything that is reported of it.
struct About {
    store_dir: StoreDir,
    pager: Pager,
    socket: PathBuf,
    snapshot: PathBuf,
    working_set: Option<PathBuf>,
    metrics: Option<SocketAddr>,
}

fn start(
    args: &PagesPagerArgs,
    store_dir: &StoreDir,
    holder: &Client,
) -> anyhow::Result<(Arc<About>, Option<Endpoint>)> {
    let snapshot = snapshot(&args.snapshot, holder)?;
    let working_set = match (&args.working_set, args.no_prefetch) {
        (_, true) => None,
        (Some(path), false) => Some(path.clone()),
        (None, false) => {
            let mut name = args.snapshot.clone().into_os_string();
            name.push(".working-set");
            Some(PathBuf::from(name))
        }
    };
    let options = Options {
        working_set: working_set.clone(),
        record: args.record_for,
        ..Options::new(args.socket.clone())
    };
    // From here on the holder has the snapshot, and microVMs that waited are served.
    let pager = Pager::start(snapshot, holder.clone(), options)
        .with_context(|| format!("cannot serve at {}", args.socket.display()))?;
    let about = Arc::new(About {
        store_dir: store_dir.clone(),
        pager,
        socket: args.socket.clone(),
        snapshot: args.snapshot.clone(),
        working_set,
        metrics: args.metrics,
    });
    // Opened last, so that a command that gets an answer knows that the socket is there.
    let endpoint = args.metrics.map(|at| endpoint(at, &about)).transpose()?;
    let answering = Arc::clone(&about);
    control::listen(&store_dir.control(), move |question| {
        answering.answer(question)
    })?;
    Ok((about, endpoint))
}

/// Replaces a holder that has died: without one, microVMs would not survive this process.
fn look_around(about: &About, store_dir: &StoreDir) {
    if Client::connect(&store_dir.hold()).is_ok() {
        return;
    }
    let Ok(_lock) = store_dir.lock(Duration::ZERO) else {
        // A command is at work on this name; the next look tries again.
        return;
    };
    // What the dead holder had is still open in this process, so nothing is lost unless both die
    // within this second.
    let again = start_holder(store_dir, HolderKind::Alone)
        .and_then(|holder| Ok(about.pager.hold_again(&holder)?));
    match again {
        Ok(()) => warn!("the holder had died; another one has the microVMs"),
        Err(error) => error!("the holder has died, and there is no other: {error:#}"),
    }
}

impl About {
    fn answer(&self, question: &str) -> anyhow::Result<Value> {
        match question {
            "about" => Ok(about::itself(&self.store_dir, FRONT)),
            "status" => self.status(),
            _ => bail!(
                "{} is a pager of microVMs: there are about and status",
                self.store_dir.name()
            ),
        }
    }

    fn status(&self) -> anyhow::Result<Value> {
        let stats = self.pager.snapshot().store().stats()?;
        let mut all = about::itself(&self.store_dir, FRONT);
        let machines = self.pager.machines();
        let part = json!({
            "address": format!("unix:{}", self.socket.display()),
            "holder": Client::connect(&self.store_dir.hold()).is_ok(),
            "metrics": self.metrics.map(|at| at.to_string()),
            "snapshot": self.snapshot.display().to_string(),
            "size_bytes": self.pager.snapshot().bytes(),
            "stored_pages": stats.stored_pages(),
            "shared_pages": stats.shared,
            "slot_bytes": stats.slot_bytes,
            "resident_bytes": stats.resident_bytes,
            "beside_bytes": stats.beside_bytes,
            "corrupt": { "pages": stats.corrupt_pages, "reads": stats.corrupt_reads },
            "working_set": {
                "file": self.working_set.as_ref().map(|path| path.display().to_string()),
                "pages": self.pager.working_set_pages(),
            },
            "restores": self.pager.restores(),
            "refused": self.pager.refused(),
            "served": of_figures(&self.pager.figures()),
            "machines": machines.iter().map(of_machine).collect::<Vec<_>>(),
        });
        about::extend(&mut all, part);
        Ok(all)
    }
}

fn of_figures(figures: &Figures) -> Value {
    json!({
        "faults": figures.faults,
        "placed_pages": figures.placed,
        "zero_pages": figures.zeros,
        "prefetched_pages": figures.prefetched,
        "removed_pages": figures.removed,
        "poisoned_pages": figures.poisoned,
        "deferred": figures.deferred,
    })
}

fn of_machine(machine: &MachineReport) -> Value {
    json!({
        "number": machine.number,
        "pid": machine.pid,
        "size_bytes": machine.bytes,
        "served_ms": machine.served.as_millis() as u64,
        "taken_over": machine.taken_over,
        "served": of_figures(&machine.figures),
    })
}

/// What a scrape of the metrics reads.
struct Scrape {
    stats: Stats,
    served: Figures,
    machines: usize,
    restores: u64,
    refused: u64,
    bytes: u64,
}

/// Reads one figure of a scrape.
type Figure = fn(&Scrape) -> u64;

/// Names, what they are, and where they come from. Those that end with _total only rise.
const FIGURES: [(&str, &str, Figure); 15] = [
    ("pages_snapshot_bytes", "Bytes of the snapshot.", |s| {
        s.bytes
    }),
    (
        "pages_resident_bytes",
        "Memory that the system holds for the packed snapshot.",
        |s| s.stats.resident_bytes + s.stats.beside_bytes,
    ),
    (
        "pages_process_resident_bytes",
        "Memory of the whole process, the packed snapshot included.",
        |_| resident_bytes().unwrap_or(0),
    ),
    (
        "pages_shared",
        "Pages of the snapshot that share another page's memory.",
        |s| s.stats.shared,
    ),
    (
        "pages_corrupt_reads_total",
        "Reads refused because the page is damaged.",
        |s| s.stats.corrupt_reads,
    ),
    (
        "pages_corrupt",
        "Different damaged pages that were met since the start.",
        |s| s.stats.corrupt_pages,
    ),
    ("pages_microvms", "MicroVMs that are served now.", |s| {
        s.machines as u64
    }),
    (
        "pages_microvms_restored_total",
        "MicroVMs that connected and were served.",
        |s| s.restores,
    ),
    (
        "pages_microvms_refused_total",
        "Connections of VMMs that were refused.",
        |s| s.refused,
    ),
    ("pages_faults_total", "Faults of microVMs.", |s| {
        s.served.faults
    }),
    (
        "pages_placed_total",
        "Pages put in place by a fault.",
        |s| s.served.placed,
    ),
    (
        "pages_prefetched_total",
        "Pages put in place ahead of a fault.",
        |s| s.served.prefetched,
    ),
    (
        "pages_zeros_total",
        "Pages of zeros put in place, by a fault or ahead of it.",
        |s| s.served.zeros,
    ),
    ("pages_removed_total", "Pages that microVMs gave up.", |s| {
        s.served.removed
    }),
    (
        "pages_poisoned_total",
        "Touches of damaged pages, which raised SIGBUS.",
        |s| s.served.poisoned,
    ),
];

fn endpoint(at: SocketAddr, about: &Arc<About>) -> anyhow::Result<Endpoint> {
    let about = Arc::clone(about);
    let scrape = move || {
        let pager = &about.pager;
        Some(Scrape {
            stats: pager.snapshot().store().stats().ok()?,
            served: pager.figures(),
            machines: pager.machines().len(),
            restores: pager.restores(),
            refused: pager.refused(),
            bytes: pager.snapshot().bytes(),
        })
    };
    metrics::endpoint_of(at, &FIGURES, scrape, |figure: Figure, scraped| {
        figure(scraped)
    })
}
