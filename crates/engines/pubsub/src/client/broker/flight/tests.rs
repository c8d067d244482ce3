use std::time::{Duration, Instant};

use super::*;
use crate::client::options::ProducerOptions;
use crate::client::send_queues::SendQueues;

/// Three batches of two records each, sent with sequences 0, 2 and 4.
const IDENTITY: Identity = Identity {
    producer_id: 7,
    next_sequence: 6,
};

fn flight() -> Flight {
    let options = ProducerOptions {
        batch_records: 2,
        ..ProducerOptions::default()
    };
    let queues = SendQueues::new(1, options);
    let mut flight = Flight {
        identity: Some(IDENTITY),
        unanswered: 3,
        ..Flight::default()
    };
    for sequence in [0, 2, 4] {
        for _ in 0..2 {
            queues.push(Some(0), 0, None, &[], b"x").unwrap();
        }
        let sealed = queues.pop(&[0], 9, None).unwrap();
        flight.add(sealed);
        let flying = flight.batches.back_mut().unwrap();
        flying.sequence = Some(sequence);
        flying.sent = true;
    }
    flight
}

fn refused(code: Code, retry: Retry) -> Result<i64> {
    Err(Error::with_retry(code, retry, "no"))
}

fn sequences(flight: &Flight) -> Vec<Option<i64>> {
    flight
        .batches
        .iter()
        .map(|flying| flying.sequence)
        .collect()
}

fn codes(ended: &[Ended]) -> Vec<(u64, &'static str)> {
    let code = |end: &Result<i64>| end.as_ref().map_or_else(Error::code, |_| "ok");
    ended
        .iter()
        .map(|(sealed, end)| (sealed.number, code(end)))
        .collect()
}

#[test]
fn an_acknowledged_batch_leaves_with_its_body() {
    let mut flight = flight();
    let (sealed, end) = flight.answered(2, Ok(40)).unwrap();
    assert_eq!((sealed.number, end), (1, Ok(40)));
    assert!(!sealed.body.is_empty());
    assert_eq!(sequences(&flight), [Some(0), Some(4)]);
    assert_eq!((flight.unanswered, flight.broken), (2, false));
}

#[test]
fn after_a_passing_refusal_all_is_sent_again_under_the_same_sequences() {
    let mut flight = flight();
    assert!(
        flight
            .answered(0, refused(Code::Fenced, Retry::Safe))
            .is_none()
    );
    assert!(
        flight
            .answered(2, refused(Code::SequenceGap, Retry::Never))
            .is_none()
    );
    assert!(
        flight
            .answered(4, refused(Code::OutcomeUnknown, Retry::Unknown))
            .is_none()
    );
    assert!(flight.broken && flight.unanswered == 0);
    assert!(flight.mend(Instant::now()).is_empty());
    assert_eq!(sequences(&flight), [Some(0), Some(2), Some(4)]);
    assert!(flight.batches.iter().all(|flying| !flying.sent));
    assert_eq!(flight.identity, Some(IDENTITY));
}

#[test]
fn what_can_never_be_appended_ends_alone_and_the_rest_goes_on_as_somebody_else() {
    let mut flight = flight();
    flight.answered(0, refused(Code::BadArgument, Retry::Never));
    flight.answered(2, refused(Code::SequenceGap, Retry::Never));
    flight.answered(4, refused(Code::SequenceGap, Retry::Never));
    let ended = flight.mend(Instant::now());
    assert_eq!(codes(&ended), [(0, "bad-argument")]);
    assert_eq!(sequences(&flight), [None, None]);
    assert_eq!(flight.identity, None);
}

#[test]
fn what_may_be_there_ends_as_unknown_with_all_behind_it() {
    let mut flight = flight();
    flight.answered(0, refused(Code::OutcomeUnknown, Retry::Unknown));
    flight.answered(2, refused(Code::OutcomeUnknown, Retry::Unknown));
    flight.answered(4, refused(Code::ServerLost, Retry::Safe));
    let late = Instant::now() + Duration::from_secs(3600);
    let ended = flight.mend(late);
    let unknown = "outcome-unknown";
    assert_eq!(codes(&ended), [(0, unknown), (1, unknown), (2, unknown)]);
    assert!(flight.batches.is_empty());
}

#[test]
fn what_was_never_sent_may_be_tried_again_by_its_owner() {
    let mut flight = flight();
    for flying in &mut flight.batches {
        flying.sequence = None;
        flying.sent = false;
    }
    let ended = flight.mend(Instant::now() + Duration::from_secs(3600));
    assert_eq!(
        codes(&ended),
        [(0, "server-lost"), (1, "server-lost"), (2, "server-lost")]
    );
    assert!(
        ended
            .iter()
            .all(|(_, end)| end.as_ref().is_err_and(|e| e.retry() == Retry::Safe))
    );
}
