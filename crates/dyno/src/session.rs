//! Runs suites one after the other: plans them, measures, and writes records and reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use dyno_machine::{Root, Sensors, machine};
use dyno_record::{Limit, Machine, Run, RunDir, SCHEMA_VERSION, Size, SystemVersion};
use dyno_report::build_stored;
use dyno_suite::{
    ChildExecutor, Clock, Definition, Planned, Preparer, Profiler, Setup, Stop, Summary,
    SystemClock,
};

use crate::args::PeersFrom;
use crate::exit::Exit;
use crate::limits::{self, LimitCache};
use crate::progress::RunProgress;
use crate::scratch::ScratchDir;
use crate::systems::{self, Chosen};
use crate::times::Times;
use crate::units::show_seconds;
use crate::{headline, identity, places, resources, resume, sql, surroundings, terminal};

/// The pause between two readings of the processor's counters.
const PAUSE: Duration = Duration::from_millis(500);

/// How suites are run, and where their records go.
pub struct Session<'a> {
    pub size: Size,
    /// Where peers are declared; `None` measures no peer.
    pub peers: Option<&'a PeersFrom>,
    /// The directory of prepared data and scratch files; `None` for the user's cache.
    pub data_dir: Option<&'a Path>,
    /// Refuse a suite that needs more disk than this, in bytes.
    pub max_disk: Option<u64>,
    /// A load beside which every system runs a second time in each block: the name of a built-in
    /// one or a shell command.
    pub beside: Option<&'a str>,
    /// Run each case with one resource changed at a time as well.
    pub why: bool,
    /// Profile each system of each case as well, in an invocation that is not timed.
    pub flamegraph: bool,
    /// The time between two lines of progress where no bar is shown; `None` for no progress at all.
    pub report_every: Option<Duration>,
    /// Start no further block after this time; `None` for the suite's budget.
    pub budget: Option<Duration>,
    /// Measure the machine's limits again, although recent ones are known.
    pub measure_limits: bool,
    /// The directory of the records.
    pub out: &'a Path,
    /// The record of an interrupted run of the one suite, which is continued instead of making
    /// another.
    pub resume: Option<&'a Path>,
    /// What is printed of each report.
    pub print: Print,
    /// The command line that the record names; `None` for the one that runs the suite again.
    pub command: Option<String>,
}

/// What of a report goes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Print {
    Headline,
    Json,
    Nothing,
}

impl Print {
    pub fn new(json: bool) -> Print {
        if json { Print::Json } else { Print::Headline }
    }
}

/// What a session leaves behind: how the program is to exit, and the records that it wrote.
pub struct SessionOutcome {
    /// [`Exit::Done`] if all suites ran well, [`Exit::Failure`] if the session was stopped, and
    /// otherwise that of the last suite that did not run well.
    pub exit: Exit,
    /// The directories of the records, in the order of the suites that were begun.
    pub records: Vec<PathBuf>,
}

impl Session<'_> {
    /// Runs the suites in order. Every suite is planned before the first is run, so that a mistake
    /// in the last one is reported at once.
    pub fn run(&self, suites: &[Definition], stop: &Stop) -> anyhow::Result<SessionOutcome> {
        let cache = places::cache(self.data_dir)?;
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        let profiler = if self.flamegraph {
            Some(Profiler::find().map_err(|why| anyhow!("--flamegraph: {why}"))?)
        } else {
            None
        };
        let mut jobs = Vec::new();
        for suite in suites {
            // Of one suite the user wants to see why it fails. Among several it would only hide
            // those that ran, because the command could not end well.
            if suites.len() == 1 {
                jobs.push(Job::plan(suite, self, &cache)?);
                continue;
            }
            if let Some(rest) = without_missing(suite, self.size)? {
                jobs.push(Job::plan(&rest, self, &cache)?);
            }
        }
        if jobs.is_empty() && !suites.is_empty() {
            bail!("nothing can be run: every suite was left out");
        }
        let seen = machine(&Root::system(), &cache, &mut || thread::sleep(PAUSE));
        warn_about(&seen);
        let known = known_limits(self, &cache, &seen, stop)?;
        // A run that was itself killed may have left devices, or files in memory.
        dyno_rigs::remove_strays();
        let (mut exit, mut records) = (Exit::Done, Vec::new());
        for job in jobs {
            if stop.asked() {
                exit = Exit::Failure;
                break;
            }
            let (ended, record) = job.run(self, &cache, &seen, &known, profiler, stop)?;
            records.push(record);
            match ended {
                Exit::Done => {}
                worse => exit = worse,
            }
        }
        Ok(SessionOutcome { exit, records })
    }
}

/// The cases of a plan that cannot run on this machine, each with the reason.
pub fn missing(planned: &Planned) -> Vec<(String, String)> {
    let cases = planned.plan.cases.iter();
    cases
        .filter_map(|case| {
            let reason = dyno_rigs::workload_missing(&case.workload, &case.params)?;
            Some((case.name.clone(), reason))
        })
        .collect()
}

