//! Contest logs in Cabrillo, versions 2 and 3.
//!
//! Every line of a log is a row with its raw text, also what is not understood, which says why in
//! `parse_error`: logs come from hundreds of programs, and a line that was dropped can never be
//! looked at again. Several logs may follow each other in one archive; `START-OF-LOG` begins the
//! next.

mod band;
mod generator;
mod qso;
mod words;

use std::borrow::Cow;
use std::path::Path;

use crate::batch::Packing;
use crate::feed::{Feed, Layout, Line, Reader, Refusal, RowFormat, stem};
use crate::field::{Field, Kind};
use crate::rows::{Cell, Rows};
use qso::Qso;

const FIELDS: &[Field] = &[
    Field::new(
        "log",
        Kind::unsigned(32),
        "which log of the archive, from 1; 0 before the first",
    ),
    Field::new(
        "line",
        Kind::unsigned(32),
        "line of the archive's text, from 1",
    ),
    Field::nullable(
        "version",
        Kind::Word,
        "version of Cabrillo that the log says it has",
    ),
    Field::nullable("contest", Kind::Word, "CONTEST of the log"),
    Field::nullable("station", Kind::Word, "CALLSIGN of the log"),
    Field::new(
        "kind",
        Kind::Word,
        "qso, x-qso (not to be counted), header, blank, other",
    ),
    Field::nullable(
        "tag",
        Kind::Word,
        "what stands before the colon, in capitals",
    ),
    Field::nullable("value", Kind::Word, "what stands behind it, of headers"),
    Field::nullable(
        "timestamp",
        Kind::Moment,
        "when the contact was made, UTC, as the log has it",
    ),
    Field::nullable(
        "frequency",
        Kind::unsigned(64),
        "Hz; none where the log only names the band",
    ),
    Field::nullable(
        "band",
        Kind::signed(32),
        "code of the band, as in spots; 0 for one without a code",
    ),
    Field::nullable("band_name", Kind::Word, "20m, 2m, 24G, LIGHT"),
    Field::nullable(
        "mode",
        Kind::Word,
        "CW, PH, FM, RY, DG, or else the word of the log as it is",
    ),
    Field::nullable("sent_call", Kind::Word, "the station that logged"),
    Field::nullable("sent_exchange", Kind::Word, "what it sent"),
    Field::nullable("rcvd_call", Kind::Word, "the station it worked"),
    Field::nullable("rcvd_exchange", Kind::Word, "what that one sent"),
    Field::nullable(
        "transmitter",
        Kind::unsigned(8),
        "which transmitter, where the log says",
    ),
    Field::nullable(
        "remarks",
        Kind::Word,
        "what had to be read with indulgence, with commas",
    ),
    Field::nullable("parse_error", Kind::Word, "why the line could not be read"),
    Field::new(
        "raw_encoding",
        Kind::Word,
        "utf-8, or latin-1 where the bytes are not UTF-8",
    ),
    Field::new("raw", Kind::Text, "the line"),
];

/// Contest logs: each log is an archive, and each of its lines a row.
pub const FEED: Feed = Feed {
    name: "cabrillo",
    about: "contest logs",
    covers: "a log",
    lines_stand_alone: false,
    archive,
    claims,
    rows: Some(RowFormat {
        fields: FIELDS,
        layout: Layout {
            order: &["log", "line"],
            // A typing error may put a contact into any year, and its line must not be lost for
            // that.
            seconds: &[],
        },
        reader: || Box::new(Logs::default()),
        file_name: generator::file_name,
        packing: Packing::Plain,
        lines: |batch| Box::new(generator::lines(batch)),
    }),
};

/// The identity includes the folder, because a station uses one file name for its logs of all
/// contests.
fn archive(path: &Path) -> String {
    // A relative path may lack the folder, and the identity must not depend on the current
    // directory.
    let absolute = std::path::absolute(path);
    let folder = absolute.as_deref().unwrap_or(path).parent();
    match folder.and_then(Path::file_name) {
        Some(folder) => format!("{}/{}", folder.to_string_lossy(), stem(path)),
        None => stem(path),
    }
}

fn claims(text: &str) -> bool {
    text.lines().any(|line| {
        let tag = line.split_once(':').map(|(tag, _)| tag.trim());
        tag.is_some_and(|tag| {
            ["START-OF-LOG", "QSO", "X-QSO"]
                .iter()
                .any(|known| tag.eq_ignore_ascii_case(known))
        })
    })
}

/// Reads the logs of one archive.
#[derive(Default)]
struct Logs {
    log: u32,
    line: u32,
    version: Option<String>,
    contest: Option<String>,
    station: Option<String>,
    /// The year of the log's first contact.
    year: Option<u16>,
    /// Whether a log has begun and not ended.
    open: bool,
    unended: u32,
}

