//! A whole run with a mock executor: the order of children, and what becomes of bad ones.

mod beside;
mod resumed;
mod why;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use dyno_machine::Readings;
use dyno_record::{
    Machine, Outcome, Program, Run, RunDir, SCHEMA_VERSION, Sample, StoredRun, Usage,
};
use insta::assert_snapshot;

use crate::plan::tests::planned;
use crate::protocol::Phase;
use crate::*;

const SUITE: &str = r#"
title = "Loads"
purpose = "Shows the runner."
order_seed = 7
[sizes.tiny]
rows = 100
budget_s = 60
[sizes.quick]
budget_s = 60
[sizes.full]
budget_s = 60
[[data]]
name = "archive"
workload = "gen"
params = { rows = "${size.rows}" }
time_limit_s = 60
estimate = { units = "${size.rows}", units_per_s = { other = 50 } }
[[case]]
name = "load"
title = "Load"
workload = "load"
params = { dir = "${data.archive}" }
peers = ["peer"]
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = 4
control = true
time_limit_s = 5
expected_count = "${size.rows}"
analysis = "A"
estimate = { units_per_s = { other = 100 } }
[[case]]
name = "top"
title = "Top"
workload = "top"
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = 2
time_limit_s = 5
expected_count = "${size.rows}"
analysis = "A"
estimate = { units_per_s = { other = 100 } }
"#;

/// Time that passes only when a mock child runs.
#[derive(Clone, Default)]
struct MockClock(Rc<Cell<f64>>);

impl Clock for MockClock {
    fn elapsed_s(&self) -> f64 {
        self.0.get()
    }

    fn utc(&self) -> String {
        format!("2026-11-20T12:00:{:02}Z", self.0.get() as u64 % 60)
    }
}

/// What a scripted child does; the number counts the invocations of a run from 0.
type Script = dyn Fn(usize, &Invocation, &Stop) -> Ended;

struct Mock<'a> {
    log: Rc<RefCell<Vec<String>>>,
    clock: MockClock,
    script: &'a Script,
    started: usize,
}

impl<'a> Mock<'a> {
    fn new(script: &'a Script) -> Mock<'a> {
        Mock {
            log: Rc::default(),
            clock: MockClock::default(),
            script,
            started: 0,
        }
    }
}

impl Executor for Mock<'_> {
    fn execute(&mut self, invocation: &Invocation, stop: &Stop) -> Result<Ended, Error> {
        let request = &invocation.request;
        let empty = fs::read_dir(&request.scratch).is_ok_and(|mut dir| dir.next().is_none());
        assert!(empty, "{:?} must be fresh and empty", request.scratch);
        fs::write(request.scratch.join("left-behind"), "x").expect("it is writable");
        let phase = match request.phase {
            Phase::Prepare => "prepare",
            Phase::Verify => "verify",
            Phase::Measure => "measure",
        };
        let line = format!("{phase} {} {}", request.workload, invocation.system);
        self.log.borrow_mut().push(line);
        let ended = (self.script)(self.started, invocation, stop);
        self.started += 1;
        self.clock.0.set(self.clock.0.get() + ended.wall_s);
        Ok(ended)
    }

    /// A load called `short` ends by itself.
    fn begin_load(
        &mut self,
        load: &LoadCommand,
        dir: &Path,
    ) -> Result<Box<dyn RunningLoad>, Error> {
        assert!(dir.is_dir(), "{dir:?} is the load's own");
        self.log.borrow_mut().push("load on".to_owned());
        Ok(Box::new(MockLoad {
            log: Rc::clone(&self.log),
            text: load.text.clone(),
        }))
    }
}

struct MockLoad {
    log: Rc<RefCell<Vec<String>>>,
    text: String,
}

impl RunningLoad for MockLoad {
    fn end(self: Box<Self>) -> Result<(), Error> {
        if self.text == "short" {
            return Err(Error::Beside {
                load: self.text.clone(),
                reason: "it ended".to_owned(),
            });
        }
        Ok(())
    }
}

impl Drop for MockLoad {
    fn drop(&mut self) {
        self.log.borrow_mut().push("load off".to_owned());
    }
}

fn ended(exit: Exit, stdout: &str, wall_s: f64) -> Ended {
    Ended {
        exit,
        wall_s,
        stdout: stdout.to_string(),
        stderr: if exit == Exit::Code(0) {
            String::new()
        } else {
            "it broke\n".into()
        },
        usage: Usage::default(),
    }
}

fn good(_: usize, _: &Invocation, _: &Stop) -> Ended {
    answer("abc")
}

fn answer(checksum: &str) -> Ended {
    let reply = format!(
        "{{\"answer\":{{\"count\":100,\"checksum\":\"{checksum}\"}},\"metrics\":{{\"throughput\":50}}}}"
    );
    ended(Exit::Code(0), &reply, 2.0)
}

