//! The pager: a socket that VMMs connect to, and a thread for each machine.

use std::fs::{self, Permissions};
use std::io::{PipeReader, PipeWriter};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dyno_pages_hold::{BoundListener, Client, HoldError};
use dyno_pages_region::userfault::Userfault;
use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use tracing::{error, info, warn};

use crate::PagerError;
use crate::figures::Figures;
use crate::greeting;
use crate::machine::{End, Machine, Serving};
use crate::machines::{self, Entry, MachineReport, Machines};
use crate::plan::{Plan, Plans, Recorder};
use crate::snapshot::Snapshot;
use crate::spent::Spent;

/// The most connections whose message is not complete. One more closes the oldest of them.
const MOST_GREETINGS: usize = 64;
/// How long a stop waits for the threads. A VMM can make reads of its descriptor wait for ever; the
/// end of the process ends such a thread too.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// Where and how machines are served.
#[derive(Debug, Clone)]
pub struct Options {
    /// The Unix socket that VMMs connect to.
    pub socket: PathBuf,
    /// The file of the working set; `None` if pages are neither recorded nor brought ahead.
    pub working_set: Option<PathBuf>,
    /// For how long the first restore is recorded.
    pub record: Duration,
    /// How long a VMM may take to send its message.
    pub greeting: Duration,
}

impl Options {
    /// The default options for a socket, without a working set.
    pub fn new(socket: PathBuf) -> Self {
        Self {
            socket,
            working_set: None,
            record: Duration::from_secs(10),
            greeting: Duration::from_secs(5),
        }
    }
}

/// Serves a snapshot to the machines that connect, until it is dropped. Machines outlive it: they
/// wait at their next fault, until another pager takes them over from the holder.
#[derive(Debug)]
pub struct Pager {
    shared: Arc<Shared>,
    threads: Arc<Threads>,
    stop: Mutex<Option<PipeWriter>>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    snapshot: Snapshot,
    holder: Client,
    plans: Plans,
    machines: Machines,
    greeting: Duration,
    /// Connections whose message is not complete, the oldest first.
    greetings: Mutex<Vec<(u64, UnixStream)>>,
    threads: Arc<Threads>,
    restores: AtomicU64,
    refused: AtomicU64,
    /// Closes at its other end when the pager stops.
    stop: PipeReader,
}

