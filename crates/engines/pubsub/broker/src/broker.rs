//! A broker from start to stop: its threads, and what they share.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dyno_net::{Address, Listener, ServeOptions, Server};
use dyno_pubsub::wire::Counter;
use dyno_pubsub::{Connection, Dsn, TopicPartition};

use crate::append_queue::AppendQueue;
use crate::appender::Appender;
use crate::backlog::Backlog;
use crate::behind::{ROOM_WAIT, Reader};
use crate::commits;
use crate::control::{self, Kind, Requests};
use crate::counters::{Counters, add};
use crate::error::{BrokerError, stopping};
use crate::fair::Fair;
use crate::front::{Front, MOST_BODY_BYTES, MOST_HELLO_BYTES};
use crate::hosted::{AppendQueues, HostedPartitions};
use crate::leases::{Leases, SESSION, Signal};
use crate::link::Link;
use crate::memory::Memory;
use crate::options::Options;

/// How often fetches whose wait is over are looked for.
const TICK: Duration = Duration::from_millis(10);
/// How often retention is applied. Every broker does it. Where one is at work, another finds
/// nothing to do.
const MAINTENANCE: Duration = Duration::from_secs(60);
/// How long a stop waits for appends that are under way.
const DRAIN: Duration = Duration::from_secs(5);
/// How long a stop waits for a statement that is under way.
const STATEMENT_WAIT: Duration = Duration::from_secs(2);
/// The name of all sessions but that of the leases.
const SESSION_NAME: &str = "dyno-pubsub broker";

/// A running broker. Dropping it stops it.
pub struct Broker {
    pub(crate) front: Arc<Front>,
    /// The database with the log, for the metrics.
    pub(crate) dsn: Dsn,
    servers: Vec<Server>,
    append_queues: Arc<AppendQueues>,
    abandon: Arc<AtomicBool>,
    signal: Arc<Signal>,
    threads: Vec<JoinHandle<()>>,
    leases: Option<JoinHandle<()>>,
    ticking: Arc<AtomicBool>,
    /// Ends the pause between two maintenances.
    resting: Arc<Signal>,
    stopped: bool,
}

impl Broker {
    /// Connects to the database, listens, and takes its share of the partitions.
    ///
    /// # Errors
    /// [`BrokerError`]: unusable options, no database, no schema in it, an address in use.
    pub fn start(options: Options) -> Result<Broker, BrokerError> {
        options.check()?;
        Connection::open(&options.dsn)?.check_schema()?;
        let listeners: Vec<Listener> = options
            .listen
            .iter()
            .map(Listener::bind)
            .collect::<Result<_, _>>()?;
        let memory = Memory::new(options.memory_bytes);
        let behind = Backlog::new(&memory.behind, ROOM_WAIT);
        let front = Arc::new(Front {
            name: new_name(),
            token: options.token.clone(),
            hosted: Arc::new(HostedPartitions::default()),
            memory,
            counters: Arc::default(),
            served: Arc::default(),
            control: Arc::new(Requests::default()),
            commits: Arc::new(Fair::new(commits::MOST_EACH)),
            behind,
            stopping: AtomicBool::new(false),
        });
        let abandon = Arc::new(AtomicBool::new(false));
        // From here on an early return drops the broker, which stops the threads that were started.
        let mut broker = Broker {
            append_queues: Arc::new(append_queues(&options, &front, &abandon)),
            front,
            dsn: options.dsn.clone(),
            servers: Vec::new(),
            abandon,
            signal: Arc::default(),
            threads: Vec::new(),
            leases: None,
            ticking: Arc::new(AtomicBool::new(true)),
            resting: Arc::default(),
            stopped: false,
        };
        broker.start_threads(&options)?;
        broker.start_leases(&options, &listeners)?;
        broker.listen(&options, listeners)?;
        Ok(broker)
    }