/// The cases of a plan that need the SQL engine, and why that cannot be started. `None` if it can
/// be started, or if no case needs it.
pub fn lacking_sql(planned: &Planned) -> Option<(Vec<String>, anyhow::Error)> {
    let reason = sql::command().err()?;
    let cases = planned.plan.cases.iter();
    let needing: Vec<String> = cases
        .filter(|case| dyno_rigs::needs_sql(&case.workload, &case.params))
        .map(|case| case.name.clone())
        .collect();
    (!needing.is_empty()).then_some((needing, reason))
}

/// Refuses a plan of which every case needs the SQL engine when that is missing, and names on
/// standard error the cases that will fail when only some need it. A run would otherwise measure
/// limits, make data and load it before its first case fails.
fn check_sql(planned: &Planned) -> anyhow::Result<()> {
    let Some((cases, reason)) = lacking_sql(planned) else {
        return Ok(());
    };
    let suite = &planned.plan.suite;
    if cases.len() == planned.plan.cases.len() {
        return Err(reason.context(format!("{suite}: no case can run without dyno-sql")));
    }
    let names = cases.join(", ");
    eprintln!("{suite}: cases that will fail without dyno-sql: {names}; {reason}");
    Ok(())
}

/// The suite with the cases that can run on this machine, and what it lacks for the others on
/// standard error. `None` if none of its cases can run.
fn without_missing(suite: &Definition, size: Size) -> anyhow::Result<Option<Definition>> {
    // What is missing does not depend on the peers, so the plan needs none.
    let planned = Planned::new(suite, size, &[])?;
    let missing = missing(&planned);
    if let Some((_, reason)) = missing.first()
        && missing.len() == planned.plan.cases.len()
    {
        eprintln!("{}: left out: {reason}", suite.name);
        return Ok(None);
    }
    let mut rest = suite.clone();
    for (case, reason) in missing {
        eprintln!("{}: case {case} is not run: {reason}", suite.name);
        rest.skip(case);
    }
    // The planning of the session refuses a suite that can do nothing without the SQL engine. Of
    // several suites that would end those that can run, so it is left out before.
    let planned = Planned::new(&rest, size, &[])?;
    if let Some((cases, reason)) = lacking_sql(&planned)
        && cases.len() == planned.plan.cases.len()
    {
        eprintln!("{}: left out: {reason}", suite.name);
        return Ok(None);
    }
    Ok(Some(rest))
}

/// A suite, ready to be run.
struct Job {
    planned: Planned,
    chosen: Chosen,
}

impl Job {
    fn plan(suite: &Definition, session: &Session<'_>, cache: &Path) -> anyhow::Result<Job> {
        let chosen = systems::choose(suite, session.peers)?;
        let mut planned = chosen.plan(suite, session.size)?;
        Times::read(cache).correct(&mut planned);
        if let Some(load) = session.beside {
            planned.run_beside(identity::load(load)?);
        }
        if session.why {
            let here = surroundings::find(&planned);
            planned.ask_why(&here);
        }
        if let Some(budget) = session.budget {
            planned.budget_s = budget.as_secs_f64();
        }
        let preparer = Preparer::new(&cache.join("data"), &planned, &chosen.systems);
        let needs = planned.needs(&|data, system| preparer.ready(data, system));
        let resources = resources::available(cache, session.max_disk);
        let data = cache.join("data");
        resources::check(&needs, &resources, suite, &chosen, (session.size, &data))?;
        check_sql(&planned)?;
        if session.report_every.is_none() {
            return Ok(Job { planned, chosen });
        }
        eprintln!(
            "{}: {} timed invocations, about {} after {} of preparation; no block starts after {}",
            suite.name,
            planned.samples(),
            show_seconds(needs.run_s),
            show_seconds(needs.prepare_s),
            show_seconds(planned.budget_s),
        );
        if let Some(left_out) = planned.plan.left_out.text(session.size) {
            eprintln!("{}: {left_out}; --case NAME runs one whole", suite.name);
        }
        Ok(Job { planned, chosen })
    }