struct Ran {
    log: Vec<String>,
    summary: Summary,
    stored: StoredRun,
    scratch_left: usize,
}

pub(crate) fn system(name: &str) -> System {
    System {
        name: name.to_string(),
        program: "/nowhere".into(),
        args: Vec::new(),
        version: "1".into(),
        data_version: "1".into(),
        promises_less: None,
        missing: None,
    }
}

fn run_suite(text: &str, script: &Script) -> Ran {
    let planned = planned(text, &["peer"]).expect("a good plan");
    run_planned(planned, script).expect("the run itself goes well")
}

fn run_planned(planned: Planned, script: &Script) -> Result<Ran, Error> {
    run_after(Vec::new(), planned, script)
}

/// Continues a run that left the samples `done`. The record has none but the new ones.
fn run_after(done: Vec<Sample>, planned: Planned, script: &Script) -> Result<Ran, Error> {
    let root = tempfile::tempdir().expect("a directory");
    let run_dir = root.path().join("run");
    let record = RunDir::create(&run_dir, empty_run(&planned)).expect("a record");
    let mut executor = Mock::new(script);
    let (log, clock) = (Rc::clone(&executor.log), executor.clock.clone());
    let seen = Rc::clone(&log);
    let mut observer = move |event: &Event<'_>| match event {
        Event::CaseFailed { case, reason } => seen.borrow_mut().push(format!("! {case}: {reason}")),
        Event::Sampled { sample, .. } => seen.borrow_mut().push(format!(
            "  kept {} {:?} {}.{} {:?}",
            sample.system, sample.arm, sample.block, sample.position, sample.outcome
        )),
        Event::Verified {
            case,
            count,
            systems,
        } => {
            seen.borrow_mut()
                .push(format!("  {systems} agree on {count} in {case}"));
        }
        Event::BudgetSpent { left, .. } => seen.borrow_mut().push(format!("  budget: {left} left")),
        Event::Stopped => seen.borrow_mut().push("  stopped".to_string()),
        _ => {}
    };
    let summary = run(Setup {
        planned,
        systems: vec![system("dyno"), system("peer")],
        executor: &mut executor,
        clock: &clock,
        sensors: &|| Readings {
            clocks_mhz: vec![clock.elapsed_s()],
            temperatures_c: Vec::new(),
        },
        observer: &mut observer,
        stop: Stop::default(),
        data_root: root.path().join("data"),
        scratch_root: root.path().join("scratch"),
        memory_scratch_root: root.path().join("memory"),
        record,
        profiler: None,
        done,
    });
    let scratch_left = fs::read_dir(root.path().join("scratch")).map_or(0, Iterator::count);
    let log = log.borrow().clone();
    let stored = RunDir::open(&run_dir).expect("a readable record");
    let ran = |summary| Ran {
        log,
        summary,
        stored,
        scratch_left,
    };
    summary.map(ran)
}

fn empty_run(planned: &Planned) -> Run {
    Run {
        magic: "dyno-run".into(),
        schema_version: SCHEMA_VERSION,
        started_at: "2026-11-20T12:00:00Z".into(),
        finished_at: None,
        plan: planned.plan.clone(),
        machine: Machine {
            fingerprint: "f".into(),
            facts: Vec::new(),
            checks: Vec::new(),
        },
        limits: Vec::new(),
        program: Program {
            version: "0".into(),
            hash: "0".into(),
            git_revision: "unknown".into(),
            profile: "debug".into(),
        },
        systems: Vec::new(),
        beside: None,
        command: None,
        unread: BTreeMap::new(),
    }
}

fn outcomes(stored: &StoredRun) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for sample in &stored.samples {
        let kind = match &sample.outcome {
            Outcome::Done => "done",
            Outcome::Failed(_) => "failed",
            Outcome::Hung(_) => "hung",
        };
        *counts
            .entry(format!("{} {kind}", sample.system))
            .or_default() += 1;
    }
    counts
}

#[test]
fn data_then_verification_then_balanced_blocks() {
    let ran = run_suite(SUITE, &good);
    assert_snapshot!(ran.log.join("\n"));
    assert_eq!(ran.summary.done, 14);
    assert!(ran.summary.failures.is_empty());
    assert!(ran.stored.run.finished_at.is_some());
    assert_eq!(ran.stored.samples.len(), 14);
    assert_eq!(ran.scratch_left, 0, "scratch directories are removed");
}

#[test]
fn a_wrong_answer_before_timing_fails_the_case_and_only_it() {
    let ran = run_suite(SUITE, &|_, invocation, _| {
        let wrong = invocation.system == "peer" && invocation.request.workload == "load";
        answer(if wrong { "bad" } else { "abc" })
    });
    assert_snapshot!(ran.log.join("\n"));
    assert_eq!(ran.summary.done, 2);
    assert_eq!(ran.summary.failures.len(), 1);
    // Both answers are in the record, marked, and nothing of the case counts as measured.
    assert_eq!(outcomes(&ran.stored)["peer failed"], 1);
    assert_eq!(outcomes(&ran.stored)["dyno failed"], 1);
}

