//! Real processes, killed with SIGKILL at any moment, and their pages afterwards; and the model
//! that `dyno pages check` runs, for a short while.

use std::time::Duration;

use dyno_pages::check::{Job, Plan, job, run};

/// How long a process lives before it is killed.
const LIFE: Duration = Duration::from_millis(150);

/// Not a test of its own: what a process does until it is killed.
#[test]
fn child() {
    job().expect("the store");
}

fn job_of_this_program() -> Job {
    let program = std::env::current_exe().expect("this program");
    [
        program.into(),
        "--exact".into(),
        "child".into(),
        "--nocapture".into(),
    ]
    .into()
}

fn plan(share: bool, life: Duration) -> Plan {
    Plan {
        seed: 7,
        steps: 4_000,
        kills: 8,
        life,
        share,
        soak: Duration::from_millis(900),
        job: job_of_this_program(),
    }
}

/// Why processes of this job give no judgement.
fn refusal(job: Job, kills: u32, life: Duration) -> String {
    let plan = Plan {
        steps: 0,
        kills,
        soak: Duration::ZERO,
        job,
        ..plan(false, life)
    };
    run(&plan, &|| false).expect_err("no judgement").to_string()
}

#[test]
fn what_was_written_before_a_kill_is_there_after_it() {
    for share in [false, true] {
        // The windows of so short a run are too short to say that memory stays: what it holds is
        // what counts here.
        let judged = |life| {
            let outcome = run(&plan(share, life), &|| false).expect("a judgement");
            assert!(outcome.holds(), "{:?}", outcome.broken);
            outcome
        };
        let mut outcome = judged(LIFE);
        if outcome.written_back == 0 {
            // On a busy machine so short a life may end before a page goes to the file.
            outcome = judged(5 * LIFE);
        }
        assert_eq!((outcome.kills, outcome.steps), (8, 4_000));
        assert!(outcome.acknowledged > 1_000);
        assert!(outcome.written_back > 0, "no page was in the file");
        assert_eq!(outcome.soak.windows.len(), 18);
        // A busy machine may not run the threads at all in one of fifty milliseconds.
        let calls: u64 = outcome.soak.windows.iter().map(|window| window.calls).sum();
        assert!(calls > 1_000, "{calls}");
    }
}

#[test]
fn a_process_that_ends_by_itself_is_not_a_kill() {
    let said = refusal(["true".into()].into(), 2, LIFE);
    assert!(said.contains("ended by itself (exit status: 0)"), "{said}");
}

#[test]
fn a_process_without_an_acknowledged_write_proves_nothing() {
    let job = ["sleep".into(), "60".into()].into();
    let said = refusal(job, 1, Duration::from_millis(20));
    assert!(said.contains("no write was acknowledged"), "{said}");
}

/// Writing back fails, because the process may not write to files. The writers alone would go on
/// until they are killed.
#[test]
fn an_error_of_the_background_ends_the_process() {
    let shell = "ulimit -f 0; trap '' XFSZ; exec \"$0\" \"$@\"";
    let mut job: Job = ["sh".into(), "-c".into(), shell.into()].into();
    job.extend(job_of_this_program());
    let said = refusal(job, 8, 5 * LIFE);
    assert!(said.contains("ended by itself (exit status: "), "{said}");
}
