//! One bad history for each rule, and the sentence that it gets.

use dyno_pubsub_check::checker::{Entry, Rule};
use dyno_pubsub_check::history::What;
use dyno_pubsub_check::message::Identity;

use super::good::{Case, expect_breach, good, identity};

/// Spoils a good run and expects a breach of `rule`, in a sentence with all of `words`.
fn planted(rule: Rule, words: &[&str], spoil: impl FnOnce(&mut Case)) {
    let mut case = good();
    spoil(&mut case);
    expect_breach(&case.verdict(), rule, words);
}

/// Changes the log as every reader sees it.
fn in_log(case: &mut Case, partition: usize, change: impl Fn(&mut Vec<Entry>)) {
    for reading in &mut case.readings {
        change(&mut reading.partitions[partition].entries);
    }
}

/// Puts another message at an offset.
fn replace(case: &mut Case, partition: usize, offset: usize, identity: Identity) {
    in_log(case, partition, |entries| {
        if let Ok(fingerprint) = &mut entries[offset].fingerprint {
            fingerprint.identity = identity;
        }
    });
}

#[test]
fn an_acknowledged_message_that_is_gone() {
    let words = [
        "message 9 of producer 2",
        "partition 0",
        "offset 17",
        "not in the log",
    ];
    planted(Rule::AcknowledgedIsStored, &words, |case| {
        for reading in &mut case.readings {
            reading.partitions[0].entries.pop();
            reading.partitions[0].next_offset -= 1;
        }
    });
}

#[test]
fn an_acknowledged_message_elsewhere() {
    let words = [
        "message 0 of producer 3",
        "partition 1",
        "offset 3",
        "offset 0",
    ];
    planted(Rule::StoredWhereSaid, &words, |case| {
        for event in &mut case.events {
            if let What::Acknowledged { identity, offset } = &mut event.what
                && (identity.producer, identity.sequence) == (3, 0)
            {
                *offset = 3;
            }
        }
    });
}

#[test]
fn a_message_twice_in_the_log() {
    let words = [
        "partition 1",
        "message 0 of producer 3",
        "offset 4",
        "offset 0",
    ];
    planted(Rule::NothingTwice, &words, |case| {
        replace(case, 1, 4, identity(3, 1, 0))
    });
}

#[test]
fn a_message_that_nobody_sent() {
    let words = [
        "partition 1",
        "offset 2",
        "message 77 of producer 9",
        "never sent",
    ];
    planted(Rule::NothingInvented, &words, |case| {
        replace(case, 1, 2, identity(9, 1, 77))
    });
}

#[test]
fn a_failed_message_in_the_log() {
    let words = [
        "message 7 of producer 1",
        "partition 0",
        "offset 18",
        "failed",
    ];
    planted(Rule::FailedIsAbsent, &words, |case| {
        let (_, fingerprint) = dyno_pubsub_check::message::write(identity(1, 0, 7), 0, 0);
        case.store(fingerprint);
    });
}

#[test]
fn a_message_with_another_content() {
    planted(
        Rule::Unchanged,
        &["partition 0", "offset 5", "checksum"],
        |case| {
            in_log(case, 0, |entries| {
                if let Ok(fingerprint) = &mut entries[5].fingerprint {
                    fingerprint.checksum ^= 1;
                }
            });
        },
    );
    planted(
        Rule::Unchanged,
        &["partition 0", "offset 5", "torn"],
        |case| {
            in_log(case, 0, |entries| {
                entries[5].fingerprint = Err("torn".to_owned())
            });
        },
    );
}

#[test]
fn a_message_in_the_partition_of_another_key() {
    planted(
        Rule::RightPartition,
        &["partition 1", "offset 4", "for partition 0"],
        |case| {
            replace(case, 1, 4, identity(1, 0, 9));
        },
    );
}

#[test]
fn a_producers_messages_swapped() {
    let words = [
        "partition 1",
        "offset 3",
        "message 2 of producer 3",
        "message 3 at offset 2",
    ];
    planted(Rule::ProducerOrder, &words, |case| {
        replace(case, 1, 2, identity(3, 1, 3));
        replace(case, 1, 3, identity(3, 1, 2));
    });
}

#[test]
fn an_offset_that_is_missing() {
    planted(
        Rule::Contiguous,
        &["partition 0", "offset 4", "offset 5"],
        |case| {
            in_log(case, 0, |entries| {
                entries.remove(4);
            });
        },
    );
    planted(
        Rule::Contiguous,
        &["partition 1", "offset 6", "ends before 5"],
        |case| {
            for reading in &mut case.readings {
                reading.partitions[1].next_offset = 6;
            }
        },
    );
}

#[test]
fn readers_that_disagree() {
    planted(
        Rule::ReadersAgree,
        &["partition 0", "view", "library"],
        |case| {
            case.readings[1].partitions[0].entries.swap(2, 3);
        },
    );
    planted(
        Rule::ReadersAgree,
        &["partition 1", "view read 5", "library 4"],
        |case| {
            case.readings[1].partitions[1].entries.pop();
        },
    );
}

