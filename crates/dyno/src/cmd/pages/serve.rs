//! `dyno pages serve`: a store for NBD clients, here or on other machines.

use std::fmt::Write;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use dyno_pages::{Background, Store};
use dyno_pages_disk::Disk;
use dyno_pages_hold::{Client, ignore_hang_up};
use dyno_pages_nbd::{Clients, Export, Exports, Options, Server, Tls};
use dyno_serve::{Endpoint, tls};
use dyno_suite::Stop;
use parking_lot::Mutex;
use tracing::info;

use super::about::{About, Front, StatusService};
use super::store_dir::{Serves, StoreDir};
use super::{control, device, device_options, metrics, pager, store};
use crate::args::{PagesServeArgs, PagesStoreArgs};
use crate::exit::Exit;
use crate::logging;
use crate::terminal;

/// Time between two checks for a request to stop.
const TICK: Duration = Duration::from_millis(50);
/// How long another command of the same name may take.
const LOCK_WAIT: Duration = Duration::from_secs(10);

pub fn run(args: &PagesServeArgs, stop: &Stop) -> anyhow::Result<Exit> {
    logging::start(args.log);
    let store_dir = StoreDir::from_name(&args.name)?;
    store::check_metrics(args.metrics)?;
    // Closing the terminal would otherwise end the process, and every page with it.
    ignore_hang_up();
    let lock = store_dir.lock(LOCK_WAIT)?;
    refuse_others(&store_dir)?;
    store_dir.make()?;
    let served = store_dir
        .serve()
        .and_then(|serves| serve(args, &store_dir, serves));
    if served.is_err() {
        // The folder holds only what this call made. An error of the removal is ignored, because
        // the first error is the reason.
        let _ = store_dir.remove();
    }
    let served = served?;
    terminal::print(&served.text)?;
    drop(lock);
    info!("serving {}", args.name);
    while !stop.asked() {
        thread::sleep(TICK);
        control::log_damage(served.disk.store());
    }
    info!("stopping: the pages of {} are forgotten", args.name);
    // With the lock held the lock's own file is removed too. If another command holds it for longer
    // than the wait, the store still ends, and that command removes the file.
    let _lock = store_dir.lock(LOCK_WAIT);
    served.end(&store_dir)
}

/// Refuses a name that is in use. The folder may be that of a device whose daemon is dead, and then
/// it is the only way to the device's pages.
fn refuse_others(store_dir: &StoreDir) -> anyhow::Result<()> {
    let name = store_dir.name();
    store_dir.refuse_served()?;
    pager::refuse_held(store_dir)?;
    if Client::connect(&store_dir.hold()).is_ok() {
        bail!(
            "{name} is an attached device whose daemon has died: `dyno pages attach --name {name}` starts it again with \
             every page, `dyno pages detach --name {name}` forgets them; or take another --name"
        );
    }
    if device::is_left(store_dir)? {
        bail!(
            "{name} is a device whose processes have died: `dyno pages detach --name {name}` takes it away; or take \
             another --name"
        );
    }
    Ok(())
}

/// Everything that lives while a store is served.
struct Served {
    text: String,
    disk: Arc<Disk>,
    server: Arc<Mutex<Server>>,
    background: Background,
    _endpoint: Option<Endpoint>,
    _serves: Serves,
}

impl Served {
    fn end(self, store_dir: &StoreDir) -> anyhow::Result<Exit> {
        // Clients are stopped before the background work, and the folder goes last, because
        // commands find the store through it.
        self.server.lock().stop();
        let background = self.background.stop();
        store_dir.remove()?;
        background?;
        Ok(Exit::Done)
    }
}

fn serve(args: &PagesServeArgs, store_dir: &StoreDir, serves: Serves) -> anyhow::Result<Served> {
    let address = args.nbd.parse().context("--nbd")?;
    let file = store::file_of(&args.store)?;
    let store = Arc::new(Store::create(store::settings(&args.store, file.as_ref())?)?);
    // The store has opened the file itself, through /proc.
    drop(file);
    let disk = Arc::new(Disk::new(Arc::clone(&store)));
    let PagesStoreArgs {
        idle,
        cpu,
        writeback,
        ..
    } = args.store;
    let schedule = store::schedule(idle, cpu, writeback);
    let background = Background::start(Arc::clone(&store), schedule)?;
    let export = Export {
        name: args.name.clone(),
        description: "compressed pages in memory".to_string(),
        disk: Arc::clone(&disk),
        read_only: false,
    };
    let options = Options {
        tls: server_tls(args)?,
        open_to_all: args.open_to_all,
        most_connections: args.connections,
        client_idle: args.client_idle,
        ..Options::default()
    };
    let server = Server::start(&address, Exports::new(vec![export])?, options)?;
    let mut text = format!("listening at {}\n", server.address());
    let server = Arc::new(Mutex::new(server));
    let about = Arc::new(About {
        store_dir: store_dir.clone(),
        front: Front::Nbd(Arc::clone(&server)),
        codec: device_options::word(args.store.codec),
        level: args.store.level,
        schedule,
        progress: Arc::clone(background.progress()),
        disk: Arc::clone(&disk),
        metrics: args.metrics,
        fixed: false,
    });
    let endpoint = args
        .metrics
        .map(|at| metrics::endpoint(at, &about))
        .transpose()?;
    StatusService(about).listen(&store_dir.control())?;
    if let Some(endpoint) = &endpoint {
        // Writing to a text does not fail.
        let _ = writeln!(text, "metrics at http://{}/metrics", endpoint.address());
    }
    Ok(Served {
        text,
        disk,
        server,
        background,
        _endpoint: endpoint,
        _serves: serves,
    })
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
