//! Loads on a clock that the test moves, so that every latency is known beforehand.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use dyno_measure::{
    CORRECTED_TAG, Call, Clock, DriveOptions, GeneratorVerdict, LoadOutcome, ManualClock,
    MeasureError, RAW_TAG, Schedule, SystemClock, Until, drive, read_interval_log,
    write_interval_log,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn options(schedule: Schedule, until: Until) -> DriveOptions<'static> {
    DriveOptions {
        schedule,
        threads: 1,
        until,
        interval_ns: SECOND,
        lag_max_ns: None,
        stop: None,
    }
}

/// A server that answers in 0.1 ms, and once, after `stall_at` requests, in `stall_ns`.
fn stalling_server(options: &DriveOptions<'_>, stall_at: u64, stall_ns: u64) -> LoadOutcome {
    let clock = ManualClock::default();
    let server = |_thread: usize| {
        let clock = &clock;
        move |Call { sequence, .. }| -> Result<(), MeasureError> {
            clock.advance(if sequence == stall_at {
                stall_ns
            } else {
                MS / 10
            });
            Ok(())
        }
    };
    drive(&clock, options, server).unwrap()
}

fn near(found_ns: Option<u64>, expected_ns: u64) -> bool {
    found_ns.is_some_and(|ns| ns.abs_diff(expected_ns) * 500 <= expected_ns)
}

#[test]
fn a_stall_shows_in_the_corrected_p99_and_not_in_the_raw_one() {
    // 1 000 requests a second for 10 s, and one answer takes a whole second.
    let schedule = Schedule::Constant {
        rate_per_s: 1_000.0,
    };
    let load = stalling_server(
        &options(schedule, Until::DurationNs(10 * SECOND)),
        5_000,
        SECOND,
    );
    assert_eq!((load.done, load.unsent, load.skipped), (10_000, 0, 0));
    let (raw, corrected) = (&load.recorder.raw, &load.recorder.corrected);
    assert!(near(raw.quantile_ns(0.5), MS / 10) && near(raw.quantile_ns(0.99), MS / 10));
    assert!(near(corrected.quantile_ns(0.5), MS / 10));
    // The queue behind the stall drains at 10 000 a second while 1 000 a second arrive: 1 111 of
    // 10 000 requests wait, evenly from 1 s down to 0, so the worst 1% wait over 0.9 s.
    let p99 = corrected.quantile_ns(0.99).unwrap();
    assert!((900 * MS..SECOND).contains(&p99), "{p99}");
    assert_eq!(load.late(MS) / 10, 110, "{}", load.late(MS));
    assert_eq!(load.generator(), GeneratorVerdict::KeptUp);
}

#[test]
fn a_closed_loop_waits_with_the_server() {
    let load = stalling_server(
        &options(Schedule::ClosedLoop, Until::Operations(1_000)),
        500,
        SECOND,
    );
    assert_eq!(load.done, 1_000);
    assert!(near(load.recorder.corrected.quantile_ns(0.99), MS / 10));
    assert_eq!(load.generator(), GeneratorVerdict::NoRate);
}

#[test]
fn a_rate_above_the_capacity_is_called_so() {
    // 0.1 ms each is 10 000 a second at most; 20 000 are offered.
    let schedule = Schedule::Constant {
        rate_per_s: 20_000.0,
    };
    let load = stalling_server(&options(schedule, Until::DurationNs(SECOND)), u64::MAX, 0);
    assert_eq!((load.done, load.unsent), (10_000, 10_000));
    let GeneratorVerdict::FellBehind(reasons) = load.generator() else {
        panic!("it kept up")
    };
    assert!(
        reasons[0].starts_with("10000 of 20000 arrivals at 20000 per second were not sent"),
        "{reasons:?}"
    );
    assert!(load.recorder.corrected.quantile_ns(0.5).unwrap() > 200 * MS);
}

#[test]
fn arrivals_that_are_too_late_are_skipped_and_counted() {
    let schedule = Schedule::Constant {
        rate_per_s: 1_000.0,
    };
    let limited = DriveOptions {
        lag_max_ns: Some(10 * MS),
        ..options(schedule, Until::DurationNs(10 * SECOND))
    };
    let load = stalling_server(&limited, 5_000, SECOND);
    assert_eq!(load.done + load.skipped, 10_000);
    assert!((980..1_000).contains(&load.skipped), "{}", load.skipped);
    assert!(matches!(load.generator(), GeneratorVerdict::FellBehind(_)));
}

#[test]
fn a_generator_that_wakes_late_is_called_so() {
    /// A clock whose waits end 5 ms late, as on a machine without a free processor.
    struct Sluggish(ManualClock);
    impl Clock for Sluggish {
        fn now_ns(&self) -> u64 {
            self.0.now_ns()
        }
        fn wait_until(&self, at_ns: u64) {
            self.0.wait_until(at_ns + 5 * MS);
        }
    }
    let clock = Sluggish(ManualClock::default());
    let schedule = Schedule::Poisson {
        rate_per_s: 10.0,
        seed: 1,
    };
    let load = drive(&clock, &options(schedule, Until::Operations(200)), |_| {
        |_| Ok::<(), MeasureError>(())
    });
    let GeneratorVerdict::FellBehind(reasons) = load.unwrap().generator() else {
        panic!("it kept up")
    };
    assert!(
        reasons[0].starts_with("threads that stood ready started 5"),
        "{reasons:?}"
    );
}