    fn run(
        self,
        session: &Session<'_>,
        cache: &Path,
        seen: &Machine,
        limits: &[Limit],
        profiler: Option<Profiler>,
        stop: &Stop,
    ) -> anyhow::Result<(Exit, PathBuf)> {
        let clock = SystemClock::default();
        let started_at = clock.utc();
        let sensors = Sensors::find(Root::system());
        let run = self.describe(session, seen, limits, started_at.clone(), &sensors)?;
        let scratch = ScratchDir::new(cache)?;
        let (dir, record, done) = match session.resume {
            Some(dir) => {
                let (record, done) = resume::open(dir, &run)?;
                (dir.to_path_buf(), record, done)
            }
            None => {
                let stamp = started_at.replace(['-', ':'], "");
                let name = format!("{}-{stamp}", self.planned.plan.suite);
                let dir = session.out.join(name);
                let record = RunDir::create(&dir, run)?;
                (dir, record, Vec::new())
            }
        };
        let mut progress = RunProgress::new(session.report_every);
        let teller = progress.teller();
        let memory_scratch = dyno_rigs::memory_scratch();
        let summary = dyno_suite::run(Setup {
            planned: self.planned,
            systems: self.chosen.systems,
            executor: &mut ChildExecutor {
                progress: Some(&teller),
                after_failure: Some(&dyno_rigs::remove_strays),
            },
            clock: &clock,
            sensors: &|| sensors.read(),
            observer: &mut progress,
            stop: stop.clone(),
            data_root: cache.join("data"),
            scratch_root: scratch.path().to_owned(),
            memory_scratch_root: memory_scratch.clone(),
            record,
            profiler,
            done,
        });
        // Each invocation has removed its own directory in there, unless it failed and has said
        // why.
        let _ = fs::remove_dir_all(&memory_scratch);
        drop(scratch);
        let summary = summary?;
        drop(progress);
        report(&dir, session.print)?;
        // The times make later plans more exact and nothing else, so a cache that cannot be written
        // must not turn a run of hours into a failure.
        if let Err(error) = Times::read(cache).learn(&dir) {
            let why = terminal::explain(&error);
            eprintln!("the times of this run are not kept for later plans: {why}");
        }
        Ok((judge(&summary), dir))
    }

    fn describe(
        &self,
        session: &Session<'_>,
        seen: &Machine,
        limits: &[Limit],
        started_at: String,
        sensors: &Sensors,
    ) -> anyhow::Result<Run> {
        Ok(Run {
            magic: "dyno-run".to_string(),
            schema_version: SCHEMA_VERSION,
            started_at,
            finished_at: None,
            plan: self.planned.plan.clone(),
            machine: seen.clone(),
            limits: limits.to_vec(),
            program: identity::program()?,
            systems: self
                .chosen
                .systems
                .iter()
                .map(|system| SystemVersion {
                    name: system.name.clone(),
                    version: system.version.clone(),
                    missing: system.missing.clone(),
                })
                .collect(),
            beside: session.beside.map(str::to_owned),
            command: session.command.clone(),
            unread: sensors.unread(),
        })
    }
}

fn warn_about(seen: &Machine) {
    for check in seen.checks.iter().filter(|check| check.state == "spoils") {
        eprintln!("{}: {}; {}", check.name, check.seen, check.cost);
    }
    if cfg!(debug_assertions) {
        eprintln!("this program is a debug build; its figures are marked and mean little");
    }
}

fn known_limits(
    session: &Session<'_>,
    cache: &Path,
    seen: &Machine,
    stop: &Stop,
) -> anyhow::Result<Vec<Limit>> {
    let program = identity::program()?;
    let cached = LimitCache::new(cache, &seen.fingerprint, session.size, program.hash);
    if !session.measure_limits
        && let Some(limits) = cached.read()
    {
        let at = limits
            .first()
            .map_or("an earlier run", |limit| limit.measured_at.as_str());
        eprintln!("limits of this machine from {at}; --measure-limits measures them again");
        return Ok(limits);
    }
    let found = limits::measure(session.size, cache, stop)?;
    for (name, reason) in &found.missing {
        eprintln!("limit {name} is not available: {reason}");
    }
    if !stop.asked() && session.size != Size::Tiny {
        cached.write(&found.limits)?;
    }
    Ok(found.limits)
}

/// Writes the four reports beside the record and prints what is wished of them.
fn report(dir: &Path, print: Print) -> anyhow::Result<()> {
    let stored = RunDir::open(dir)?;
    let report = build_stored(&stored);
    let as_json = report.to_json()?;
    let write = |name: &str, text: &str| -> anyhow::Result<PathBuf> {
        Ok(RunDir::write_report(dir, name, text.as_bytes())?)
    };
    write("report.md", &report.to_markdown()?)?;
    write("report.json", &as_json)?;
    RunDir::write_report(dir, "report.xlsx", &report.to_xlsx()?)?;
    let html = write("report.html", &report.to_html()?)?;
    let printed = match print {
        Print::Json => terminal::print(&as_json),
        Print::Headline => terminal::print(&headline::text(&report)),
        Print::Nothing => Ok(()),
    };
    // The reports are in their files. A reader that went away must not end the suites that are
    // still to run.
    if let Err(error) = printed
        && !terminal::is_broken_pipe(&error)
    {
        return Err(error);
    }
    eprintln!("report: {}", html.display());
    Ok(())
}

fn judge(summary: &Summary) -> Exit {
    if summary.stopped {
        Exit::Failure
    } else if !summary.failures.is_empty() {
        Exit::No
    } else if summary.cut > 0 {
        Exit::NotEnoughEvidence
    } else {
        Exit::Done
    }
}