enum Parsed<'a> {
    Blank,
    Header {
        tag: String,
        value: &'a str,
    },
    Contact {
        tag: &'static str,
        qso: Result<Qso, String>,
    },
    Other,
}

impl Reader for Logs {
    fn line(&mut self, line: &[u8], rows: &mut Rows) -> Result<Line, Refusal> {
        self.line += 1;
        let (raw, encoding) = decoded(line);
        let parsed = self.parse(&raw);
        if let Parsed::Header { tag, value } = &parsed {
            self.note(tag, value);
        }
        // The line is pushed after the header was noted, so that a header row has its own value.
        self.push(&parsed, &raw, encoding, rows);
        Ok(Line::Rows)
    }

    fn passed_over(&mut self) {
        self.line += 1;
    }

    fn end(&mut self) -> Option<String> {
        let unended = self.unended + u32::from(self.open);
        (unended > 0).then(|| format!("{unended} of {} logs have no END-OF-LOG", self.log))
    }
}

impl Logs {
    fn parse<'a>(&mut self, raw: &'a str) -> Parsed<'a> {
        if raw.trim().is_empty() {
            return Parsed::Blank;
        }
        if let Some((tag, rest, remarks)) = words::contact(raw) {
            let qso = qso::parse(rest, remarks, &mut self.year);
            return Parsed::Contact { tag, qso };
        }
        match words::header(raw) {
            Some((tag, value)) => Parsed::Header { tag, value },
            None => Parsed::Other,
        }
    }

    /// Remembers what a header says about the lines that follow.
    fn note(&mut self, tag: &str, value: &str) {
        let given = (!value.is_empty()).then(|| value.to_owned());
        match tag {
            "START-OF-LOG" => {
                // A log may lack its end, and then the next one must not inherit its contest, its
                // station or its year.
                *self = Logs {
                    log: self.log + 1,
                    line: self.line,
                    version: given,
                    open: true,
                    unended: self.unended + u32::from(self.open),
                    ..Logs::default()
                };
            }
            "END-OF-LOG" => self.open = false,
            "CONTEST" => self.contest = given,
            "CALLSIGN" => self.station = given,
            _ => {}
        }
    }

    fn push(&self, parsed: &Parsed<'_>, raw: &str, encoding: &str, rows: &mut Rows) {
        let (kind, tag, value) = match parsed {
            Parsed::Blank => ("blank", None, None),
            Parsed::Header { tag, value } => ("header", Some(tag.as_str()), Some(*value)),
            Parsed::Contact { tag: "QSO", .. } => ("qso", Some("QSO"), None),
            Parsed::Contact { tag, .. } => ("x-qso", Some(*tag), None),
            Parsed::Other => ("other", None, None),
        };
        let (qso, error) = match parsed {
            Parsed::Contact { qso: Ok(qso), .. } => (Some(qso), None),
            Parsed::Contact {
                qso: Err(error), ..
            } => (None, Some(error.as_str())),
            Parsed::Other => (None, Some("it has no tag with a colon behind it")),
            Parsed::Blank | Parsed::Header { .. } => (None, None),
        };
        let text = |of: fn(&Qso) -> &String| -> Cell<'_> { qso.map(|qso| of(qso).as_str()).into() };
        let remarks = qso.and_then(|qso| qso.remarks.as_deref());
        rows.push(&[
            self.log.into(),
            self.line.into(),
            self.version.as_deref().into(),
            self.contest.as_deref().into(),
            self.station.as_deref().into(),
            kind.into(),
            tag.into(),
            value.into(),
            qso.map(|qso| qso.moment_ms).into(),
            qso.and_then(|qso| qso.band.frequency).into(),
            qso.map(|qso| qso.band.code).into(),
            text(|qso| &qso.band.name),
            text(|qso| &qso.mode),
            text(|qso| &qso.sent_call),
            text(|qso| &qso.sent_exchange),
            text(|qso| &qso.rcvd_call),
            text(|qso| &qso.rcvd_exchange),
            qso.and_then(|qso| qso.transmitter).into(),
            remarks.into(),
            error.into(),
            encoding.into(),
            raw.into(),
        ]);
    }
}

/// Decodes a line. Bytes that are not UTF-8 count as Latin-1, in which old logs have names of
/// persons, and which has a character for each byte.
fn decoded(line: &[u8]) -> (Cow<'_, str>, &'static str) {
    match std::str::from_utf8(line) {
        Ok(text) => (Cow::Borrowed(text), "utf-8"),
        Err(_) => (
            Cow::Owned(line.iter().map(|&byte| char::from(byte)).collect()),
            "latin-1",
        ),
    }
}
