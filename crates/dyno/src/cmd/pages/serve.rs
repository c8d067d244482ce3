//! `dyno pages serve`: a store for NBD clients, here or on other machines.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use dyno_pages::{Background, Schedule, Settings, Store};
use dyno_pages_disk::Disk;
use dyno_pages_nbd::{Clients, Export, Exports, Options, Server, Tls};
use dyno_pubsub_broker::serve::{Endpoint, Registry, tls};
use dyno_suite::Stop;

use super::control;
use super::place::Place;
use crate::args::{PagesServeArgs, PagesStoreArgs};
use crate::exit::Exit;
use crate::terminal;

/// Between two looks whether to stop.
const TICK: Duration = Duration::from_millis(50);

pub fn run(args: &PagesServeArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let place = Place::of(&args.name)?;
    place.make()?;
    let store = Arc::new(Store::create(settings(&args.store))?);
    control::listen(&place.control(), Arc::clone(&store))?;
    let background = Background::start(Arc::clone(&store), schedule(&args.store))?;
    let export = Export {
        name: args.name.clone(),
        description: "compressed pages in memory".to_string(),
        disk: Arc::new(Disk::new(Arc::clone(&store))),
        read_only: false,
    };
    let options = Options {
        tls: server_tls(args)?,
        open_to_all: args.open_to_all,
        ..Options::default()
    };
    let address = args.nbd.parse().context("--nbd")?;
    let mut server = Server::start(&address, Exports::new(vec![export])?, options)?;
    let mut text = format!("listening at {}\n", server.address());
    let endpoint = args.metrics.map(|at| metrics(at, &store)).transpose()?;
    if let Some(endpoint) = &endpoint {
        // Writing to a text does not fail.
        let _ = writeln!(text, "metrics at http://{}/metrics", endpoint.address());
    }
    terminal::print(&text)?;
    while !stop.asked() {
        thread::sleep(TICK);
    }
    server.stop();
    background.stop()?;
    place.remove()?;
    Ok(Exit::Done)
}

/// Memory above the size: a page that is written over has two slots for a moment, and each size of slot has
/// a span that is not full.
const ROOM: u64 = 32 << 20;

/// What the flags about a store come to.
pub fn settings(args: &PagesStoreArgs) -> Settings {
    let pages = args.size.div_ceil(dyno_pages::PAGE_BYTES as u64);
    Settings {
        share: args.share,
        ..Settings::new(pages, args.limit.unwrap_or(args.size.saturating_add(ROOM)))
    }
}

/// The same for its background thread.
pub fn schedule(args: &PagesStoreArgs) -> Schedule {
    schedule_of(args.idle, args.cpu)
}

/// Pages idle for so long are packed again, within a share of one processor.
pub fn schedule_of(idle: Duration, cpu_share: f64) -> Schedule {
    let passes = Schedule::default().idle;
    Schedule {
        age_every: idle / u32::from(passes),
        cpu_share,
        ..Schedule::default()
    }
}

fn server_tls(args: &PagesServeArgs) -> anyhow::Result<Option<Tls>> {
    let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) else {
        return Ok(None);
    };
    Ok(Some(match &args.tls_clients {
        None => Tls {
            config: tls::server(certificate, key)?,
            clients: Clients::Anybody,
        },
        Some(roots) => Tls {
            config: tls::server_for(roots, certificate, key)?,
            clients: Clients::Certified,
        },
    }))
}

/// What a store holds, for Prometheus; looked at when it is asked for.
pub fn metrics(at: SocketAddr, store: &Arc<Store>) -> anyhow::Result<Endpoint> {
    let registry = Registry::new();
    let gauge = |name: &str, help: &str| registry.gauge(name, help, &[]);
    let stored = gauge("pages_stored", "Pages that hold something.")?;
    let resident = gauge(
        "pages_resident_bytes",
        "Memory that the system holds for the store.",
    )?;
    let slots = gauge("pages_slot_bytes", "Bytes of slots taken.")?;
    let refused = gauge(
        "pages_refused",
        "Pages refused for want of space since the start.",
    )?;
    let zstd = gauge("pages_packed_again", "Pages in the second tier.")?;
    let store = Arc::clone(store);
    let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    registry.refresh_by(move || {
        if let Ok(stats) = store.stats() {
            stored.set(whole(stats.stored_pages()));
            resident.set(whole(stats.resident_bytes + stats.beside_bytes));
            slots.set(whole(stats.slot_bytes));
            refused.set(whole(stats.refused));
            zstd.set(whole(stats.zstd.pages));
        }
    });
    Ok(Endpoint::start(
        at,
        registry,
        dyno_pubsub_broker::serve::Settings::default(),
    )?)
}
