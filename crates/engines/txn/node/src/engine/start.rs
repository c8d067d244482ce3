//! How an engine starts: its threads recover their partitions, then get handles on each other and
//! the timestamp that all of them begin above.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use dyno_net::{Address, Listener, Reactor};
use dyno_serve::Token;
use dyno_txn_api::{Result, Timestamp};
use dyno_txn_core::{Config, Partition, Timestamps};
use dyno_txn_log::{Checkpointer, Log};

use super::Engine;
use super::clients::Clients;
use super::figures::Figures;
use super::journal::Journal;
use super::layout::Layout;
use super::oracle::{LocalTimestamps, Oracle, RemoteTimestamps};
use super::peers::{Cluster, Peers};
use super::recovery::{log_options, recover};
use super::shard::{HostedPartition, ShardState};
use super::shared::Shared;
use super::worker::Worker;
use crate::directory::{Directory, DirectoryOptions};
use crate::error::{bad_argument, from_net, unavailable};
use crate::lifecycle::Lifecycle;
use crate::member::{Links, Member};
use crate::options::{Durability, OpenOptions, Share};
use crate::persist::{self, RemoteLogs, State, Stores};
use crate::pin::pin;
use crate::ports::reactor_options;
use crate::threads::{COMMANDS_MAX, Command, PeerThread};
use crate::time::Time;

/// Memory of a partition at least: some rows must fit beside its empty index.
const LEAST_MEMORY_BYTES: u64 = 1 << 20;
/// How long stores may take to get what they lack, and how often the start looks whether they have
/// it.
const STORES_WAIT: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// What a thread reports when it has recovered its partitions.
struct Recovered {
    index: usize,
    /// The newest timestamp in its logs.
    newest: Timestamp,
    thread: PeerThread,
    /// By partition.
    checkpointers: Vec<(u32, Checkpointer)>,
}

/// What each thread gets when all have recovered.
struct StartSignal {
    floor: Timestamp,
    peer_threads: Vec<PeerThread>,
}

/// What a thread begins with.
struct WorkerPlan {
    index: usize,
    layout: Layout,
    /// The core to bind it to.
    core: Option<usize>,
    shared: Arc<Shared>,
    options: OpenOptions,
    /// By slot.
    logs: Vec<std::path::PathBuf>,
    /// Whether the directory is new, so that logs may be missing.
    new: bool,
    /// For the first thread alone, which accepts all connections.
    listener: Option<Listener>,
}

