//! The readers of all feeds against their slow parsers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agree;

use dyno_ingest_feeds::calendar::Day;
use dyno_ingest_feeds::generate::Batch;
use dyno_ingest_feeds::{FEEDS, Feed, named};
use proptest::prelude::*;

fn batch(seed: u64, number: u32, rows: u64) -> Batch {
    Batch {
        number,
        rows,
        // Days before 2010-06-15 have no header, those from 2011 on have 13 fields.
        start: [
            Day::new(2009, 3, 1),
            Day::new(2010, 12, 30),
            Day::new(2024, 2, 27),
        ][seed as usize % 3],
        seed,
        quirks: 0.2,
    }
}

fn text(feed: &Feed, batch: &Batch) -> Vec<u8> {
    (feed.rows.as_ref().unwrap().lines)(batch)
        .flat_map(|line| [line.bytes, b"\n".to_vec()].concat())
        .collect()
}

/// What is done to a text: at a place, so many bytes go and these come.
type Edit = (prop::sample::Index, usize, Vec<u8>);

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let common = prop::sample::select(
        b"0123456789 .,:;-/\"'{}[]()*#\n\r\tQSOXGgKABz_+T\\\xff\xc3\xa9".to_vec(),
    );
    let bytes = prop::collection::vec(prop_oneof![9 => common, 1 => any::<u8>()], 0..4);
    prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, bytes), 0..12)
}

fn edited(mut text: Vec<u8>, edits: Vec<Edit>) -> Vec<u8> {
    for (place, gone, come) in edits {
        if text.is_empty() {
            break;
        }
        let at = place.index(text.len());
        let end = (at + gone).min(text.len());
        text.splice(at..end, come);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rbn(seed in any::<u64>(), edits in edits()) {
        let feed = named("rbn").unwrap();
        agree::check(feed, &edited(text(feed, &batch(seed, 0, 12)), edits));
    }

    #[test]
    fn cabrillo(seed in any::<u64>(), number in 0u32..4, edits in edits()) {
        let feed = named("cabrillo").unwrap();
        agree::check(feed, &edited(text(feed, &batch(seed, number, 14)), edits));
    }

    #[test]
    fn psk(seed in any::<u64>(), edits in edits()) {
        let feed = named("psk").unwrap();
        agree::check(feed, &edited(text(feed, &batch(seed, 0, 8)), edits));
    }

    #[test]
    fn solar(seed in any::<u64>(), number in 0u32..5, edits in edits()) {
        let feed = named("solar").unwrap();
        agree::check(feed, &edited(text(feed, &batch(seed, number, 40)), edits));
    }

    #[test]
    fn any_text(bytes in "[ -~\n]{0,200}") {
        for feed in FEEDS.iter().filter(|feed| feed.rows.is_some()) {
            agree::check(feed, bytes.as_bytes());
        }
    }
}

/// A line at a time: where a contact has every kind of word in every place.
#[test]
fn contacts_of_all_words() {
    let feed = named("cabrillo").unwrap();
    let words = [
        "QSO:",
        "X-QSO:",
        "14025",
        "1.2G",
        "24g",
        "14",
        "9G",
        "CW",
        "2023-11-25",
        "25/11/2023",
        "05-06-2023",
        "0001",
        "12:30",
        "K1ABC",
        "DL/K1A",
        "FN31pr",
        "599",
        "0",
        "1",
    ];
    for at in 0..11 {
        for word in words {
            let mut line: Vec<&str> = "QSO: 14025 CW 2023-11-25 1200 K1A 599 05 DL1ABC 599 14"
                .split(' ')
                .collect();
            line[at] = word;
            agree::check(feed, line.join(" ").as_bytes());
            line.insert(at, word);
            agree::check(feed, line.join(" ").as_bytes());
        }
    }
}

#[test]
fn what_the_generator_says_of_a_line_is_what_the_reader_makes_of_it() {
    for feed in FEEDS.iter().filter(|feed| feed.rows.is_some()) {
        for number in 0..5 {
            for quirks in [0.0, 0.3] {
                let batch = Batch {
                    quirks,
                    ..batch(7 + u64::from(number), number, 500)
                };
                let made: Vec<_> = (feed.rows.as_ref().unwrap().lines)(&batch).collect();
                let parsed = agree::read(feed, &text(feed, &batch));
                let rows: u32 = made.iter().map(|line| line.rows).sum();
                assert_eq!(parsed.rows.len(), rows as usize, "{} {number}", feed.name);
                let numbered = made.iter().zip(1..);
                let bad: Vec<u64> = numbered
                    .filter(|(line, _)| line.bad)
                    .map(|(_, at)| at)
                    .collect();
                assert_eq!(parsed.bad, bad, "{} {number}", feed.name);
                assert_eq!(parsed.refused, None);
                assert!(quirks > 0.0 || bad.is_empty());
            }
        }
    }
}