#[test]
fn a_wrong_answer_while_timing_is_no_sample() {
    let ran = run_suite(SUITE, &|number, _, _| {
        answer(if number == 5 { "bad" } else { "abc" })
    });
    assert_eq!(ran.summary.done, 13);
    let (case, reason) = &ran.summary.failures[0];
    assert_eq!(case, "load");
    assert!(
        reason.contains("answered 100 (bad) and the verified answer is 100 (abc)"),
        "{reason}"
    );
}

#[test]
fn a_hang_is_reported_and_not_repeated_for_ever() {
    let ran = run_suite(SUITE, &|number, invocation, _| {
        if number > 2 && invocation.system == "peer" {
            ended(Exit::TimedOut, "", 5.0)
        } else {
            answer("abc")
        }
    });
    let counts = outcomes(&ran.stored);
    assert_eq!(counts["peer hung"], 2);
    assert_eq!(counts["dyno done"], 10);
    assert!(
        ran.summary.failures[0]
            .1
            .contains("peer hung: killed after 5.0 s; its limit is 5 s")
    );
}

#[test]
fn a_crash_before_timing_leaves_the_others_in() {
    let ran = run_suite(SUITE, &|_, invocation, _| {
        if invocation.system == "peer" {
            ended(Exit::Signal(11), "", 0.1)
        } else {
            answer("abc")
        }
    });
    assert_eq!(outcomes(&ran.stored)["dyno done"], 10);
    assert_eq!(outcomes(&ran.stored)["peer failed"], 1);
    assert_eq!(
        ran.summary.failures[0].1,
        "peer: ended by signal 11: it broke"
    );
}

#[test]
fn a_stop_ends_the_run_and_keeps_what_was_measured() {
    let ran = run_suite(SUITE, &|number, _, stop| {
        if number == 6 {
            stop.ask();
            ended(Exit::Stopped, "", 0.5)
        } else {
            answer("abc")
        }
    });
    assert!(ran.summary.stopped);
    assert_eq!(
        ran.log.len(),
        7 + 1 + 3 + 1,
        "nothing starts after the stop"
    );
    assert_eq!(ran.stored.samples.len(), 3);
    assert!(
        ran.stored.run.finished_at.is_none(),
        "the record stays marked as unfinished"
    );
    assert_eq!(ran.scratch_left, 0);
}

#[test]
fn sensors_are_read_around_each_sample() {
    let ran = run_suite(SUITE, &good);
    // The mock sensor shows the mock clock, which moves by the two seconds of each child.
    for sample in &ran.stored.samples {
        let clock = sample.sensors.clock_mhz.expect("it was read");
        assert_eq!(clock.min, sample.at_s);
        assert_eq!(clock.max, sample.at_s + 2.0);
        assert_eq!(sample.sensors.temperature_c, None);
    }
}

#[test]
fn the_budget_ends_a_run_between_blocks() {
    let ran = run_suite(&SUITE.replace("budget_s = 60", "budget_s = 15"), &good);
    // 2 verifications and 2 blocks of 3 at 2 s each are 16 s.
    assert_eq!(ran.summary.done, 6);
    assert_eq!(ran.summary.cut, 8);
    assert!(
        !ran.log.iter().any(|line| line.contains("verify top")),
        "{:?}",
        ran.log
    );
    assert!(ran.stored.run.finished_at.is_some());
}

#[test]
fn data_is_made_once() {
    let planned = planned(SUITE, &[]).expect("a good plan");
    let root = tempfile::tempdir().expect("a directory");
    let systems = [system("dyno")];
    let preparer = Preparer::new(root.path(), &planned, &systems);
    assert!(!preparer.ready("archive", "dyno"));
    assert!(planned.needs(&|d, s| preparer.ready(d, s)).prepare_s > 1.9);
    let mut executor = Mock::new(&good);
    let (log, clock) = (Rc::clone(&executor.log), executor.clock.clone());
    for _ in 0..2 {
        let mut observer = |_: &Event<'_>| {};
        preparer
            .prepare(
                &systems,
                &mut executor,
                &clock,
                &mut observer,
                &Stop::default(),
            )
            .expect("made");
    }
    assert_eq!(log.borrow().len(), 1);
    assert!(
        preparer.ready("archive", "peer"),
        "what dyno made is everybody's"
    );
    assert_eq!(planned.needs(&|d, s| preparer.ready(d, s)).prepare_s, 0.0);
    let newer = [System {
        data_version: "2".into(),
        ..system("dyno")
    }];
    assert!(!Preparer::new(root.path(), &planned, &newer).ready("archive", "dyno"));
}
