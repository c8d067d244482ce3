//! Real processes, killed with SIGKILL at any moment, and their pages afterwards; and the model
//! that `dyno pages check` runs, for a short while.

use std::time::Duration;

use dyno_pages::check::{Plan, job, run};

/// How long a process lives before it is killed.
const LIFE: Duration = Duration::from_millis(150);

/// Not a test of its own: what a process does until it is killed.
#[test]
fn child() {
    job().expect("the store");
}

fn plan(share: bool, life: Duration) -> Plan {
    let program = std::env::current_exe().expect("this program");
    Plan {
        seed: 7,
        steps: 4_000,
        kills: 8,
        life,
        share,
        soak: Duration::from_millis(900),
        job: [
            program.into(),
            "--exact".into(),
            "child".into(),
            "--nocapture".into(),
        ]
        .into(),
    }
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
