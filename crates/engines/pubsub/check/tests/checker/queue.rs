//! The rules of the queue mode.

use dyno_pubsub_check::checker::{QueueEvidence, QueueLeft, Rule, Verdict, check_queue};
use dyno_pubsub_check::history::{Event, QueueClaim, What};
use dyno_pubsub_check::message::{Fingerprint, write};

use super::good::{expect_breach, identity};

const VISIBILITY_US: i64 = 1000;

struct Case {
    events: Vec<Event>,
    left: Vec<QueueLeft>,
}

impl Case {
    fn verdict(&self) -> Verdict {
        check_queue(&QueueEvidence {
            events: &self.events,
            left: &self.left,
            visibility_us: VISIBILITY_US,
            server_stayed: true,
            drained: true,
        })
    }

    fn at(&mut self, at_us: i64, what: What) {
        self.events.push(Event { at_us, what });
    }

    fn claim(&mut self, at_us: i64, worker: u32, id: i64, attempt: u32) {
        let fingerprint = fingerprint(id);
        let asked_us = at_us - 1;
        self.at(
            at_us,
            What::Claimed(QueueClaim {
                worker,
                id,
                attempt,
                asked_us,
                fingerprint,
            }),
        );
    }

    fn done(&mut self, at_us: i64, id: i64) {
        let asked_us = at_us - 1;
        self.at(
            at_us,
            What::Done {
                id,
                asked_us,
                accepted: true,
            },
        );
    }
}

fn fingerprint(id: i64) -> Fingerprint {
    write(identity(1, 0, id as u64), 0, 0).1
}

fn sent(id: i64) -> What {
    What::Send {
        fingerprint: fingerprint(id),
        due_us: 0,
    }
}

/// Messages 0 to 3: done, done after its first worker died, dead, claimed by a worker that died
/// after it said done.
fn good() -> Case {
    let mut case = Case {
        events: Vec::new(),
        left: Vec::new(),
    };
    for id in 0..4 {
        case.at(id, sent(id));
        let identity = fingerprint(id).identity;
        case.at(
            id + 10,
            What::Acknowledged {
                identity,
                offset: id,
            },
        );
        case.claim(100 + id, 5, id, 1);
    }
    case.done(150, 0);
    case.claim(1300, 6, 1, 2);
    case.done(1400, 1);
    case.left.push(QueueLeft {
        id: 2,
        dead: true,
        fingerprint: Ok(fingerprint(2)),
    });
    case
}

fn planted(rule: Rule, words: &[&str], spoil: impl FnOnce(&mut Case)) {
    let mut case = good();
    spoil(&mut case);
    expect_breach(&case.verdict(), rule, words);
}

#[test]
fn a_good_queue_passes() {
    let verdict = good().verdict();
    assert!(verdict.holds(), "{:#?}", verdict.violations);
    assert_eq!((verdict.delivered, verdict.redelivered), (5, 1));
}

/// Message 4 is sent and acknowledged, and the queue does not have it at the end.
fn lose(case: &mut Case) {
    case.at(5, sent(4));
    let identity = fingerprint(4).identity;
    case.at(
        6,
        What::Acknowledged {
            identity,
            offset: 4,
        },
    );
}

#[test]
fn a_message_that_is_gone_or_was_forgotten() {
    planted(
        Rule::QueueKept,
        &["message 4 of producer 1", "queue message 4", "gone"],
        lose,
    );
    planted(
        Rule::QueueKept,
        &["message 2 of producer 1", "never done"],
        |case| {
            case.left[0].dead = false;
        },
    );
}

#[test]
fn a_message_that_is_gone_after_every_worker_was_refused() {
    let refuse = |case: &mut Case| {
        lose(case);
        case.claim(104, 5, 4, 1);
        case.at(
            1200,
            What::Done {
                id: 4,
                asked_us: 1199,
                accepted: false,
            },
        );
    };
    planted(Rule::QueueKept, &["queue message 4", "gone"], refuse);
    // A second worker may have been the one whose answer was lost.
    let mut case = good();
    refuse(&mut case);
    case.claim(1300, 6, 4, 2);
    let verdict = case.verdict();
    assert!(verdict.holds(), "{:#?}", verdict.violations);
}

#[test]
fn a_message_done_twice_or_still_there() {
    planted(Rule::DoneOnce, &["queue message 0", "twice"], |case| {
        case.done(3000, 0)
    });
    planted(
        Rule::DoneOnce,
        &["queue message 0", "still in the queue"],
        |case| {
            case.left.push(QueueLeft {
                id: 0,
                dead: true,
                fingerprint: Ok(fingerprint(0)),
            });
        },
    );
}

#[test]
fn a_message_held_by_two_or_given_out_when_done() {
    planted(
        Rule::HeldAlone,
        &["queue message 3", "worker 9", "before worker 5"],
        |case| {
            case.claim(900, 9, 3, 2);
        },
    );
    planted(
        Rule::HeldAlone,
        &["queue message 0", "worker 9", "after it was done"],
        |case| {
            case.claim(5000, 9, 0, 2);
        },
    );
}

#[test]
fn a_message_with_two_numbers_or_another_content() {
    planted(
        Rule::NothingTwice,
        &["message 2 of producer 1", "as 2 and as 12"],
        |case| {
            case.left.push(QueueLeft {
                id: 12,
                dead: true,
                fingerprint: Ok(fingerprint(2)),
            });
        },
    );
    planted(Rule::Unchanged, &["queue message 2", "torn"], |case| {
        case.left[0].fingerprint = Err("torn".to_owned());
    });
}