#[test]
fn failures_are_counted_and_the_first_is_told() {
    let clock = ManualClock::default();
    let fails = |_| {
        |Call { sequence: n, .. }| {
            if n % 2 == 1 {
                Err(format!("request {n} refused"))
            } else {
                Ok(())
            }
        }
    };
    let load = drive(
        &clock,
        &options(Schedule::ClosedLoop, Until::Operations(10)),
        fails,
    )
    .unwrap();
    assert_eq!(
        (load.done, load.failed, load.recorder.raw.count()),
        (5, 5, 5)
    );
    assert_eq!(load.first_error.as_deref(), Some("request 1 refused"));
}

#[test]
fn several_threads_share_the_operations() {
    let clock = SystemClock::start();
    let calls = AtomicU64::new(0);
    let count = |_thread: usize| {
        let calls = &calls;
        move |_: Call| -> Result<(), MeasureError> {
            calls.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    };
    let schedule = Schedule::Poisson {
        rate_per_s: 50_000.0,
        seed: 3,
    };
    let shared = DriveOptions {
        threads: 3,
        ..options(schedule, Until::Operations(1_000))
    };
    let load = drive(&clock, &shared, count).unwrap();
    assert_eq!((load.done, calls.load(Ordering::Relaxed)), (1_000, 1_000));
    let started_early = load.recorder.lag.count() != 1_000;
    assert!(!started_early && load.rate_per_s() > 0.0);
}

#[test]
fn an_arrival_of_a_poisson_load_does_not_wait_while_a_thread_is_free() {
    // Four operations are under way on average, so sixteen threads are hardly ever all busy, also
    // on a machine that holds some of them up. Were each arrival meant for one thread, a quarter of
    // them would find it busy.
    let schedule = Schedule::Poisson {
        rate_per_s: 100.0,
        seed: 5,
    };
    let spread = DriveOptions {
        threads: 16,
        ..options(schedule, Until::DurationNs(3 * SECOND / 2))
    };
    let load = drive(&SystemClock::start(), &spread, |_thread| {
        |_: Call| {
            std::thread::sleep(Duration::from_millis(40));
            Ok::<(), MeasureError>(())
        }
    })
    .unwrap();
    let recorder = &load.recorder;
    let met_busy = recorder.lag.count() - recorder.wake_lag.count() + load.unsent;
    assert!(load.done > 100, "{}", load.done);
    assert!(met_busy * 10 < load.done, "{met_busy} of {}", load.done);
}

#[test]
fn what_a_poisson_load_never_sends_is_counted_once() {
    // No thread is free again before the end. The arrivals that are left are those of all threads,
    // and each thread that ends finds only what the others have not counted yet.
    let schedule = Schedule::Poisson {
        rate_per_s: 1_000.0,
        seed: 5,
    };
    let clock = ManualClock::default();
    let slow = DriveOptions {
        threads: 4,
        ..options(schedule, Until::DurationNs(SECOND))
    };
    let load = drive(&clock, &slow, |_thread| {
        let clock = &clock;
        move |_: Call| {
            clock.advance(2 * SECOND);
            Ok::<(), MeasureError>(())
        }
    })
    .unwrap();
    let mut arrivals = schedule.arrivals(0, 1, 0).unwrap();
    let due = std::iter::repeat_with(|| arrivals.next_ns().unwrap())
        .take_while(|due_ns| *due_ns < SECOND)
        .count() as u64;
    assert_eq!(load.done + load.unsent, due);
}

#[test]
fn a_raised_flag_ends_the_load() {
    let clock = ManualClock::default();
    let stop = AtomicBool::new(false);
    let schedule = Schedule::Constant { rate_per_s: 1.0 };
    let stoppable = DriveOptions {
        stop: Some(&stop),
        ..options(schedule, Until::DurationNs(1_000 * SECOND))
    };
    let raise = |_| {
        let stop = &stop;
        move |Call { sequence: n, .. }| -> Result<(), MeasureError> {
            stop.store(n == 9, Ordering::Relaxed);
            Ok(())
        }
    };
    let load = drive(&clock, &stoppable, raise).unwrap();
    assert_eq!((load.done, load.unsent, load.ended_ns / SECOND), (10, 0, 9));
}

#[test]
fn a_panicking_operation_is_an_error() {
    let clock = ManualClock::default();
    let panics = |_| |_: Call| -> Result<(), MeasureError> { panic!("on purpose") };
    let error = drive(
        &clock,
        &options(Schedule::ClosedLoop, Until::Operations(1)),
        panics,
    );
    assert!(matches!(
        error.unwrap_err(),
        MeasureError::Panicked { thread: 0 }
    ));
}

#[test]
fn a_log_is_read_back_and_merged() {
    let schedule = Schedule::Constant {
        rate_per_s: 1_000.0,
    };
    let load = stalling_server(
        &options(schedule, Until::DurationNs(5 * SECOND)),
        2_000,
        SECOND,
    );
    let mut log = Vec::new();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    write_interval_log(&mut log, &load, at).unwrap();
    let text = String::from_utf8(log.clone()).unwrap();
    assert!(
        text.contains("#[StartTime: 1800000000.000"),
        "{}",
        &text[..200]
    );
    for (tag, expected) in [
        (CORRECTED_TAG, &load.recorder.corrected),
        (RAW_TAG, &load.recorder.raw),
    ] {
        let mut read = read_interval_log(&log, tag).unwrap();
        assert_eq!(read.count(), expected.count());
        for p in [0.5, 0.99, 0.999, 1.0] {
            assert_eq!(read.quantile_ns(p), expected.quantile_ns(p), "{tag} {p}");
        }
        read.add(&read_interval_log(&log, tag).unwrap()).unwrap();
        assert_eq!(read.count(), 2 * expected.count());
    }
    let broken = text.replace("HIST", "****");
    let error = read_interval_log(broken.as_bytes(), RAW_TAG).unwrap_err();
    assert!(error.to_string().starts_with("entry "), "{error}");
}
