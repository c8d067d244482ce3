//! Runs with experiments.

use dyno_record::{Arm, Role};

use super::*;

/// The suite with a parameter that may be varied, and an output that may go nowhere.
fn run_why(script: &Script) -> Ran {
    let suite = SUITE.replace(
        "dir = \"${data.archive}\" }",
        "dir = \"${data.archive}\", workers = 2, place = \"memory\" }",
    );
    let mut planned = planned(&suite, &["peer"]).expect("a good plan");
    planned.ask_why(&Surroundings {
        cores: vec![2, 5],
        ..Surroundings::default()
    });
    run_planned(planned, script).expect("the run itself goes well")
}

/// What one timed child was given.
struct TimedChild {
    program: String,
    args: Vec<String>,
    workers: Option<u64>,
    place: Option<String>,
    in_memory: bool,
}

#[test]
fn each_experiment_runs_in_every_block_with_its_own_change() {
    let children = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&children);
    let ran = run_why(&move |_, invocation, _| {
        let request = &invocation.request;
        if request.phase == Phase::Measure && request.workload == "load" {
            let root = request.scratch.parent().expect("a directory");
            let args = invocation.args.iter();
            log.borrow_mut().push(TimedChild {
                program: invocation.program.display().to_string(),
                args: args.map(|arg| arg.to_string_lossy().into_owned()).collect(),
                workers: request.params["workers"].as_u64(),
                place: request.params["place"].as_str().map(str::to_owned),
                in_memory: root.ends_with("memory"),
            });
        }
        answer("abc")
    });
    assert_eq!(ran.summary.failures, []);
    let children = children.borrow();
    // Four blocks of dyno, its control, two of workers, one of place, two around the child, and the
    // peer.
    assert_eq!(children.len(), 4 * 8);
    let times = |is: &dyn Fn(&TimedChild) -> bool| children.iter().filter(|one| is(one)).count();
    assert_eq!(times(&|one| one.workers == Some(1)), 4);
    assert_eq!(times(&|one| one.workers == Some(4)), 4);
    assert_eq!(times(&|one| one.place.as_deref() == Some("null")), 4);
    assert_eq!(times(&|one| one.in_memory), 4);
    // Of the processors 2 and 5, the first is kept.
    let pinned = |one: &TimedChild| {
        one.program == "taskset" && one.args.starts_with(&["-c".to_owned(), "2".to_owned()])
    };
    assert_eq!(times(&pinned), 4);
    assert_eq!(ran.scratch_left, 0);
}

#[test]
fn a_change_that_changes_the_work_is_no_experiment_and_no_failure() {
    let ran = run_why(&|_, invocation, _| {
        let params = &invocation.request.params;
        match params.get("workers").and_then(|workers| workers.as_u64()) {
            Some(1) => answer("other"),
            _ if params.get("place").is_some_and(|place| place == "null") => answer("-"),
            _ => answer("abc"),
        }
    });
    assert_eq!(ran.summary.failures, [], "the case itself is sound");
    let case = &ran.stored.run.plan.cases[0];
    let of = |system: &str| {
        let samples = ran.stored.samples.iter();
        let own = samples.filter(|s| s.case == "load" && s.system == system && s.arm == Arm::Main);
        own.map(|s| s.outcome.clone()).collect::<Vec<_>>()
    };
    assert_eq!(case.role("workers-one-fewer"), Role::Experiment);
    let [Outcome::Failed(reason)] = &of("workers-one-fewer")[..] else {
        panic!("{:?}", of("workers-one-fewer"));
    };
    assert!(
        reason.contains("the change makes it do other work"),
        "{reason}"
    );
    assert_eq!(
        of("place-null"),
        vec![Outcome::Done; 4],
        "what goes nowhere leaves no checksum"
    );
}
