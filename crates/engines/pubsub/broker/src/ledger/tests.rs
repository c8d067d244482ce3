use std::sync::Arc;

use bytes::Bytes;
use dyno_net::Outbox;
use dyno_pubsub::record::Codec;

use super::*;
use crate::batch::Ack;
use crate::memory::Memory;

fn batch(first_sequence: i64, count: u32) -> Batch {
    Batch {
        producer_id: 7,
        first_sequence,
        count,
        codec: Codec::None,
        body: Bytes::new(),
        ack: Ack {
            outbox: Arc::new(Outbox::new()),
            request: 0,
        },
        _charge: Memory::new(0).queued.charge(0),
    }
}

/// A producer with sequences 0 to 99, of which the last append was 90 to 99 at offset 1000.
fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    let state = ProducerState {
        last_sequence: 99,
        last_base: 1000,
        last_first: 90,
    };
    ledger.set(7, state);
    ledger
}

#[test]
fn what_comes_next_is_taken() {
    assert_eq!(ledger().judge(&batch(100, 5), None), Verdict::Next);
    assert_eq!(Ledger::default().judge(&batch(0, 5), None), Verdict::Next);
    assert_eq!(
        ledger().judge(&batch(105, 1), Some(&(100..=104))),
        Verdict::Next
    );
}

#[test]
fn a_repetition_has_its_offset_while_it_is_known() {
    let judge = |first, count| ledger().judge(&batch(first, count), None);
    assert_eq!(judge(90, 10), Verdict::Duplicate(Some(1000)));
    assert_eq!(judge(95, 1), Verdict::Duplicate(Some(1005)));
    assert_eq!(judge(80, 10), Verdict::Duplicate(None));
}

#[test]
fn a_repetition_of_what_is_being_appended_waits_with_it() {
    let judge = |first, count| ledger().judge(&batch(first, count), Some(&(100..=109)));
    assert_eq!(judge(100, 10), Verdict::Pending(0));
    assert_eq!(judge(104, 3), Verdict::Pending(4));
    assert_eq!(judge(95, 5), Verdict::Duplicate(Some(1005)));
}

#[test]
fn gaps_and_halves_are_refused() {
    let judge = |first, count, pending| ledger().judge(&batch(first, count), pending);
    assert_eq!(judge(101, 1, None), Verdict::Gap { expected: 100 });
    assert_eq!(judge(95, 10, None), Verdict::Gap { expected: 100 });
    assert_eq!(
        judge(105, 10, Some(&(100..=109))),
        Verdict::Gap { expected: 110 }
    );
    let unknown = Ledger::default().judge(&batch(3, 1), None);
    assert_eq!(unknown, Verdict::Gap { expected: 0 });
}

/// Learns of producers that have appended nothing.
fn learn(ledger: &mut Ledger, ids: impl Iterator<Item = i64>) {
    for id in ledger.begin_learning(ids) {
        ledger.set(id, ProducerState::NEW);
    }
}

#[test]
fn a_full_ledger_forgets_and_asks_again() {
    let mut ledger = ledger();
    for id in 0..2 * MOST_PRODUCERS as i64 {
        learn(&mut ledger, std::iter::once(100 + id));
    }
    assert!(ledger.producers.len() <= MOST_PRODUCERS);
    assert_eq!(ledger.begin_learning([7].into_iter()), [7]);
}

#[test]
fn producers_of_one_append_are_not_forgotten_while_others_of_it_are_learned() {
    let mut ledger = ledger();
    learn(&mut ledger, 100..99 + MOST_PRODUCERS as i64);
    assert_eq!(ledger.producers.len(), MOST_PRODUCERS);
    learn(&mut ledger, [7, 8, 9].into_iter());
    assert_eq!(ledger.judge(&batch(100, 5), None), Verdict::Next);
    assert!(ledger.producers.len() <= MOST_PRODUCERS);
}

#[test]
fn a_new_epoch_begins_at_its_first_record_and_ends_the_one_before() {
    let in_epoch = |epoch: i64, sequence: i64| (epoch << 48) + sequence;
    let judge = |first, count| ledger().judge(&batch(first, count), None);
    assert_eq!(judge(in_epoch(1, 0), 5), Verdict::Next);
    assert_eq!(judge(in_epoch(3, 0), 5), Verdict::Next);
    assert_eq!(judge(in_epoch(1, 5), 5), Verdict::Gap { expected: 100 });

    let mut later = ledger();
    let state = ProducerState {
        last_sequence: in_epoch(1, 9),
        last_base: 2000,
        last_first: in_epoch(1, 0),
    };
    later.set(7, state);
    let judge = |first, count| later.judge(&batch(first, count), None);
    assert_eq!(judge(in_epoch(1, 5), 5), Verdict::Duplicate(Some(2005)));
    assert_eq!(judge(in_epoch(1, 10), 1), Verdict::Next);
    // What was sent before the epoch was raised is not taken for a repetition: it may not be there.
    let expected = in_epoch(1, 10);
    assert_eq!(judge(90, 10), Verdict::Gap { expected });
    assert_eq!(judge(0, 1), Verdict::Gap { expected });
}
