//! PSK Reporter: what `dyno ingest collect` wrote of its live feed, an hour a file.
//!
//! A line is a captured message with its time and topic, what happened to the connection, or a
//! message alone, as other collectors write it. Each is a row with the message's raw text; keys
//! that are not known, and values that their column cannot hold, stay in `extra`.

mod capture;
mod fast_path;
mod generator;
mod message;

use std::borrow::Cow;

use dyno_ingest::contract::band_of;
use serde_json::Value;

use crate::batch::Packing;
use crate::feed::{Feed, Layout, Line, Reader, Refusal, RowFormat, stem};
use crate::field::{Field, Kind};
use crate::rows::{Cell, Rows};
use crate::value::shown;
pub use capture::{Capture, moment_ms, stamp};
use message::{KEYS, Message, Scalar};

const FIELDS: &[Field] = &[
    Field::nullable(
        "timestamp",
        Kind::Moment,
        "t: when the report was made, UTC",
    ),
    Field::nullable("received_at", Kind::Moment, "when the collector had it"),
    Field::nullable("topic", Kind::Text, "the topic it was published to"),
    Field::nullable(
        "event",
        Kind::Word,
        "what happened to the connection: such a row is not a report",
    ),
    Field::nullable("detail", Kind::Text, "more about it"),
    Field::nullable(
        "sequence",
        Kind::signed(64),
        "sq: number of the report; gaps are lost or filtered ones",
    ),
    Field::nullable("frequency", Kind::unsigned(64), "f: Hz"),
    Field::nullable(
        "band",
        Kind::signed(32),
        "code of the band that holds the frequency, as in spots; 0 for none",
    ),
    Field::nullable("band_name", Kind::Word, "b: the band as the feed names it"),
    Field::nullable("mode", Kind::Word, "md: FT8, FT4, CW"),
    Field::nullable("snr", Kind::signed(16), "rp: dB"),
    Field::nullable(
        "sent_at",
        Kind::Moment,
        "t_tx: when the transmission began, UTC",
    ),
    Field::nullable("sender", Kind::Word, "sc: the station that was heard"),
    Field::nullable("sender_grid", Kind::Word, "sl: its locator, as it came"),
    Field::nullable("receiver", Kind::Word, "rc: the station that reports"),
    Field::nullable("receiver_grid", Kind::Word, "rl: its locator, as it came"),
    Field::nullable(
        "sender_dxcc",
        Kind::unsigned(16),
        "sa: the sender's country, an ADIF number",
    ),
    Field::nullable(
        "receiver_dxcc",
        Kind::unsigned(16),
        "ra: the receiver's country, an ADIF number",
    ),
    Field::nullable(
        "extra",
        Kind::Text,
        "other keys, and values that have no place above, as JSON",
    ),
    Field::nullable(
        "parse_error",
        Kind::Word,
        "why the message could not be read, or not all of it",
    ),
    Field::nullable(
        "raw",
        Kind::Text,
        "the message; in hexadecimal digits where it is not UTF-8",
    ),
];

/// Reports of PSK Reporter: each hour of a collector is an archive.
pub const FEED: Feed = Feed {
    name: "psk",
    about: "PSK Reporter, as collected",
    covers: "an hour",
    lines_stand_alone: true,
    archive: stem,
    claims,
    rows: Some(RowFormat {
        fields: FIELDS,
        layout: Layout {
            order: &["timestamp", "band", "sender"],
            seconds: &["timestamp", "sent_at"],
        },
        reader: || Box::new(Reports::new()),
        file_name: generator::file_name,
        packing: Packing::Gzip,
        lines: |batch| Box::new(generator::lines(batch)),
    }),
};

fn claims(text: &str) -> bool {
    let objects = text.lines().filter(|line| line.starts_with('{'));
    objects.into_iter().any(|line| {
        let capture = serde_json::from_str::<Capture>(line).is_ok();
        let message = |m: Message<'_>| m.known[0].is_some() && m.known[1].is_some();
        capture || serde_json::from_str::<Message<'_>>(line).is_ok_and(message)
    })
}

/// Reads the lines of one hour; each stands for itself.
struct Reports {
    /// The ranges of the integers, in the order of [`KEYS`].
    ranges: [Option<(i64, i64)>; KEYS.len()],
    /// Memory for the message of the current line.
    buffer: Vec<u8>,
}

impl Reports {
    fn new() -> Reports {
        Reports {
            ranges: KEYS.map(range),
            buffer: Vec::new(),
        }
    }
}

/// The parts of a line other than the values of its message.
#[derive(Default)]
struct Around<'a> {
    received_ms: Option<i64>,
    topic: Option<Cow<'a, str>>,
    event: Option<String>,
    detail: Option<String>,
    raw: Option<Cow<'a, str>>,
    error: Option<String>,
}

