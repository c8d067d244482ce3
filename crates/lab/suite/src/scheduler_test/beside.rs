//! Runs beside a load.

use dyno_record::Arm;

use super::*;

/// A run beside a load called `text`; see [`Mock::begin_load`].
fn run_beside(text: &str, script: &Script) -> Result<Ran, Error> {
    let mut planned = planned(SUITE, &["peer"]).expect("a good plan");
    planned.run_beside(LoadCommand {
        text: text.to_owned(),
        program: "/nowhere".into(),
        args: Vec::new(),
    });
    run_planned(planned, script)
}

#[test]
fn a_load_is_there_for_its_own_samples_and_for_no_other() {
    let ran = run_beside("cpu", &good).expect("the run itself goes well");
    // Four blocks of two systems and the control, two of one system, and each system again.
    assert_eq!(ran.summary.done, 14 + 8 + 2);
    let mut loaded = false;
    let mut beside = 0;
    for line in &ran.log {
        match line.as_str() {
            "load on" | "load off" => {
                assert_ne!(loaded, line == "load on");
                loaded = line == "load on";
            }
            line if line.starts_with("verify") => assert!(!loaded, "{line}"),
            line if line.starts_with("measure") => beside += usize::from(loaded),
            line if line.contains(" kept ") => assert!(!loaded, "{line}"),
            _ => {}
        }
    }
    assert_eq!((beside, loaded), (10, false));
    let arms = |arm| ran.stored.samples.iter().filter(|s| s.arm == arm).count();
    assert_eq!((arms(Arm::Main), arms(Arm::Beside)), (10, 10));
    assert_eq!(ran.scratch_left, 0);
}

#[test]
fn a_load_that_ends_early_ends_the_run_with_its_name() {
    let error = run_beside("short", &good).err().expect("refused");
    let said = error.to_string();
    assert_eq!(said, "the load beside the run, `short`: it ended");
}

#[test]
fn a_system_that_fails_beside_the_load_is_measured_alone_all_the_same() {
    let hung = Rc::new(Cell::new(0));
    let counted = Rc::clone(&hung);
    let ran = run_beside("cpu", &move |_, invocation, _| {
        let request = &invocation.request;
        let root = request.scratch.parent().expect("a directory");
        let loaded = root.join("beside").is_dir();
        if loaded && invocation.system == "peer" {
            counted.set(counted.get() + 1);
            return ended(Exit::TimedOut, "", 5.0);
        }
        answer("abc")
    })
    .expect("the run itself goes well");
    assert_eq!(hung.get(), 2, "it is given up beside the load");
    let counts = outcomes(&ran.stored);
    assert_eq!((counts["peer done"], counts["peer hung"]), (4, 2));
}

#[test]
fn a_stop_ends_the_load_as_well() {
    let ran = run_beside("short", &|number, invocation, stop| {
        let root = invocation.request.scratch.parent().expect("a directory");
        if number > 1 && root.join("beside").is_dir() {
            stop.ask();
            return ended(Exit::Stopped, "", 0.5);
        }
        answer("abc")
    })
    .expect("what the load did after the stop is of no interest");
    assert!(ran.summary.stopped);
    assert!(ran.log.iter().any(|line| line == "load off"));
    assert_eq!(ran.scratch_left, 0);
}
