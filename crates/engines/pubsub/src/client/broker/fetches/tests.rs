use std::time::Instant;

use super::*;
use crate::error::{Code, Error};
use crate::wire::Rest;

fn answer(next_offset: i64) -> Answer {
    Ok(wire::Fetched {
        first_offset: 0,
        next_offset,
        rows: Rest::default(),
    })
}

/// Partition, offset, and the next offset of the answer.
fn taken(fetches: &Fetches, positions: &[(i32, i64)]) -> Vec<(i32, i64, i64)> {
    let taken = fetches.drain(positions).into_iter();
    taken
        .map(|(partition, offset, answer)| (partition, offset, answer.unwrap().next_offset))
        .collect()
}

#[test]
fn an_answer_is_taken_once_and_its_partition_may_be_asked_again() {
    let fetches = Fetches::default();
    let number = fetches.begin(3, 10);
    assert!(fetches.is_begun(3, 10) && !fetches.is_begun(3, 11));
    assert_eq!(taken(&fetches, &[(3, 10)]), []);
    fetches.arrive(3, number, answer(20));
    assert!(fetches.is_begun(3, 10));
    assert_eq!(taken(&fetches, &[(3, 10)]), [(3, 10, 20)]);
    assert!(!fetches.is_begun(3, 10));
}

#[test]
fn an_answer_that_comes_after_its_partition_was_won_again_hides_no_other() {
    let fetches = Fetches::default();
    let before = fetches.begin(3, 10);
    let again = fetches.begin(3, 5);
    fetches.arrive(3, again, answer(7));
    fetches.arrive(3, before, answer(20));
    assert_eq!(taken(&fetches, &[(3, 5)]), [(3, 5, 7)]);
}

#[test]
fn an_answer_from_before_does_not_end_a_fetch_from_the_same_offset() {
    let fetches = Fetches::default();
    let before = fetches.begin(3, 10);
    fetches.retain(|_| false);
    let again = fetches.begin(3, 10);
    let lost = Error::new(Code::Fenced, "the broker has lost the partition");
    fetches.arrive(3, before, Err(lost));
    assert_eq!(taken(&fetches, &[(3, 10)]), []);
    fetches.arrive(3, again, answer(20));
    assert_eq!(taken(&fetches, &[(3, 10)]), [(3, 10, 20)]);
}

#[test]
fn an_answer_for_a_partition_that_is_not_read_ends_no_wait() {
    let fetches = Fetches::default();
    let lost = fetches.begin(3, 10);
    fetches.begin(4, 0);
    fetches.arrive(3, lost, answer(20));
    let (began, wait) = (Instant::now(), Duration::from_millis(20));
    fetches.wait(&[(4, 0)], wait);
    assert!(began.elapsed() >= wait, "the wait ended at once");
    fetches.wait(&[(3, 10)], Duration::from_secs(3600));
}
