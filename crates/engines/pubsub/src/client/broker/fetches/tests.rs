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

fn at(partition: i32, offset: i64) -> Position {
    Position { partition, offset }
}

/// The position, and the next offset of the answer.
fn taken(fetches: &Fetches, position: Position) -> Vec<(Position, i64)> {
    let taken = fetches.drain(&[position]).into_iter();
    taken
        .map(|(position, answer)| (position, answer.unwrap().next_offset))
        .collect()
}

#[test]
fn an_answer_is_taken_once_and_its_partition_may_be_asked_again() {
    let fetches = Fetches::default();
    let number = fetches.begin(at(3, 10));
    assert!(fetches.is_begun(at(3, 10)) && !fetches.is_begun(at(3, 11)));
    assert_eq!(taken(&fetches, at(3, 10)), []);
    fetches.arrive(3, number, answer(20));
    assert!(fetches.is_begun(at(3, 10)));
    assert_eq!(taken(&fetches, at(3, 10)), [(at(3, 10), 20)]);
    assert!(!fetches.is_begun(at(3, 10)));
}

#[test]
fn an_answer_that_comes_after_its_partition_was_won_again_hides_no_other() {
    let fetches = Fetches::default();
    let before = fetches.begin(at(3, 10));
    let again = fetches.begin(at(3, 5));
    fetches.arrive(3, again, answer(7));
    fetches.arrive(3, before, answer(20));
    assert_eq!(taken(&fetches, at(3, 5)), [(at(3, 5), 7)]);
}

#[test]
fn an_answer_from_before_does_not_end_a_fetch_from_the_same_offset() {
    let fetches = Fetches::default();
    let before = fetches.begin(at(3, 10));
    fetches.retain(|_| false);
    let again = fetches.begin(at(3, 10));
    let lost = Error::new(Code::Fenced, "the broker has lost the partition");
    fetches.arrive(3, before, Err(lost));
    assert_eq!(taken(&fetches, at(3, 10)), []);
    fetches.arrive(3, again, answer(20));
    assert_eq!(taken(&fetches, at(3, 10)), [(at(3, 10), 20)]);
}

#[test]
fn an_answer_for_a_partition_that_is_not_read_ends_no_wait() {
    let fetches = Fetches::default();
    let lost = fetches.begin(at(3, 10));
    fetches.begin(at(4, 0));
    fetches.arrive(3, lost, answer(20));
    let (began, wait) = (Instant::now(), Duration::from_millis(20));
    fetches.wait(&[at(4, 0)], wait);
    assert!(began.elapsed() >= wait, "the wait ended at once");
    fetches.wait(&[at(3, 10)], Duration::from_secs(3600));
}