    fn start_threads(&mut self, options: &Options) -> io::Result<()> {
        let link = || Link::new(&options.dsn, SESSION_NAME, &[]);
        for (kind, threads) in Kind::THREADS {
            for _ in 0..threads {
                let requests = Arc::clone(&self.front.control);
                let link = link();
                let signal = Arc::clone(&self.signal);
                self.spawn("broker-control", move || {
                    control::run(requests.queue(kind), link, || signal.wake());
                })?;
            }
        }
        for _ in 0..options.readers {
            let reader = Reader {
                jobs: Arc::clone(&self.front.behind),
                link: link(),
                counters: Arc::clone(&self.front.counters),
            };
            self.spawn("broker-read", move || reader.run())?;
        }
        let jobs = Arc::clone(&self.front.commits);
        let counters = Arc::clone(&self.front.counters);
        let asynchronous = Link::new(&options.dsn, SESSION_NAME, commits::SETTINGS);
        self.spawn("broker-commit", move || {
            commits::run(&jobs, asynchronous, &counters);
        })?;
        let mut maintaining = link();
        let resting = Arc::clone(&self.resting);
        let counters = Arc::clone(&self.front.counters);
        self.spawn("broker-maintain", move || {
            while !resting.is_stopped() {
                match maintaining.run(Connection::maintain) {
                    Ok(done) => add(&counters.maintained, done.len()),
                    // A failure is counted, because a disk that fills up may be its consequence.
                    // The next round tries again.
                    Err(_) => add(&counters.failed_maintenances, 1),
                }
                resting.wait(MAINTENANCE);
            }
        })?;
        let hosted = Arc::clone(&self.front.hosted);
        let ticking = Arc::clone(&self.ticking);
        self.spawn("broker-tick", move || {
            while ticking.load(Ordering::Acquire) {
                thread::sleep(TICK);
                answer_late(&hosted);
            }
        })
    }

    fn start_leases(&mut self, options: &Options, listeners: &[Listener]) -> io::Result<()> {
        let address = match (&options.advertise, listeners.first()) {
            (Some(address), _) => address.to_string(),
            (None, Some(first)) => first.address().to_string(),
            (None, None) => String::new(),
        };
        let name = format!("{SESSION}{}", self.front.name);
        let leases = Leases {
            link: Link::new(&options.dsn, &name, &[]),
            broker: self.front.name.clone(),
            address,
            lease: options.lease,
            hosted: Arc::clone(&self.front.hosted),
            append_queues: Arc::clone(&self.append_queues),
            memory: self.front.memory.clone(),
            counters: Arc::clone(&self.front.counters),
            behind: Arc::clone(&self.front.behind),
            signal: Arc::clone(&self.signal),
            ended: HashMap::new(),
        };
        let thread = thread::Builder::new()
            .name("broker-lease".to_owned())
            .spawn(move || leases.run())?;
        self.leases = Some(thread);
        Ok(())
    }

    fn listen(&mut self, options: &Options, listeners: Vec<Listener>) -> Result<(), BrokerError> {
        for listener in listeners {
            let listener = match &options.tls {
                Some(config) => listener.with_tls(Arc::clone(config)),
                None => listener,
            };
            let serve = ServeOptions {
                most_connections: options.most_connections,
                most_unadmitted: options.most_unadmitted,
                hello_wait: options.hello_wait,
                most_hello_bytes: MOST_HELLO_BYTES,
                most_body_bytes: MOST_BODY_BYTES,
                frames: Arc::clone(&self.front.memory.queued),
                outbox_bytes: options.outbox_bytes,
                write_wait: options.write_wait,
                least_rate: options.least_rate,
                counts: Arc::clone(&self.front.served),
                ..ServeOptions::default()
            };
            let server = Server::start(listener, Arc::clone(&self.front), serve)?;
            self.servers.push(server);
        }
        Ok(())
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
        self.threads.push(thread);
        Ok(())
    }

