//! Runs that continue an interrupted one.

use super::*;

/// Continues a run of [`SUITE`] that left the samples `done`, with children that all do well.
fn resume(done: Vec<Sample>) -> Ran {
    let planned = planned(SUITE, &["peer"]).expect("a good plan");
    run_after(done, planned, &good).expect("the run itself goes well")
}

#[test]
fn a_failed_verify_pass_is_no_block() {
    let first = run_suite(SUITE, &|_, invocation, _| {
        let request = &invocation.request;
        if request.phase == Phase::Verify && request.workload == "load" {
            ended(Exit::Signal(11), "", 0.1)
        } else {
            answer("abc")
        }
    });
    assert_eq!(first.summary.done, 2, "the other case");
    let done = first.stored.samples;
    let failed: Vec<Sample> = done.iter().filter(|s| s.case == "load").cloned().collect();
    assert_eq!(failed.len(), 2);
    let again = resume(done);
    // All four blocks of two systems and the control.
    assert_eq!(again.summary.done, 12);
    let reason = "dyno: before timing: ended by signal 11: it broke".to_owned();
    assert_eq!(again.summary.failures[0], ("load".to_owned(), reason));
    assert_eq!(again.summary.failures.len(), 2);
    // However often the pass failed, the block that follows it has no sample.
    let thrice = [&failed[..], &failed[..1]].concat();
    assert_eq!(whole_blocks(&again.stored.run.plan, false, &thrice), 0);
}

#[test]
fn what_failed_before_the_interruption_is_still_a_failure() {
    let first = run_suite(SUITE, &|number, _, _| {
        answer(if number == 5 { "bad" } else { "abc" })
    });
    assert_eq!(first.summary.failures.len(), 1);
    let again = resume(first.stored.samples);
    assert_eq!(again.summary.done, 0, "all blocks are there");
    assert_eq!(again.summary.failures, first.summary.failures);
}