/// Gets the snapshot that an earlier pager gave a holder; `None` if the holder does not have one.
///
/// # Errors
/// When the holder does not answer, or has something else under that name.
pub fn held_snapshot(holder: &Client) -> Result<Option<Snapshot>, PagerError> {
    match holder.get(Pager::HELD_AS) {
        Ok(held) => Snapshot::reopen(held.file, &held.note).map(Some),
        Err(HoldError::Unknown { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// How many machines a holder has whose process lives. Those whose process has ended are let go.
///
/// # Errors
/// When the holder does not answer.
pub fn held_machines(holder: &Client, snapshot: &Snapshot) -> Result<usize, PagerError> {
    let mut living = 0;
    for number in machines::held(holder)? {
        match lives(number, holder, snapshot) {
            Ok(true) => living += 1,
            Ok(false) => machines::let_go(number, holder)?,
            Err(error) => {
                error!("microVM {number} cannot be taken over: {error}");
                machines::let_go(number, holder)?;
            }
        }
    }
    Ok(living)
}

fn lives(number: u32, holder: &Client, snapshot: &Snapshot) -> Result<bool, PagerError> {
    let (machine, _) = machines::get_back(number, holder, snapshot.pages())?;
    let first = machine.layout.regions()[0].base;
    let gone = machine.faults.is_gone(first);
    Ok(!gone.map_err(PagerError::system("look for a machine's memory"))?)
}

impl Pager {
    /// The name under which a holder has the snapshot's store, for as long as there is a pager or
    /// machines wait for one.
    pub const HELD_AS: &str = "snapshot";

    /// Gives the snapshot to the holder, takes over the machines that it has, and listens.
    ///
    /// # Errors
    /// When the holder refuses, or the socket is in use.
    pub fn start(snapshot: Snapshot, holder: Client, options: Options) -> Result<Self, PagerError> {
        holder.put(Pager::HELD_AS, &snapshot.note()?, snapshot.memory_file())?;
        let (stop, end) = std::io::pipe().map_err(PagerError::system("make a pipe"))?;
        let threads = Arc::new(Threads::default());
        let plans = Plans::new(options.working_set, options.record, &snapshot);
        let shared = Arc::new(Shared {
            snapshot,
            holder,
            plans,
            machines: Machines::default(),
            greeting: options.greeting,
            greetings: Mutex::default(),
            threads: Arc::clone(&threads),
            restores: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            stop,
        });
        let pager = Self {
            shared: Arc::clone(&shared),
            threads,
            stop: Mutex::new(Some(end)),
            listening: Mutex::default(),
        };
        // Machines that wait come before the socket, which new ones find.
        held_machines(&shared.holder, &shared.snapshot)?;
        for number in machines::held(&shared.holder)? {
            shared.take_over(number)?;
        }
        let failed = || PagerError::system("listen for VMMs");
        let listener = BoundListener::bind(&options.socket).map_err(failed())?;
        fs::set_permissions(&options.socket, Permissions::from_mode(0o600)).map_err(failed())?;
        let listening = spawn("pager-listen", move || shared.listen(&listener))?;
        *pager.listening.lock() = Some(listening);
        Ok(pager)
    }

    /// The snapshot that all machines are served from.
    pub fn snapshot(&self) -> &Snapshot {
        &self.shared.snapshot
    }

    /// The machines that are served now.
    pub fn machines(&self) -> Vec<MachineReport> {
        self.shared.machines.reports()
    }

    /// What was done for all machines since the pager began, those that have ended included.
    pub fn figures(&self) -> Figures {
        self.shared.machines.figures()
    }

    /// Machines that connected and were served.
    pub fn restores(&self) -> u64 {
        self.shared.restores.load(Relaxed)
    }

    /// Connections that were refused since the pager began.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Relaxed)
    }

    /// Pages that are brought ahead for each restore; `None` if that is not known or not wanted.
    pub fn working_set_pages(&self) -> Option<usize> {
        self.shared.plans.known()
    }

    /// Gives everything to another holder, because the first one has died.
    ///
    /// # Errors
    /// When that one refuses.
    pub fn hold_again(&self, holder: &Client) -> Result<(), PagerError> {
        let snapshot = &self.shared.snapshot;
        holder.put(Pager::HELD_AS, &snapshot.note()?, snapshot.memory_file())?;
        self.shared.machines.hold_all(holder)
    }

    /// Stops serving, and returns how many machines live on and wait. The figures stay as they are
    /// then; a second stop does nothing.
    pub fn stop(&self) -> usize {
        let machines = self.shared.machines.count();
        drop(self.stop.lock().take());
        for (_, stream) in self.shared.greetings.lock().drain(..) {
            // A connection that has ended already needs no end.
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(listening) = self.listening.lock().take() {
            // A panic of that thread has said why.
            let _ = listening.join();
        }
        self.threads.wait(STOP_WAIT);
        machines
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Counts the threads that serve machines. They have the snapshot, which the next pager can open
/// only when the last of them is done with it.
#[derive(Debug, Default)]
struct Threads {
    running: Mutex<usize>,
    fewer: Condvar,
}

/// A thread that is counted until this is dropped.
struct Running(Arc<Threads>);

impl Threads {
    fn begin(self: &Arc<Self>) -> Running {
        *self.running.lock() += 1;
        Running(Arc::clone(self))
    }

    /// Waits until none is running, for `wait` at most.
    fn wait(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut running = self.running.lock();
        while *running > 0 && !self.fewer.wait_until(&mut running, until).timed_out() {}
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.running.lock() -= 1;
        self.0.fewer.notify_all();
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, PagerError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(PagerError::system("start a thread"))
}

impl Shared {
    fn listen(self: &Arc<Self>, listener: &BoundListener) {
        for connection in 0.. {
            let mut files = [
                PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
            ];
            // Without the wait a stop would be seen only when the next VMM connects. An
            // interrupted wait is a look that finds nothing.
            let _ = poll(&mut files, None);
            if !files[1].revents().is_empty() {
                return;
            }
            if files[0].revents().is_empty() {
                continue;
            }
            match listener.socket().accept() {
                Ok((stream, _)) => self.greet(connection, stream),
                Err(error) => {
                    warn!("a VMM could not connect: {error}");
                    // Mostly the process is out of descriptors, which ends when a machine does.
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    /// Hears a VMM on a thread of its own, which then serves its machine.
    fn greet(self: &Arc<Self>, connection: u64, stream: UnixStream) {
        let shared = Arc::clone(self);
        let begun = stream.try_clone().map_err(PagerError::system("hear a VMM"));
        let begun = begun.and_then(|copy| {
            let mut greetings = self.greetings.lock();
            if greetings.len() >= MOST_GREETINGS {
                // A VMM sends its message at once, so the oldest that has not is the one to go.
                let (_, oldest) = greetings.remove(0);
                // One that has ended already needs no end.
                let _ = oldest.shutdown(Shutdown::Both);
            }
            greetings.push((connection, copy));
            drop(greetings);
            shared.begin(move |shared| shared.admit(connection, stream))
        });
        if let Err(error) = begun {
            self.refuse(&error, 0);
            self.greetings.lock().retain(|(of, _)| *of != connection);
        }
    }

    fn refuse(&self, error: &PagerError, pid: i32) {
        if matches!(error, PagerError::Nothing) {
            return;
        }
        self.refused.fetch_add(1, Relaxed);
        warn!("the VMM of process {pid} is refused: {error}");
    }

    fn admit(self: &Arc<Self>, connection: u64, stream: UnixStream) {
        let pid = socket_peercred(&stream).map_or(0, |peer| peer.pid.as_raw_nonzero().get());
        let received = greeting::receive(&stream, self.snapshot.bytes(), self.greeting);
        self.greetings.lock().retain(|(of, _)| *of != connection);
        let machine = received.and_then(|(layout, descriptor)| {
            let faults = Arc::new(Userfault::adopt(descriptor)?);
            let spent = Spent::create(self.snapshot.pages())?;
            self.machines.enter(|number| {
                let machine = Machine {
                    number,
                    layout,
                    faults,
                    spent,
                    connection: Some(stream),
                    counters: Arc::default(),
                };
                let entry = Entry::new(&machine, pid, false);
                (machine, entry)
            })
        });
        let machine = match machine {
            Ok(machine) => machine,
            Err(error) => return self.refuse(&error, pid),
        };
        let number = machine.number;
        // Nothing is served before the holder has the machine: until then the VMM sees no
        // difference to a pager that has not heard it.
        if let Err(error) = self.machines.hold(number, &self.holder) {
            error!("microVM {number} would not survive this process: {error}");
        }
        self.restores.fetch_add(1, Relaxed);
        let plan = self.plans.begin();
        info!(
            "microVM {number}, process {pid}: {} MiB in {} regions{}",
            machine.layout.bytes() >> 20,
            machine.layout.regions().len(),
            match &plan {
                Plan::Faults => String::new(),
                Plan::Record(_) => ", its first touches are recorded".to_owned(),
                Plan::Prefetch(set) => format!(", {} pages are brought ahead", set.pages().len()),
            }
        );
        self.serve(machine, plan, false);
    }

    /// Serves a machine that the holder has, on a thread of its own.
    fn take_over(self: &Arc<Self>, number: u32) -> Result<(), PagerError> {
        let (machine, pid) = machines::get_back(number, &self.holder, self.snapshot.pages())?;
        self.machines
            .enter_again(number, Entry::new(&machine, pid, true));
        info!("microVM {number}, process {pid}: taken over");
        let shared = Arc::clone(self);
        // Pages are not brought ahead a second time: what the machine needs first it has, or waits
        // for.
        shared.begin(move |shared| shared.serve(machine, Plan::Faults, true))
    }

    /// Starts a thread of a machine.
    fn begin(
        self: Arc<Self>,
        work: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) -> Result<(), PagerError> {
        let running = self.threads.begin();
        let thread = move || {
            // Dropped in the reverse order: a thread that is not counted any more has let go of
            // the snapshot.
            let _running = running;
            let shared = self;
            work(&shared);
        };
        spawn("microvm", thread).map(drop)
    }

    /// Keeps a recording, on a thread of its own: the disk may take its time, and the thread that
    /// calls has faults to serve.
    fn keep(self: &Arc<Self>, recorder: Option<Recorder>) {
        let Some(recorder) = recorder else {
            return self.plans.give_up();
        };
        let shared = Arc::clone(self);
        let kept = shared.begin(move |shared| shared.plans.finish(recorder, &shared.snapshot));
        if let Err(error) = kept {
            error!("the working set is not kept: {error}");
            self.plans.give_up();
        }
    }

    fn serve(self: &Arc<Self>, machine: Machine, plan: Plan, again: bool) {
        let number = machine.number;
        let recorded = |recorder: Option<Recorder>| self.keep(recorder);
        let end = Serving::new(machine, &self.snapshot, plan, &recorded).and_then(|serving| {
            if again {
                serving.wake_all()?;
            }
            serving.run(self.stop.as_fd())
        });
        match &end {
            Ok(End::Gone) => info!("microVM {number} has ended"),
            Ok(End::Stopped) => info!("microVM {number} waits for the next pager"),
            Err(error) => error!("microVM {number} is not served any longer: {error}"),
        }
        if !matches!(end, Ok(End::Stopped))
            && let Err(error) = machines::let_go(number, &self.holder)
        {
            warn!("the holder keeps what it had of microVM {number}: {error}");
        }
        // Last, because its number is free from here on.
        self.machines.leave(number);
    }
}
