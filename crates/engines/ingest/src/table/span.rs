//! Spans of streams in the ledger: archives whose identity says which offsets their rows came from.
//!
//! A commit of such an archive also commits the position to continue at, because both are the same
//! entry in the manifest.

use std::collections::BTreeMap;
use std::fmt;

use super::Archive;

/// Digits that offsets are padded to, so that the spans of a stream sort in their order.
const DIGITS: usize = 12;
/// Follows the feed in every stream's name, and occurs in no file's identity.
const MARK: &str = "/pubsub:";

/// The offsets `first` to `last` of one partition of a topic, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// `FEED/pubsub:TOPIC/PARTITION`.
    pub stream: String,
    /// The first offset, inclusive.
    pub first: u64,
    /// The last offset, inclusive, which is not below the first.
    pub last: u64,
}

/// The name of the stream for a topic's partition and a feed.
pub fn stream_name(feed: &str, topic: &str, partition: i32) -> String {
    format!("{feed}{MARK}{topic}/{partition}")
}

impl Span {
    /// The span that an identity names; `None` if it names another kind of archive.
    pub fn from_identity(identity: &str) -> Option<Span> {
        let (stream, offsets) = identity.rsplit_once('@')?;
        let (first, last) = offsets.split_once('-')?;
        let digits = |text: &str| {
            let only = text.len() >= DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
            only.then(|| text.parse().ok()).flatten()
        };
        let (first, last): (u64, u64) = (digits(first)?, digits(last)?);
        (stream.contains(MARK) && first <= last).then(|| Span {
            stream: stream.to_owned(),
            first,
            last,
        })
    }

    /// Whether the two share an offset.
    fn meets(&self, other: &Span) -> bool {
        self.stream == other.stream && self.first <= other.last && other.first <= self.last
    }

    fn holds(&self, other: &Span) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// Formats the identity that the ledger has.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Span {
            stream,
            first,
            last,
        } = self;
        write!(f, "{stream}@{first:0DIGITS$}-{last:0DIGITS$}")
    }
}

/// The archives that a new one of this identity replaces if it is a span: those that lie within it.
///
/// # Errors
/// Why it cannot be: an offset would be in the table twice, or the rows of those that it covers are
/// not all in it.
pub(super) fn covered(
    archives: &BTreeMap<String, Archive>,
    identity: &str,
    rows: u64,
    bad_rows: u64,
) -> Result<Vec<String>, String> {
    let Some(span) = Span::from_identity(identity) else {
        return Ok(Vec::new());
    };
    let (mut covered, mut there) = (Vec::new(), (0, 0));
    // Padded offsets sort like numbers, so the spans of one stream follow each other from here on.
    for (other, archive) in archives.range(format!("{}@", span.stream)..) {
        let Some(found) = Span::from_identity(other).filter(|found| found.stream == span.stream)
        else {
            break;
        };
        if !span.meets(&found) || other == identity {
            continue;
        }
        if !span.holds(&found) {
            return Err(format!(
                "offsets {} to {} are in the table already",
                found.first, found.last
            ));
        }
        there = (there.0 + archive.rows, there.1 + archive.bad_rows);
        covered.push(other.clone());
    }
    // A span replaces the smaller ones inside it only if it has exactly their rows. If it has
    // fewer, records were lost on the way and the replacement would drop them from the table.
    if !covered.is_empty() && there != (rows, bad_rows) {
        return Err(format!(
            "it has {rows} rows and {bad_rows} bad ones, and the table has {} and {} of these offsets",
            there.0, there.1
        ));
    }
    Ok(covered)
}

/// The position of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// The offset to continue at.
    pub next: u64,
    /// The stream's spans as first and last offset, in order.
    pub spans: Vec<(u64, u64)>,
    /// Good rows of all spans.
    pub rows: u64,
    /// Rows of all spans that are in quarantine.
    pub bad_rows: u64,
    /// Gaps between spans as first and last offset: records that were gone when they were to be
    /// read.
    pub missing: Vec<(u64, u64)>,
}