#[test]
fn two_outcomes_and_an_outcome_without_a_question() {
    planted(
        Rule::OneOutcome,
        &["message 7 of producer 1", "answered twice"],
        |case| {
            case.event(What::Unknown(identity(1, 0, 7)));
        },
    );
    planted(
        Rule::OneOutcome,
        &["message 0 of producer 8", "never sent"],
        |case| {
            case.event(What::Failed(identity(8, 0, 0)));
        },
    );
    planted(
        Rule::OneOutcome,
        &["message 0 of producer 1", "sent twice"],
        |case| {
            let event = case.events[0];
            case.events.push(event);
        },
    );
}

#[test]
fn a_message_that_a_group_never_got() {
    let words = [
        "message 2 of producer 3",
        "offset 2",
        "partition 1",
        "group 1",
    ];
    planted(Rule::Delivered, &words, |case| {
        case.events.retain(|event| {
            !matches!(event.what, What::Delivered(d)
                if (d.group, d.partition, d.offset) == (1, 1, 2))
        });
    });
}

#[test]
fn a_delivery_of_something_else() {
    planted(
        Rule::DeliveredIsStored,
        &["group 0", "offset 3", "partition 1"],
        |case| {
            for event in &mut case.events {
                if let What::Delivered(d) = &mut event.what
                    && (d.group, d.partition, d.offset) == (0, 1, 3)
                {
                    d.fingerprint.identity.sequence = 2;
                }
            }
        },
    );
    planted(
        Rule::DeliveredIsStored,
        &["offset 99", "ends before 5"],
        |case| {
            for event in &mut case.events {
                if let What::Delivered(d) = &mut event.what
                    && (d.group, d.partition, d.offset) == (0, 1, 4)
                {
                    d.offset = 99;
                }
            }
        },
    );
}

#[test]
fn deliveries_out_of_order() {
    let words = [
        "group 0",
        "offset 2 of partition 1",
        "after offset 3",
        "member 10",
    ];
    planted(Rule::DeliveryOrder, &words, |case| {
        let places: Vec<usize> = (0..case.events.len())
            .filter(|at| {
                matches!(case.events[*at].what, What::Delivered(d)
                    if (d.group, d.partition) == (0, 1))
            })
            .collect();
        let (a, b) = (case.events[places[2]].what, case.events[places[3]].what);
        (case.events[places[2]].what, case.events[places[3]].what) = (b, a);
    });
}

#[test]
fn more_deliveries_again_than_counted() {
    let words = ["group 1", "2 messages of partition 0", "allows 1"];
    planted(Rule::RedeliveryBounded, &words, |case| {
        case.cursor(1, 0).redelivered = 1;
    });
}

#[test]
fn a_cursor_ahead_of_what_was_delivered() {
    let words = ["cursor of group 0", "partition 1", "offset 5"];
    planted(Rule::CursorBehindDelivery, &words, |case| {
        case.cursor(0, 1).committed = 7
    });
    let words = [
        "member 10 of group 0",
        "committed offset 14 of partition 0",
        "offset 12",
    ];
    planted(Rule::CursorBehindDelivery, &words, |case| {
        for event in &mut case.events {
            if let What::Commit(c) = &mut event.what
                && (c.group, c.partition, c.next) == (0, 0, 10)
            {
                c.next = 14;
            }
        }
    });
}

#[test]
fn a_cursor_that_went_back() {
    let words = ["group 0", "committed offset 18 of partition 0", "at 11"];
    planted(Rule::CursorKept, &words, |case| {
        case.cursor(0, 0).committed = 11
    });
}

#[test]
fn a_commit_by_an_outdated_right() {
    let words = [
        "member 10 of group 0",
        "partition 0",
        "generation 1",
        "generation 2",
    ];
    planted(Rule::GenerationFenced, &words, |case| {
        case.commit((0, 10, 1), (0, 12));
        case.cursor(0, 0).committed = 18;
    });
}

#[test]
fn what_retention_took_counts_as_lost_or_was_delivered() {
    let mut case = good();
    for reading in &mut case.readings {
        let log = &mut reading.partitions[0];
        log.first_offset = 6;
        log.entries.drain(..6);
    }
    assert!(case.verdict().holds(), "{:#?}", case.verdict());
    case.events.retain(|event| {
        !matches!(event.what, What::Delivered(d)
            if (d.group, d.partition) == (0, 0) && d.offset < 3)
    });
    let verdict = case.verdict();
    assert_eq!(
        verdict.broken.get(&Rule::Delivered),
        Some(&3),
        "{verdict:#?}"
    );
    case.cursor(0, 0).lost = 3;
    assert!(case.verdict().holds(), "{:#?}", case.verdict());
}