impl Reader for Reports {
    fn line(&mut self, line: &[u8], rows: &mut Rows) -> Result<Line, Refusal> {
        let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
        if line.is_empty() {
            return Ok(Line::Nothing);
        }
        let around = around(line, &mut self.buffer)?;
        let mut error = around.error;
        // A message in hexadecimal digits has its reason already.
        let message = match (&around.raw, &error) {
            (Some(raw), None) => parse_message(raw)
                .map_err(|e| error = Some(format!("the message is not an object of JSON: {e}")))
                .ok(),
            _ => None,
        };
        let mut message = message.unwrap_or_default();
        let values = ColumnValues::from_message(&mut message, &self.ranges, &mut error);
        let extra = (!message.extra.is_empty()).then(|| Value::Object(message.extra).to_string());
        let frequency = values.integer(1);
        rows.push(&[
            values.integer(4).map(|s| s * 1000).into(),
            around.received_ms.into(),
            around.topic.as_deref().into(),
            around.event.as_deref().into(),
            around.detail.as_deref().into(),
            values.integer(0).into(),
            frequency.into(),
            frequency.map(|hz| band_of(hz.unsigned_abs())).into(),
            values.text(12),
            values.text(2),
            values.integer(3).into(),
            values.integer(5).map(|s| s * 1000).into(),
            values.text(6),
            values.text(7),
            values.text(8),
            values.text(9),
            values.integer(10).into(),
            values.integer(11).into(),
            extra.as_deref().into(),
            error.as_deref().into(),
            around.raw.as_deref().into(),
        ]);
        Ok(Line::Rows)
    }
}

fn parse_message(text: &str) -> serde_json::Result<Message<'_>> {
    fast_path::message(text).map_or_else(|| serde_json::from_str(text), Ok)
}

/// Separates a captured message from what is around it. An object with the keys of a report is a
/// message alone. `buffer` is memory for the message.
fn around<'a>(line: &'a str, buffer: &'a mut Vec<u8>) -> Result<Around<'a>, String> {
    if let Some(captured) = fast_path::capture(line, buffer) {
        return Ok(Around {
            received_ms: Some(received_ms(captured.rx)?),
            topic: captured.topic.map(Cow::Borrowed),
            raw: Some(Cow::Borrowed(captured.raw)),
            ..Around::default()
        });
    }
    // The parser would also accept an array, whose elements it takes for the keys in their order.
    if !line.trim_start().starts_with('{') {
        return Err("it is not an object of JSON".to_owned());
    }
    // The form with a capture is tried first. Its unknown keys are refused, so a message alone is
    // not taken for one.
    let capture = match serde_json::from_str::<Capture>(line) {
        Ok(capture) => capture,
        Err(not_capture) => {
            return match serde_json::from_str::<Message<'_>>(line) {
                Ok(message) if message.known.iter().any(Option::is_some) => Ok(Around {
                    raw: Some(Cow::Borrowed(line)),
                    ..Around::default()
                }),
                _ => Err(format!(
                    "it is neither a capture nor a message: {not_capture}"
                )),
            };
        }
    };
    // A line with several of these would be two rows, and one with none is not a row.
    let parts =
        [&capture.raw, &capture.raw_hex, &capture.event].map(|part| u8::from(part.is_some()));
    if parts.iter().sum::<u8>() != 1 {
        return Err("it has not exactly one of raw, raw_hex and event".to_owned());
    }
    let error = capture
        .raw_hex
        .as_ref()
        .map(|_| "the message is not UTF-8".to_owned());
    Ok(Around {
        received_ms: Some(received_ms(&capture.rx)?),
        topic: capture.topic.map(Cow::Owned),
        event: capture.event,
        detail: capture.detail,
        raw: capture.raw.or(capture.raw_hex).map(Cow::Owned),
        error,
    })
}

fn received_ms(rx: &str) -> Result<i64, String> {
    moment_ms(rx).ok_or_else(|| format!("rx {} is not YYYY-MM-DDTHH:MM:SS.mmmZ", shown(rx)))
}

/// The values of the known keys that their columns can hold.
struct ColumnValues<'a>([Option<Scalar<'a>>; KEYS.len()]);

impl<'a> ColumnValues<'a> {
    /// Moves values that their columns cannot hold to the extra keys, and sets `error` to the first
    /// of them.
    fn from_message(
        message: &mut Message<'a>,
        ranges: &[Option<(i64, i64)>; KEYS.len()],
        error: &mut Option<String>,
    ) -> ColumnValues<'a> {
        let mut known = std::mem::take(&mut message.known);
        for (at, place) in known.iter_mut().enumerate() {
            let fits = match (place.as_ref(), ranges[at]) {
                (None, _) => continue,
                (Some(Scalar::Integer(value)), Some((least, most))) => {
                    (least..=most).contains(value)
                }
                (Some(Scalar::Text(_)), None) => true,
                _ => false,
            };
            // The value is not lost: it moves to `extra`, and the row says why.
            if !fits && let Some(value) = place.take() {
                let value = value.into_value();
                let text = value.to_string();
                error.get_or_insert_with(|| format!("{} cannot be {}", KEYS[at], shown(&text)));
                message.extra.insert(KEYS[at].to_owned(), value);
            }
        }
        ColumnValues(known)
    }

    fn integer(&self, at: usize) -> Option<i64> {
        match &self.0[at] {
            Some(Scalar::Integer(value)) => Some(*value),
            _ => None,
        }
    }

    fn text(&self, at: usize) -> Cell<'_> {
        match &self.0[at] {
            Some(Scalar::Text(text)) => Cell::Text(text),
            _ => Cell::Nothing,
        }
    }
}

/// The range of the integers of a key; `None` if its values are text.
fn range(key: &str) -> Option<(i64, i64)> {
    // Seconds of the years 1970 to 9999: more would not be a time.
    const SECONDS: (i64, i64) = (0, 253_402_300_799);
    match key {
        "sq" => Kind::signed(64).range(),
        "f" => Kind::unsigned(64).range(),
        "rp" => Kind::signed(16).range(),
        "t" | "t_tx" => Some(SECONDS),
        "sa" | "ra" => Kind::unsigned(16).range(),
        _ => None,
    }
}