/// The position of each stream, by its name.
pub(super) fn positions(archives: &BTreeMap<String, Archive>) -> BTreeMap<String, Position> {
    let mut positions: BTreeMap<String, Position> = BTreeMap::new();
    let spans = archives
        .iter()
        .filter_map(|(identity, archive)| Some((Span::from_identity(identity)?, archive)));
    for (span, archive) in spans {
        let position = positions.entry(span.stream).or_default();
        // Spans come in the order of their first offsets, so a gap shows as soon as the next span
        // begins behind the position.
        if !position.spans.is_empty() && position.next < span.first {
            position.missing.push((position.next, span.first - 1));
        }
        position.next = position.next.max(span.last.saturating_add(1));
        position.spans.push((span.first, span.last));
        position.rows += archive.rows;
        position.bad_rows += archive.bad_rows;
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::SourceIdentity;

    fn archive(rows: u64) -> Archive {
        Archive {
            feed: "wspr".to_owned(),
            source: SourceIdentity {
                path: String::new(),
                bytes: 0,
                hash: String::new(),
            },
            files: Vec::new(),
            rows,
            bad_rows: 0,
            quarantine: None,
            generation: 1,
            loaded_at_s: 0,
        }
    }

    fn span(first: u64, last: u64) -> String {
        let stream = stream_name("wspr", "spots", 3);
        Span {
            stream,
            first,
            last,
        }
        .to_string()
    }

    #[test]
    fn identities_come_back_and_names_of_files_are_none() {
        let identity = span(0, 99);
        assert_eq!(identity, "wspr/pubsub:spots/3@000000000000-000000000099");
        assert_eq!(
            Span::from_identity(&identity).map(|span| span.to_string()),
            Some(identity)
        );
        let large = span(u64::MAX - 1, u64::MAX);
        assert_eq!(
            Span::from_identity(&large).map(|span| span.last),
            Some(u64::MAX)
        );
        for other in [
            "wspr/2023-01",
            "me@1-2",
            "rbn/me@000000000001-000000000002",
            "wspr/pubsub:spots/3@000000000002-000000000001",
            "wspr/pubsub:spots/3@+00000000001-000000000002",
        ] {
            assert_eq!(Span::from_identity(other), None, "{other}");
        }
    }

    #[test]
    fn no_offset_gets_in_twice_and_a_larger_span_takes_the_place_of_those_in_it() {
        let archives: BTreeMap<String, Archive> =
            [(span(0, 4), archive(5)), (span(5, 9), archive(4))].into();
        let covered = |identity: &str, rows| covered(&archives, identity, rows, 0);
        assert_eq!(covered(&span(10, 12), 3), Ok(Vec::new()));
        assert_eq!(covered(&span(0, 4), 5), Ok(Vec::new()));
        assert_eq!(covered(&span(0, 9), 9), Ok(vec![span(0, 4), span(5, 9)]));
        assert!(covered(&span(0, 9), 8).is_err_and(|e| e.contains("8 rows")));
        for (first, last) in [(4, 12), (9, 9), (2, 3), (0, 7)] {
            let error = covered(&span(first, last), 1);
            assert!(
                error.is_err_and(|e| e.contains("already")),
                "{first}-{last}"
            );
        }
        assert_eq!(covered("wspr/2023-01", 3), Ok(Vec::new()));
    }

    #[test]
    fn positions_tell_where_to_go_on_and_what_is_missing() {
        let archives: BTreeMap<String, Archive> = [
            (span(0, 4), archive(5)),
            (span(8, 9), archive(2)),
            ("wspr/2023-01".to_owned(), archive(7)),
        ]
        .into();
        let positions = positions(&archives);
        assert_eq!(positions.len(), 1);
        let position = &positions[&stream_name("wspr", "spots", 3)];
        assert_eq!((position.next, position.rows), (10, 7));
        assert_eq!(position.spans, [(0, 4), (8, 9)]);
        assert_eq!(position.missing, [(5, 7)]);
    }
}