    /// The addresses at which it listens, with ports that the system chose.
    pub fn addresses(&self) -> Vec<Address> {
        let addresses = self.servers.iter().map(|server| server.address().clone());
        addresses.collect()
    }

    /// Its name, new with every start.
    pub fn name(&self) -> &str {
        &self.front.name
    }

    /// The counters since the start, and what it holds now.
    pub fn counters(&self) -> Vec<Counter> {
        self.front.status().counters
    }

    /// The partitions that it holds, each with the epoch of its lease.
    pub fn partitions(&self) -> Vec<(TopicPartition, i64)> {
        let hosted = self.front.hosted.all();
        hosted.iter().map(|held| (held.key, held.epoch)).collect()
    }

    /// Refuses further records, appends and acknowledges what it has, releases its leases, and ends
    /// every connection.
    pub fn stop(&mut self) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        self.front.stopping.store(true, Ordering::Release);
        // What only waits is refused and not executed: a backlog could take longer than a
        // supervisor waits.
        self.front.control.stop();
        for commit in self.front.commits.stop() {
            commit.ack.refused(&stopping());
        }
        for fetch in self.front.behind.stop() {
            fetch.waiter.ack.refused(&stopping());
        }
        let hosted = self.front.hosted.all();
        hosted
            .iter()
            .for_each(|partition| partition.refuse_appends(&stopping()));
        let end = Instant::now() + DRAIN;
        while !hosted.iter().all(|partition| partition.is_drained()) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        // An append whose outcome is unknown by now is not sent again. Its producers are told so,
        // and send the records again to another broker.
        self.abandon.store(true, Ordering::Release);
        self.append_queues.stop(STATEMENT_WAIT);
        // Leases are released only after the appending threads have stopped. A broker that took a
        // partition over while one of them still appended would fence that append off.
        self.signal.stop();
        self.resting.stop();
        self.ticking.store(false, Ordering::Release);
        let leases = self.leases.take();
        join_within(leases.into_iter().collect(), STATEMENT_WAIT);
        hosted
            .iter()
            .for_each(|partition| partition.close(&stopping()));
        join_within(self.threads.drain(..).collect(), STATEMENT_WAIT);
        // Connections that wait for memory are woken before the servers wait for their threads.
        self.front.memory.close();
        self.servers.iter_mut().for_each(Server::stop);
    }
}

/// Waits for threads to end, for at most `wait`. A thread that is left is in a statement that waits
/// in the server, for a lock for instance. It ends with its session, and must not keep the broker
/// from stopping.
pub fn join_within(threads: Vec<JoinHandle<()>>, wait: Duration) {
    let end = Instant::now() + wait;
    for thread in threads {
        while !thread.is_finished() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        if thread.is_finished() {
            // A thread that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop();
    }
}

fn append_queues(options: &Options, front: &Front, abandon: &Arc<AtomicBool>) -> AppendQueues {
    let dsn = options.dsn.clone();
    let linger = options.linger;
    let memory = front.memory.clone();
    let counters: Arc<Counters> = Arc::clone(&front.counters);
    let abandon = Arc::clone(abandon);
    AppendQueues::new(
        options.appenders,
        move || AppendQueue::new(linger),
        move |queue| {
            let appender = Appender {
                queue,
                link: Link::new(&dsn, SESSION_NAME, &[]),
                memory: memory.clone(),
                counters: Arc::clone(&counters),
                abandon: Arc::clone(&abandon),
            };
            appender.run();
        },
    )
}

/// Answers the fetches whose time has come.
fn answer_late(hosted: &HostedPartitions) {
    let now = Instant::now();
    for partition in hosted.all() {
        let mut tail = partition.tail.lock();
        if tail.waiters() > 0 {
            tail.answer_waiters(now);
        }
    }
}

/// A name that no other broker has or had, made of the process, the time and chance.
fn new_name() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let pid = std::process::id();
    let chance = RandomState::new().hash_one((pid, since));
    format!("{pid}-{:x}-{chance:08x}", since.as_millis())
}
