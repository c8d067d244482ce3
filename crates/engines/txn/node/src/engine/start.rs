//! How an engine starts: its threads recover their partitions, then learn of each other and of the stamp
//! that all begin above.

use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use dyno_net::{Address, Listener, Reactor};
use dyno_serve::Token;
use dyno_txn_api::{Result, Stamp};
use dyno_txn_core::{Config, Effects, Partition, Stamps};
use dyno_txn_log::{Checkpointer, Log};

use super::Engine;
use super::core::{Core, Hosted};
use super::elsewhere::Elsewhere;
use super::figures::Figures;
use super::given::Given;
use super::journal::Journal;
use super::layout::Layout;
use super::oracle::{FromElsewhere, Oracle, Taker};
use super::recovery::{log_options, recover};
use super::shared::Shared;
use super::together::Together;
use super::work::Work;
use crate::directory::{Directory, Wanted};
use crate::error::{bad_argument, from_net, unavailable};
use crate::lifecycle::Lifecycle;
use crate::member::Member;
use crate::options::{Durability, OpenOptions, Share};
use crate::persist::{self, Remote, State, Stores};
use crate::pin::pin;
use crate::ports::reactor_options;
use crate::threads::{COMMANDS_MAX, Command, PeerThread};
use crate::time::Time;

/// Memory of a partition at least, so that some rows fit beside its empty index.
const LEAST_MEMORY_BYTES: u64 = 1 << 20;
/// How long stores may take to get what they lack, and how often it is looked.
const STORES_WAIT: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(1);

/// What a thread has found when it has recovered.
struct Ready {
    index: usize,
    newest: Stamp,
    thread: PeerThread,
    checkpointers: Vec<(u32, Checkpointer)>,
}

/// What it gets then.
struct Go {
    floor: Stamp,
    peer_threads: Vec<PeerThread>,
}

/// What a thread begins with.
struct Plan {
    index: usize,
    layout: Layout,
    core: Option<usize>,
    shared: Arc<Shared>,
    options: OpenOptions,
    logs: Vec<std::path::PathBuf>,
    /// Whether the directory is new, so that there may be no logs yet.
    new: bool,
    listener: Option<Listener>,
}

impl Engine {
    /// Starts an engine on a directory, which is made when it is not there. It returns when everything is
    /// recovered.
    pub fn start(
        path: &Path,
        options: &OpenOptions,
        token: Option<Token>,
        listener: Option<Listener>,
        share: Option<&Share>,
    ) -> Result<Self> {
        let wanted = options.threads() as u32;
        let (part, of) = share.map_or((0, 1), |share| (share.part, share.of));
        let how = options.durability;
        let directory = Directory::open(
            path,
            &Wanted {
                partitions: options.partitions,
                threads: wanted,
                durability: how,
                share: (part, of),
                create: options.create,
            },
        )?;
        let mut layout = Layout {
            part,
            of,
            threads: 1,
            partitions: directory.partitions,
        };
        // A directory with fewer partitions than cores keeps those busy that it can.
        let here = layout.here().count();
        enough_memory(options.memory_bytes, here)?;
        layout.threads = here.min(wanted as usize);
        let address = listener.as_ref().map(|listener| listener.address().clone());
        let shared = Arc::new(Shared {
            time: Time::start(),
            oracle: Arc::new(Oracle::new()),
            lifecycle: Arc::new(Lifecycle::default()),
            token,
            durability: directory.durability,
            remote: remote(&directory, here, options)?.map(Arc::new),
            member: share
                .map(|share| member(share, layout, &directory, address.as_ref(), options))
                .transpose()?,
            figures: (0..here).map(|_| Figures::default()).collect(),
            backups: AtomicUsize::new(0),
            desk: std::sync::OnceLock::new(),
        });
        let mut engine = Self {
            shared,
            directory,
            layout,
            peer_threads: Vec::new(),
            threads: Vec::new(),
            checkpointers: Vec::new(),
            address,
        };
        engine.start_threads(options, listener)?;
        engine.wait_for_stores()?;
        Ok(engine)
    }