impl Engine {
    /// Starts an engine on a directory, which is created if it does not exist. Returns when all
    /// partitions are recovered; those of a share then still wait for a timestamp of an oracle.
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
            &DirectoryOptions {
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
            backup_service: std::sync::OnceLock::new(),
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
        let (report, reports) = channel::<Result<Recovered>>();
        let mut signals: Vec<Sender<StartSignal>> = Vec::new();
        for index in 0..threads {
            let mine = layout.here().filter(|p| layout.thread(*p) == index);
            let plan = WorkerPlan {
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
            let (signal, started) = channel();
            signals.push(signal);
            let report = report.clone();
            let thread = thread::Builder::new()
                .name(format!("txn-{index}"))
                .spawn(move || {
                    let _guard = PanicGuard(plan.shared.clone());
                    run_worker(plan, &report, &started)
                })
                .map_err(unavailable)?;
            self.threads.push(thread);
        }
        // Without this the loop below would wait for ever for a thread that has panicked.
        drop(report);
        // An error returns from here and drops `signals`: the other threads, which wait for theirs,
        // see that none will come, and end without having served anybody.
        let found: Result<Vec<Recovered>> = reports.iter().take(threads).collect();
        let found = found?;
        if found.len() < threads {
            return Err(unavailable("a thread of the engine ended while it started"));
        }
        // All logs exist now, and nothing has been stored in them yet. From here on a missing one
        // means that data was lost.
        self.directory.finish()?;
        self.signal_start(found, signals)
    }

    /// Gives all threads, which have recovered, handles on each other and the timestamp that they
    /// begin above.
    fn signal_start(
        &mut self,
        mut found: Vec<Recovered>,
        signals: Vec<Sender<StartSignal>>,
    ) -> Result<()> {
        found.sort_by_key(|thread| thread.index);
        let newest = found.iter().map(|thread| thread.newest).max().unwrap_or(0);
        // The newest timestamp of a log counts its durable bound, below which everything that was
        // ever issued lies. The time of day alone would not do: the system clock may have been set
        // back.
        let time = self.shared.time;
        let floor = time.wall(time.now()).max(newest + 1);
        self.shared.oracle.start_above(floor);
        let mut checkpointers: Vec<_> = found
            .iter_mut()
            .flat_map(|thread| thread.checkpointers.drain(..))
            .collect();
        checkpointers.sort_by_key(|(partition, _)| *partition);
        self.checkpointers = checkpointers.into_iter().map(|(_, one)| one).collect();
        self.peer_threads = found.into_iter().map(|found| found.thread).collect();
        for signal in signals {
            let peer_threads = self.peer_threads.clone();
            let start = StartSignal {
                floor,
                peer_threads,
            };
            let sent = signal.send(start);
            sent.map_err(|_| unavailable("a thread of the engine ended while it started"))?;
        }
        Ok(())
    }

    /// Returns when all stores have all logs, and the disk names this start as one that may answer.
    /// Only then do journals report anything as durable: a restart that did not know of this start
    /// would be content with older logs.
    fn wait_for_stores(&self) -> Result<()> {
        let Some(remote) = &self.shared.remote else {
            return Ok(());
        };
        let began = Instant::now();
        while !remote.is_complete() {
            if let Some(why) = self.failure() {
                return Err(unavailable(why));
            }
            if began.elapsed() > STORES_WAIT {
                let note = self.last_note().unwrap_or_default();
                return Err(unavailable(format!(
                    "the processes that keep the log did not get it in {STORES_WAIT:?}: {note}"
                )));
            }
            thread::sleep(POLL_INTERVAL);
        }
        remote.state.activate(&self.directory.path)?;
        remote.activate();
        Ok(())
    }
}

/// Refuses a bound so low that hardly a row could be written.
fn enough_memory(memory_bytes: u64, partitions: usize) -> Result<()> {
    let least = LEAST_MEMORY_BYTES * partitions as u64;
    if memory_bytes < least {
        Err(bad_argument(format!(
            "{memory_bytes} bytes of memory are not enough for {partitions} partitions: give at \
             least {} MiB",
            least >> 20
        )))
    } else {
        Ok(())
    }
}

/// Describes this process to the others of its database.
fn member(
    share: &Share,
    layout: Layout,
    directory: &Directory,
    address: Option<&Address>,
    options: &OpenOptions,
) -> Result<Arc<Member>> {
    if share.join.is_empty() || share.part >= share.of || share.of < 2 {
        return Err(bad_argument(format!(
            "part {} of {}: there must be two parts or more, numbered from 0, and an oracle to \
             join",
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

/// The processes that keep the logs, for durability `remote-memory`.
fn remote(directory: &Directory, logs: usize, options: &OpenOptions) -> Result<Option<RemoteLogs>> {
    let addresses = options.persist.clone();
    match (options.durability, addresses.is_empty()) {
        (Durability::RemoteMemory, false) => {
            let state = State::begin(&directory.path, directory.is_new())?;
            Ok(Some(RemoteLogs::new(addresses, state, logs)))
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

/// Stops the engine if its thread panics, as a procedure of a user may make it do. The other
/// threads could not commit anything that spans its partitions, and clients would wait for it until
/// their deadlines.
struct PanicGuard(Arc<Shared>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            let why = "a thread of the engine panicked".to_owned();
            self.0.lifecycle.fail(why);
        }
    }
}

/// What a thread has before it knows the others.
struct Prepared {
    reactor: Reactor,
    hosted: Vec<HostedPartition>,
    stores: Option<Stores>,
    wall_ns: Arc<AtomicU64>,
    commands: Receiver<Command>,
}

/// The whole life of a worker thread. An error before the start signal goes to the caller that
/// starts the engine, and is not the thread's own result: it would be reported twice.
fn run_worker(
    mut plan: WorkerPlan,
    report: &Sender<Result<Recovered>>,
    started: &Receiver<StartSignal>,
) -> Result<()> {
    let prepared = match prepare(&plan) {
        Ok((prepared, found)) => {
            // If another thread could not start, the receiver is gone, and no signal comes either.
            let _ = report.send(Ok(found));
            prepared
        }
        Err(error) => {
            let _ = report.send(Err(error));
            return Ok(());
        }
    };
    let Ok(StartSignal {
        floor,
        peer_threads,
    }) = started.recv()
    else {
        return Ok(());
    };
    let Prepared {
        mut reactor,
        hosted,
        stores,
        wall_ns,
        commands,
    } = prepared;
    if let Some(listener) = plan.listener.take() {
        reactor.listen(listener).map_err(from_net)?;
    }
    let (index, shared) = (plan.index, plan.shared);
    let cluster = shared.member.clone().map(|member| {
        let lifecycle = shared.lifecycle.clone();
        let thread = peer_threads[index].clone();
        Cluster::new(Links::new(member, index, lifecycle, thread))
    });
    let is_alone = cluster.is_none();
    let mut shard = ShardState::new(index, plan.layout, plan.options, wall_ns, hosted, stores);
    shard.update_clock(&shared);
    let mut worker = Worker {
        reactor,
        commands,
        shared,
        peer_threads,
        shard,
        clients: Clients::default(),
        peers: Peers {
            members: HashSet::new(),
            cluster,
        },
        passes: 0,
        was_busy: true,
        slept_at: 0,
    };
    // In several processes the floor is a timestamp of an oracle, which arrives later.
    if is_alone {
        worker.finish_recovery(floor)?;
    }
    worker.run()
}

fn prepare(plan: &WorkerPlan) -> Result<(Prepared, Recovered)> {
    // First of all, so that the thread recovers on its core and the system gives it memory near
    // there.
    if let Some(core) = plan.core {
        pin(core)?;
    }
    let reactor = Reactor::new(reactor_options(plan.options.spin)).map_err(from_net)?;
    let wall_ns = Arc::new(AtomicU64::new(0));
    let (hosted, stores) = recover_partitions(plan, &wall_ns)?;
    let (sender, commands) = sync_channel::<Command>(COMMANDS_MAX);
    let newest = hosted
        .iter()
        .map(|hosted| hosted.partition.newest_timestamp())
        .max()
        .unwrap_or(0);
    let by_partition = |(slot, hosted): (usize, &HostedPartition)| {
        let partition = plan.layout.partition_at(plan.index, slot);
        match hosted.journal.log()? {
            Log::Files(log) => Some((partition, log.checkpointer())),
            Log::Memory(_) | Log::Remote(_) => None,
        }
    };
    let checkpointers = hosted.iter().enumerate().filter_map(by_partition).collect();
    let thread = PeerThread {
        sender,
        waker: reactor.waker(),
    };
    let found = Recovered {
        index: plan.index,
        newest,
        thread,
        checkpointers,
    };
    Ok((
        Prepared {
            reactor,
            hosted,
            stores,
            wall_ns,
            commands,
        },
        found,
    ))
}

/// Makes the partitions of a thread, and restores them from their logs.
fn recover_partitions(
    plan: &WorkerPlan,
    wall_ns: &Arc<AtomicU64>,
) -> Result<(Vec<HostedPartition>, Option<Stores>)> {
    let partition_at = |slot: usize| plan.layout.partition_at(plan.index, slot);
    let remote = &plan.shared.remote;
    let mut stores = match remote {
        Some(remote) => {
            let ids: Vec<u32> = (0..plan.logs.len()).map(partition_at).collect();
            Some(Stores::connect(remote, &plan.options, &ids)?)
        }
        None => None,
    };
    let mut hosted = Vec::new();
    for (slot, path) in plan.logs.iter().enumerate() {
        let id = partition_at(slot);
        let mut config = Config::new(id, plan.layout.partitions);
        // Drawn anew at each start: keys whose hashes collide cannot be chosen by trying them out.
        config.seed = dyno_txn_log::fresh_identity();
        config.log = plan.shared.durability != Durability::Memory;
        config.memory_bytes = plan.options.memory_bytes / plan.layout.here().count() as u64;
        config.retention_ns = plan.options.retention.as_nanos() as u64;
        let wall_ns = wall_ns.clone();
        let timestamps: Box<dyn Timestamps + Send> = match &plan.shared.member {
            Some(_) => Box::new(RemoteTimestamps { wall_ns }),
            None => Box::new(LocalTimestamps {
                oracle: plan.shared.oracle.clone(),
                wall_ns,
            }),
        };
        let procedures = plan.options.procedures.clone();
        let mut partition = Partition::new(config, procedures, timestamps);
        let log = match (plan.shared.durability, remote, &mut stores) {
            (Durability::Fsync, ..) => {
                let (log, _) = recover(path, log_options(&plan.options), plan.new, &mut partition)?;
                Some(Log::Files(Box::new(log)))
            }
            (Durability::RemoteMemory, Some(remote), Some(stores)) => {
                let at = (slot, id);
                let log = persist::recover(stores, &remote.state, at, &mut partition)?;
                Some(Log::Remote(Box::new(log)))
            }
            _ => None,
        };
        hosted.push(HostedPartition {
            partition,
            journal: Journal::new(log, remote.clone()),
            checkpoint: None,
        });
    }
    Ok((hosted, stores))
}
