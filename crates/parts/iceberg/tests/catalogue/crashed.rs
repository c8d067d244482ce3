//! A crash or a kill at any step leaves the state before or the new one, and the next commit mends
//! the rest.

use dyno_sim::{Disk, Failure, Faults};

use super::{TABLE, commit, locations, open, reader, state};

const STATES: [&[&str]; 4] = [&["a"], &["a", "b"], &["a", "c"], &["a", "c", "d"]];

/// The files that a reader may find once `done` commits have returned and another may have begun.
fn allowed(done: usize) -> Vec<Option<Vec<String>>> {
    let of = |count: usize| match count {
        0 => None,
        count => Some(locations(STATES[count - 1])),
    };
    let next = (done + 1).min(STATES.len());
    vec![of(done), of(next)]
}

/// Commits all states, until one fails; returns how many did not.
fn run(disk: &Disk) -> usize {
    let Ok(mut catalogue) = open(disk) else {
        return 0;
    };
    for (done, files) in STATES.iter().enumerate() {
        if commit(&mut catalogue, &state(done as u64 + 1, files)).is_err() {
            return done;
        }
    }
    STATES.len()
}

/// Checks what is found after `done` commits, and that the next program can go on.
fn check(found: &Disk, done: usize, what: &str) {
    let seen = reader::files(found, TABLE);
    assert!(
        allowed(done).contains(&seen),
        "{what}: after {done} commits {seen:?}"
    );
    let last = STATES.len();
    let mut catalogue = open(found).unwrap_or_else(|e| panic!("{what}: {e}"));
    commit(&mut catalogue, &state(last as u64, STATES[last - 1])).unwrap();
    let wanted = Some(locations(STATES[last - 1]));
    assert_eq!(reader::files(found, TABLE), wanted, "{what}");
}

#[test]
fn every_step_of_a_commit_may_be_the_last() {
    let whole = Disk::new(0, Faults::default());
    assert_eq!(run(&whole), STATES.len());
    let steps = whole.steps();
    assert!(steps > 40, "{steps} steps");
    for step in 0..steps {
        for seed in 0..8 {
            let crash_step = Some(step);
            let disk = Disk::new(
                seed,
                Faults {
                    crash_step,
                    ..Faults::default()
                },
            );
            let done = run(&disk);
            check(
                &disk.after_crash(seed),
                done,
                &format!("crash in step {step}, seed {seed}"),
            );
            check(
                &disk.after_kill(seed),
                done,
                &format!("kill in step {step}, seed {seed}"),
            );
        }
    }
}

#[test]
fn a_commit_that_failed_is_made_good_by_the_next_one_of_the_same_program() {
    let whole = Disk::new(0, Faults::default());
    run(&whole);
    for step in 0..whole.steps() {
        let failure = Some(Failure::Once { step });
        let disk = Disk::new(
            step,
            Faults {
                failure,
                ..Faults::default()
            },
        );
        let Ok(mut catalogue) = open(&disk) else {
            continue;
        };
        for (done, files) in STATES.iter().enumerate() {
            // A state has all files, so the next commit repeats what failed.
            let _ = commit(&mut catalogue, &state(done as u64 + 1, files));
        }
        commit(&mut catalogue, &state(9, &["a", "e"])).unwrap();
        let seen = reader::files(&disk, TABLE);
        assert_eq!(seen, Some(locations(&["a", "e"])), "step {step}");
    }
}