    fn start_threads(
        &mut self,
        options: &OpenOptions,
        mut listener: Option<Listener>,
    ) -> Result<()> {
        let (layout, threads) = (self.layout, self.layout.threads);
        let (ready, readies) = channel::<Result<Ready>>();
        let mut goes: Vec<Sender<Go>> = Vec::new();
        for index in 0..threads {
            let mine = layout.here().filter(|p| layout.thread(*p) == index);
            let plan = Plan {
                index,
                layout,
                core: options.cores.get(index).copied(),
                shared: self.shared.clone(),
                options: options.clone(),
                logs: mine
                    .map(|partition| self.directory.log(partition))
                    .collect(),
                new: self.directory.is_new(),
                listener: listener.take_if(|_| index == 0),
            };
            let (go, goes_on) = channel();
            goes.push(go);
            let ready = ready.clone();
            let thread = thread::Builder::new()
                .name(format!("txn-{index}"))
                .spawn(move || {
                    let _watch = Watch(plan.shared.clone());
                    run(plan, &ready, &goes_on)
                })
                .map_err(unavailable)?;
            self.threads.push(thread);
        }
        drop(ready);
        // An error drops `goes`: those that wait for their word see that it never comes, and end.
        let found: Result<Vec<Ready>> = readies.iter().take(threads).collect();
        let mut found = found?;
        if found.len() < threads {
            return Err(unavailable("a thread of the engine ended while it started"));
        }
        // All logs are there, and nothing was stored in them yet: from now on none may be missing.
        self.directory.finish()?;
        found.sort_by_key(|ready| ready.index);
        let newest = found.iter().map(|ready| ready.newest).max().unwrap_or(0);
        let time = self.shared.time;
        let floor = time.wall(time.now()).max(newest + 1);
        self.shared.oracle.begin_above(floor);
        let mut checkpointers: Vec<_> = found
            .iter_mut()
            .flat_map(|ready| ready.checkpointers.drain(..))
            .collect();
        checkpointers.sort_by_key(|(partition, _)| *partition);
        self.checkpointers = checkpointers.into_iter().map(|(_, one)| one).collect();
        self.peer_threads = found.into_iter().map(|ready| ready.thread).collect();
        for go in goes {
            let peer_threads = self.peer_threads.clone();
            go.send(Go {
                floor,
                peer_threads,
            })
            .map_err(|_| unavailable("a thread ended early"))?;
        }
        Ok(())
    }

    /// Returns when all processes that keep logs have them, and the disk knows that they do.
    fn wait_for_stores(&self) -> Result<()> {
        let Some(remote) = &self.shared.remote else {
            return Ok(());
        };
        let began = Instant::now();
        while !remote.is_whole() {
            if let Some(why) = self.failure() {
                return Err(unavailable(why));
            }
            if began.elapsed() > STORES_WAIT {
                let note = self.last_note().unwrap_or_default();
                return Err(unavailable(format!(
                    "the processes that keep the log did not get it in {STORES_WAIT:?}: {note}"
                )));
            }
            thread::sleep(LOOK);
        }
        remote.state.activate(&self.directory.path)?;
        remote.activate();
        Ok(())
    }
}

/// Refuses a bound with which hardly a row could be written.
fn enough_memory(memory_bytes: u64, partitions: usize) -> Result<()> {
    let least = LEAST_MEMORY_BYTES * partitions as u64;
    match memory_bytes < least {
        false => Ok(()),
        true => Err(bad_argument(format!(
            "{memory_bytes} bytes of memory are not enough for {partitions} partitions: give at least {} MiB",
            least >> 20
        ))),
    }
}

/// What others must know of this process.
fn member(
    share: &Share,
    layout: Layout,
    directory: &Directory,
    address: Option<&Address>,
    options: &OpenOptions,
) -> Result<Arc<Member>> {
    if share.join.is_empty() || share.part >= share.of || share.of < 2 {
        return Err(bad_argument(format!(
            "part {} of {}: there are two parts or more, numbered from 0, and an oracle to join",
            share.part, share.of
        )));
    }
    let listens = address.map(Address::to_string).unwrap_or_default();
    let reached = share.advertise.clone().unwrap_or(listens);
    Ok(Arc::new(Member::new(
        (layout.part, layout.of),
        (layout.partitions, layout.threads as u32),
        directory.identity,
        reached,
        share.join.clone(),
        options.clone(),
    )))
}

/// The logs in other processes' memory, if they are to be there.
fn remote(directory: &Directory, logs: usize, options: &OpenOptions) -> Result<Option<Remote>> {
    let addresses = options.persist.clone();
    match (options.durability, addresses.is_empty()) {
        (Durability::RemoteMemory, false) => {
            let state = State::begin(&directory.path, directory.is_new())?;
            Ok(Some(Remote::new(addresses, state, logs)))
        }
        (Durability::RemoteMemory, true) => Err(bad_argument(
            "durability `remote-memory` needs the addresses of processes of role `persist`",
        )),
        (_, true) => Ok(None),
        (other, false) => Err(bad_argument(format!(
            "processes of role `persist` are for durability `remote-memory`, not `{other}`"
        ))),
    }
}

/// Tells the others when a thread panics, as a procedure may: they stop, and clients hear of it.
struct Watch(Arc<Shared>);

impl Drop for Watch {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0
                .lifecycle
                .fail("a thread of the engine panicked".to_owned());
        }
    }
}

/// What a thread has before it knows the others.
struct Begun {
    reactor: Reactor,
    hosted: Vec<Hosted>,
    stores: Option<Stores>,
    wall_ns: Arc<AtomicU64>,
    mail: Receiver<Command>,
}

