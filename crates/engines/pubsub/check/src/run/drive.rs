//! The run itself: start, inject faults, drain, read, judge.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dyno_postgres::postgres::Client;

use super::clients::Clients;
use super::drain::Drain;
use super::inject::inject;
use super::servers::{NAME, Servers};
use super::soak::Soaked;
use super::{Mode, Options, Outcome, Recorder, RunError, judge, sampling};
use crate::nemesis::{Fault, Plan};

/// How long nothing may be acknowledged before the run is given up.
const STUCK: Duration = Duration::from_secs(60);
/// Events that a run may have.
const EVENTS_MAX: usize = 12_000_000;
const POLL: Duration = Duration::from_millis(10);
const TICK: Duration = Duration::from_secs(5);

/// Runs a check and judges it. What went wrong in the run is in the outcome. An error means that
/// there is no judgement.
///
/// # Errors
/// When servers or clients cannot be started or controlled, and when the system does not come back
/// after a fault.
pub fn run(options: &Options) -> Result<Outcome, RunError> {
    check(options)?;
    let mut kinds = options.kinds();
    let mut left_out = Vec::new();
    let recorder = Arc::new(Recorder::new(EVENTS_MAX));
    let mut servers = Servers::open(options, &mut left_out)?;
    if servers.tmpfs.is_none() {
        kinds.retain(|kind| *kind != Fault::DiskFull);
    }
    let plan = Plan::draw(options.seed, options.kills, &kinds);
    options.say(|| plan.to_string());
    let mut clients = Clients::start(options, servers.endpoint(), &recorder)?;
    progress(&recorder, 0, "at the beginning", &mut clients, &servers)?;
    let mut run = Run {
        options,
        recorder: &recorder,
        servers: &mut servers,
        clients: &mut clients,
        snapshot: None,
        faults: BTreeMap::new(),
    };
    run.inject_all(&plan)?;
    let soak = options.soak.map(|soak| run.soak(soak)).transpose()?;
    let faults = run.finish(&mut left_out)?;
    judge::outcome(options, &servers, &recorder, faults, soak, left_out)
}

/// The parts of a run that is under way.
struct Run<'a> {
    options: &'a Options,
    recorder: &'a Arc<Recorder>,
    servers: &'a mut Servers,
    clients: &'a mut Clients,
    snapshot: Option<Client>,
    faults: BTreeMap<Fault, u64>,
}

impl Run<'_> {
    fn inject_all(&mut self, plan: &Plan) -> Result<(), RunError> {
        let began = Instant::now();
        for (number, step) in plan.steps.iter().enumerate() {
            if !self.goes_on() {
                break;
            }
            self.hold_snapshot();
            thread::sleep(Duration::from_millis(step.pause_ms));
            let before = self.recorder.acknowledged();
            self.options.say(|| {
                let (at_s, fault) = (began.elapsed().as_secs_f64(), step.fault);
                format!("{number}: {fault} at {at_s:.1} s ({before} acknowledged)")
            });
            if inject(step, self.options, self.servers, self.clients)? {
                *self.faults.entry(step.fault).or_default() += 1;
            }
            let after = format!("after fault {number} ({})", step.fault);
            let before = self.recorder.acknowledged();
            progress(self.recorder, before, &after, self.clients, self.servers)?;
        }
        Ok(())
    }

    /// Whether nothing went wrong and the caller did not stop the run. Otherwise it ends, and what
    /// has happened so far is judged.
    fn goes_on(&self) -> bool {
        self.recorder.troubles().is_empty() && !self.options.is_stopped()
    }

    /// Opens a transaction with a snapshot, again if the server has ended it. An old snapshot keeps
    /// the server from removing dead rows.
    fn hold_snapshot(&mut self) {
        let open = self.snapshot.as_ref().is_some_and(|open| !open.is_closed());
        if !self.options.snapshot || open {
            return;
        }
        let begin =
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pubsub.schema_version";
        // A server that is away now is asked again before the next fault.
        self.snapshot = self.servers.connect().ok().and_then(|mut client| {
            let began = client.batch_execute(begin);
            began.is_ok().then_some(client)
        });
    }

    /// Lets the run go on without faults for a while, and takes samples.
    fn soak(&mut self, length: Duration) -> Result<Soaked, RunError> {
        self.snapshot = None;
        let mut sampling = sampling::Sampling::new();
        let began = Instant::now();
        while began.elapsed() < length && self.goes_on() {
            let acknowledged = self.recorder.acknowledged();
            thread::sleep(TICK.min(length));
            progress(
                self.recorder,
                acknowledged,
                "in the soak",
                self.clients,
                self.servers,
            )?;
            if !self.goes_on() {
                break;
            }
            sampling.sample(self.servers, self.clients)?;
        }
        Ok(sampling.judge(self.recorder))
    }

    /// Stops the producers, lets the consumers reach the end, and stops these.
    fn finish(mut self, left_out: &mut Vec<String>) -> Result<BTreeMap<Fault, u64>, RunError> {
        self.snapshot = None;
        self.servers.revive(Duration::from_secs(5))?;
        // Consumers go on while the last records of producers are acknowledged, so that everything
        // that is in the log can be delivered.
        Clients::stop(self.recorder, std::mem::take(&mut self.clients.producers))?;
        let mut drain = Drain::new(Instant::now());
        let mut client = self.servers.connect()?;
        loop {
            let left = judge::undone(&mut client, self.options, NAME)?;
            if left == 0 {
                break;
            }
            self.clients.look();
            if let Err(waited) = drain.goes_on(left, Instant::now()) {
                let waited_s = waited.as_secs();
                self.recorder.trouble(format!(
                    "{left} messages were not done {waited_s} s after the last was sent"
                ));
            }
            if !self.recorder.troubles().is_empty() {
                break;
            }
            thread::sleep(POLL * 5);
        }
        Clients::stop(self.recorder, std::mem::take(&mut self.clients.consumers))?;
        Clients::stop(self.recorder, std::mem::take(&mut self.clients.brokers))?;
        for kind in self.options.kinds() {
            if !self.faults.contains_key(&kind) && self.options.kills > 0 {
                left_out.push(format!(
                    "{kind}: the plan of {} faults has none, or it hit nothing",
                    self.options.kills
                ));
            }
        }
        Ok(self.faults)
    }
}

/// Waits until more than `before` messages are acknowledged, or something has gone wrong. A system
/// that does not come back after a fault fails here.
fn progress(
    recorder: &Recorder,
    before: u64,
    after: &str,
    clients: &mut Clients,
    servers: &Servers,
) -> Result<(), RunError> {
    let began = Instant::now();
    while recorder.acknowledged() <= before {
        clients.look();
        if !recorder.troubles().is_empty() {
            // The caller ends the run, so that it is judged and its history is kept.
            return Ok(());
        }
        if began.elapsed() > STUCK {
            return Err(RunError::Stuck {
                waited_s: began.elapsed().as_secs(),
                after: after.to_owned(),
                troubles: servers.describe().join("; "),
            });
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn check(options: &Options) -> Result<(), RunError> {
    let wrong = |text: &str| Err(RunError::Options(text.to_owned()));
    if !(1..=3).contains(&options.nodes) {
        return wrong("there are 1, 2 or 3 nodes");
    }
    if options.producers == 0 || options.consumers == 0 || options.partitions == 0 {
        return wrong("it needs a producer, a consumer and a partition");
    }
    if options.mode.has_brokers() && options.brokers == 0 {
        return wrong("it needs a broker");
    }
    if options.mode != Mode::Queue && options.groups == 0 {
        return wrong("it needs a group");
    }
    Ok(())
}
