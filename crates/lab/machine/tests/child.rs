//! A child process is fed, drained, billed and, when it must be, killed.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dyno_machine::{ChildLimits, ChildRun, Exit, MachineError, run_child};

const LIMIT: Duration = Duration::from_secs(30);

fn sh(script: &str, stdin: &[u8], limits: ChildLimits<'_>) -> ChildRun {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    run_child(command, stdin, limits).unwrap()
}

#[test]
fn input_and_output_larger_than_any_pipe_pass() {
    let input = vec![b'x'; 3 << 20];
    let run = sh("cat; echo done >&2", &input, ChildLimits::time(LIMIT));
    assert_eq!(run.exit, Exit::Code(0));
    assert_eq!(run.stdout.bytes.len(), input.len());
    assert_eq!(run.stderr.last_line().as_deref(), Some("done"));
    assert!(!run.hung && run.wall_s > 0.0);
}

#[test]
fn a_child_that_reads_nothing_is_no_error() {
    let run = sh(
        "exec <&-; exit 7",
        &vec![0; 1 << 20],
        ChildLimits::time(LIMIT),
    );
    assert_eq!(run.exit, Exit::Code(7));
}

#[test]
fn only_the_end_of_a_long_output_is_kept() {
    let limits = ChildLimits {
        stdout_bytes_max: 1000,
        ..ChildLimits::time(LIMIT)
    };
    let run = sh("seq 1 100000; echo '{\"answer\":1}'", b"", limits);
    assert_eq!(run.stdout.bytes.len(), 1000);
    assert_eq!(run.stdout.dropped_bytes + 1000, 588_895 + 13);
    assert_eq!(run.stdout.last_line().as_deref(), Some("{\"answer\":1}"));
}

#[test]
fn the_whole_group_is_killed_at_the_limit() {
    let limits = ChildLimits::time(Duration::from_millis(150));
    let run = sh("sleep 600 & echo $!; sleep 600", b"", limits);
    assert!(run.hung && run.wall_s < 20.0);
    assert_eq!(run.exit, Exit::Signal(9));
    assert!(is_gone(&run.stdout.text()));
}

#[test]
fn what_a_child_leaves_behind_is_killed() {
    let run = sh("sleep 600 & echo $!", b"", ChildLimits::time(LIMIT));
    assert_eq!(run.exit, Exit::Code(0));
    assert!(!run.hung && is_gone(&run.stdout.text()));
}

/// Gone, or a zombie that init has not collected yet. A killed process closes its pipes a moment
/// before it becomes one, so a few looks are allowed.
fn is_gone(pid: &str) -> bool {
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        match std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())) {
            Ok(stat) if !stat.contains(") Z ") => std::thread::yield_now(),
            _ => return true,
        }
    }
    false
}

#[test]
fn a_raised_flag_stops_the_child() {
    let stop = AtomicBool::new(true);
    let limits = ChildLimits {
        stop: Some(&stop),
        ..ChildLimits::time(LIMIT)
    };
    let run = sh("sleep 600", b"", limits);
    assert!(run.stopped && !run.hung);
}

#[test]
fn cpu_and_bytes_of_descendants_are_billed() {
    let run = sh(
        "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; head -c 5000000 /dev/zero | cat > /dev/null",
        b"",
        ChildLimits::time(LIMIT),
    );
    let usage = run.usage;
    assert!(usage.user_s.unwrap() > 0.01, "{usage:?}");
    assert!(usage.written_bytes.unwrap() >= 10_000_000, "{usage:?}");
    assert!(
        usage.minor_faults.unwrap() > 100 && usage.load.is_some(),
        "{usage:?}"
    );
}

#[test]
fn peak_memory_is_the_childs_and_not_ours() {
    // Our own peak would be inherited by the child if the kernel's figure were taken as it is.
    let ours = vec![1u8; 300 << 20];
    let run = sh(
        "head -c 60000000 /dev/zero | tail -c 50000000 | wc -c",
        b"",
        ChildLimits::time(LIMIT),
    );
    assert!(std::hint::black_box(&ours).len() > 1);
    let peak = run.usage.peak_rss_bytes.unwrap();
    assert!(peak < 200 << 20, "{peak}");
}

#[test]
fn a_missing_program_is_named() {
    let error = run_child(
        Command::new("/no/such/program"),
        b"",
        ChildLimits::time(LIMIT),
    );
    let error = error.unwrap_err();
    assert!(matches!(error, MachineError::Start { .. }));
    assert!(
        error
            .to_string()
            .starts_with("cannot start /no/such/program: "),
        "{error}"
    );
}