/// A thread from its begin to its end. What keeps it from beginning is told to who starts the engine.
fn run(mut plan: Plan, ready: &Sender<Result<Ready>>, go: &Receiver<Go>) -> Result<()> {
    let begun = match begin(&plan) {
        Ok((begun, found)) => {
            // Nobody listens when another thread could not start; then no word comes either.
            let _ = ready.send(Ok(found));
            begun
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            return Ok(());
        }
    };
    let Begun {
        mut reactor,
        hosted,
        stores,
        wall_ns,
        mail,
    } = begun;
    let Ok(Go {
        floor,
        peer_threads,
    }) = go.recv()
    else {
        return Ok(());
    };
    if let Some(listener) = plan.listener.take() {
        reactor.listen(listener).map_err(from_net)?;
    }
    let mut work = Work {
        index: plan.index,
        layout: plan.layout,
        elsewhere: plan
            .shared
            .member
            .clone()
            .map(|member| Elsewhere::new(member, plan.index)),
        members: HashSet::new(),
        shared: plan.shared,
        hosted,
        peer_threads,
        now: 0,
        wall_ns,
        welcomed: HashSet::new(),
        last_welcomed: None,
        log_moved_at: 0,
        moving: Vec::new(),
        answers: Default::default(),
        own: VecDeque::new(),
        together: Together::default(),
        given: Given::default(),
        held: VecDeque::new(),
        effects: Effects::default(),
        options: plan.options,
        stores,
        failed: None,
    };
    work.look_at_the_clock();
    // In several processes the floor is a stamp of an oracle, which comes later.
    if work.elsewhere.is_none() {
        work.finish_recovery(floor)?;
    }
    Core {
        reactor,
        work,
        mail,
        passes: 0,
        was_busy: true,
        napped_at: 0,
    }
    .run()
}

fn begin(plan: &Plan) -> Result<(Begun, Ready)> {
    if let Some(core) = plan.core {
        pin(core)?;
    }
    let reactor = Reactor::new(reactor_options(plan.options.spin)).map_err(from_net)?;
    let wall_ns = Arc::new(AtomicU64::new(0));
    let (hosted, stores) = host(plan, &wall_ns)?;
    let (sender, mail) = sync_channel::<Command>(COMMANDS_MAX);
    let newest = hosted
        .iter()
        .map(|hosted| hosted.partition.newest_stamp())
        .max()
        .unwrap_or(0);
    let numbered = |(place, hosted): (usize, &Hosted)| {
        let number = plan.layout.number(plan.index, place);
        match hosted.journal.log()? {
            Log::Files(log) => Some((number, log.checkpointer())),
            Log::Memory(_) | Log::Remote(_) => None,
        }
    };
    let checkpointers = hosted.iter().enumerate().filter_map(numbered).collect();
    let thread = PeerThread {
        sender,
        waker: reactor.waker(),
    };
    let found = Ready {
        index: plan.index,
        newest,
        thread,
        checkpointers,
    };
    Ok((
        Begun {
            reactor,
            hosted,
            stores,
            wall_ns,
            mail,
        },
        found,
    ))
}

/// The partitions of a thread, as their logs have them.
fn host(plan: &Plan, wall_ns: &Arc<AtomicU64>) -> Result<(Vec<Hosted>, Option<Stores>)> {
    let number = |place: usize| plan.layout.number(plan.index, place);
    let remote = &plan.shared.remote;
    let mut stores = match remote {
        Some(remote) => {
            let ids: Vec<u32> = (0..plan.logs.len()).map(number).collect();
            Some(Stores::connect(remote, &plan.options, &ids)?)
        }
        None => None,
    };
    let mut hosted = Vec::new();
    for (place, path) in plan.logs.iter().enumerate() {
        let id = number(place);
        let mut config = Config::new(id, plan.layout.partitions);
        config.seed = dyno_txn_log::fresh_identity();
        config.log = plan.shared.durability != Durability::Memory;
        config.memory_bytes = plan.options.memory_bytes / plan.layout.here().count() as u64;
        config.retention_ns = plan.options.retention.as_nanos() as u64;
        let wall_ns = wall_ns.clone();
        let stamps: Box<dyn Stamps + Send> = match &plan.shared.member {
            Some(_) => Box::new(FromElsewhere { wall_ns }),
            None => Box::new(Taker {
                oracle: plan.shared.oracle.clone(),
                wall_ns,
            }),
        };
        let procedures = plan.options.procedures.clone();
        let mut partition = Partition::new(config, procedures, stamps);
        let log = match (plan.shared.durability, remote, &mut stores) {
            (Durability::Fsync, ..) => {
                let (log, _) = recover(path, log_options(&plan.options), plan.new, &mut partition)?;
                Some(Log::Files(Box::new(log)))
            }
            (Durability::RemoteMemory, Some(remote), Some(stores)) => {
                let at = (place, id);
                let log = persist::recover(stores, &remote.state, at, &mut partition)?;
                Some(Log::Remote(Box::new(log)))
            }
            _ => None,
        };
        hosted.push(Hosted {
            partition,
            journal: Journal::new(log, remote.clone()),
            checkpoint: None,
        });
    }
    Ok((hosted, stores))
}
