//! Loads the text of one span.

use std::io::Cursor;
use std::sync::Arc;

use dyno_ingest::Error;
use dyno_ingest::load::{Input, Outcome, Progress};
use dyno_ingest::table::Span;

use super::StreamSettings;
use crate::{Destination, WatchError};

/// Loads the text of a span and returns its good and bad rows. A span that is there already,
/// because an earlier attempt succeeded, counts as loaded.
pub(super) fn load(
    settings: &StreamSettings,
    destination: &dyn Destination,
    partition: i32,
    span: &Span,
    text: &Arc<[u8]>,
) -> Result<(u64, u64), WatchError> {
    let wrong = |reason: String| WatchError::Batch {
        topic: settings.topic.clone(),
        partition,
        first: span.first,
        last: span.last,
        reason,
    };
    let name = format!("pubsub:{}/{partition}", settings.topic);
    // Records come from other programs. One that begins like gzip must not make the loader inflate
    // the batch.
    let reader: Box<dyn std::io::Read + Send> = if looks_packed(text) {
        Box::new(std::io::Read::chain(
            Cursor::new(b"\n"),
            Cursor::new(Arc::clone(text)),
        ))
    } else {
        Box::new(Cursor::new(Arc::clone(text)))
    };
    let inputs = vec![Input::Stream(name, reader)];
    let identity = Some(span.to_string());
    let progress = Progress::default();
    let reports = destination.load(settings.feed, inputs, identity, &progress)?;
    match reports.into_iter().next().map(|report| report.outcome) {
        Some(Outcome::Loaded { rows, bad_rows, .. }) => Ok((rows, bad_rows)),
        // An earlier attempt has committed this span, although its result was lost.
        Some(Outcome::AlreadyThere { rows }) => Ok((rows, 0)),
        Some(Outcome::Failed(
            error @ (Error::Input { .. } | Error::Refused { .. } | Error::TooManyBad { .. }),
        )) => Err(wrong(error.to_string())),
        Some(Outcome::Failed(error)) => Err(error.into()),
        None => Err(wrong("the load did not report on it".to_owned())),
    }
}

/// Whether a loader would take the text for a packed archive. If so, a blank line goes in front.
fn looks_packed(text: &[u8]) -> bool {
    matches!(text, [0x1f, ..] | [b'P', b'K', ..] | [b'P', b'A', ..])
}
