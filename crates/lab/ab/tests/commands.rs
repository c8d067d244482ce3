//! Real commands, whose differences are known.

use std::fs;
use std::time::Duration;

use dyno_ab::{AbError, Answer, Length, Measured, Plan, Side, judge, measure};
use dyno_suite::Stop;

fn side(command: &str) -> Side {
    Side {
        command: command.to_owned(),
        dir: None,
    }
}

fn plan(old: &str, new: &str, blocks: u32) -> Plan {
    Plan {
        old: side(old),
        new: side(new),
        prepare: None,
        verify: None,
        length: Length::Blocks(blocks),
        time_limit: Duration::from_secs(60),
        seed: 7,
    }
}

fn measured(plan: &Plan) -> Result<Measured, AbError> {
    measure(plan, &Stop::default(), &mut |_, _| {})
}

/// A command that counts to `n` in the shell.
fn counting(n: u32) -> String {
    format!("i=0; while [ $i -lt {n} ]; do i=$((i + 1)); done; echo done")
}

#[test]
fn four_times_the_work_is_slower_and_said_so() {
    let (less, more) = (counting(10_000), counting(40_000));
    let seen = measured(&plan(&less, &more, 8)).expect("it runs");
    assert_eq!((seen.blocks.len(), seen.same_output), (8, Some(true)));
    let outcome = judge(&seen, None);
    assert_eq!(outcome.answer, Answer::Slower, "{outcome:?}");
    assert!(outcome.sentence.starts_with("NEW takes "), "{outcome:?}");
    let wall = &outcome.figures[0];
    assert!(wall.ratio < 0.7 && wall.new > wall.old, "{wall:?}");
    // A slowdown of that size can be accepted, too.
    assert_eq!(judge(&seen, Some(50.0)).answer, Answer::NotSlower);

    let back = judge(&measured(&plan(&more, &less, 8)).expect("it runs"), None);
    assert_eq!(back.answer, Answer::NotSlower, "{back:?}");
    assert!(back.sentence.contains("times as fast as OLD"), "{back:?}");
}

#[test]
fn a_command_that_fails_is_named_with_its_last_words() {
    let bad = plan("true", "echo first >&2; echo last >&2; exit 3", 8);
    let said = measured(&bad).expect_err("it fails").to_string();
    assert!(said.contains("exited with 3\nfirst\nlast"), "{said}");
    let killed = plan("true", "kill -9 $$", 8);
    let said = measured(&killed).expect_err("it dies").to_string();
    assert!(said.contains("was killed by signal 9"), "{said}");
    let hung = Plan {
        time_limit: Duration::from_millis(100),
        ..plan("true", "sleep 20", 8)
    };
    let said = measured(&hung).expect_err("it hangs").to_string();
    assert!(said.contains("took longer than 0.1 s"), "{said}");
}

#[test]
fn every_run_is_prepared_and_verified() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan {
        old: Side {
            command: "wc -l < prepared".to_owned(),
            dir: Some(folder.path().to_owned()),
        },
        new: Side {
            command: "cat prepared | wc -l".to_owned(),
            dir: Some(folder.path().to_owned()),
        },
        prepare: Some("echo >> prepared".to_owned()),
        verify: Some("cat >> outputs".to_owned()),
        ..plan("", "", 5)
    };
    let seen = measured(&plan).expect("it runs");
    // Two untimed runs and five blocks of three.
    let read = |name| fs::read_to_string(folder.path().join(name)).expect("a file");
    assert_eq!(read("prepared").lines().count(), 17);
    let counted: Vec<String> = (1..=17).map(|n: u32| n.to_string()).collect();
    let outputs = read("outputs");
    let outputs: Vec<&str> = outputs.lines().map(str::trim).collect();
    assert_eq!(outputs, counted);
    assert_eq!(seen.same_output, Some(false), "1 and 2");

    let wrong = Plan {
        verify: Some("grep -q 1000".to_owned()),
        ..plan
    };
    let said = measured(&wrong).expect_err("it is wrong").to_string();
    assert!(said.contains("`grep -q 1000` exited with 1"), "{said}");
}

#[test]
fn a_stop_before_there_is_a_verdict_is_an_error() {
    let stop = Stop::default();
    stop.ask();
    let error = measure(&plan("true", "true", 8), &stop, &mut |_, _| {});
    assert!(matches!(error, Err(AbError::Stopped)));
}

#[test]
fn enough_precision_ends_it() {
    let same = counting(5_000);
    let plan = Plan {
        length: Length::Precision(2.0, 40),
        ..plan(&same, &same, 0)
    };
    // The interval of any ratio is within 200% after the fewest blocks.
    assert_eq!(measured(&plan).expect("it runs").blocks.len(), 10);
}
