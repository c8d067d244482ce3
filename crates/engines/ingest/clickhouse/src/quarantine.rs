//! Puts bad rows into a table of the database, through a stage like good rows.

use std::path::Path;

use dyno_codec::clickhouse::FrameWriter;
use dyno_ingest::scan::BadRow;

use crate::error::{Error, Result};
use crate::native;
use crate::sender::{Block, Sender, Shared};

/// The columns, with their types.
const COLUMNS: [(&str, &str); 6] = [
    ("archive", "String"),
    ("source", "String"),
    ("line", "UInt64"),
    ("reason", "String"),
    ("raw", "String"),
    ("cut", "UInt8"),
];

/// Bytes that are collected before they are sent.
const BATCH_BYTES: usize = 4 << 20;

/// The statement that creates a table for bad rows.
pub(crate) fn create(table: &str) -> String {
    let columns = COLUMNS.map(|(name, kind)| format!("{name} {kind}"));
    format!(
        "CREATE TABLE IF NOT EXISTS {table} ({}) ENGINE = MergeTree PARTITION BY archive ORDER BY line",
        columns.join(", ")
    )
}

/// The names of the columns, for an INSERT.
pub(crate) fn names() -> String {
    COLUMNS.map(|(name, _)| name).join(", ")
}

/// The bad rows of one archive. The stage is created with the first of them.
pub(crate) struct Quarantine<'a> {
    archive: String,
    source: String,
    open: Box<dyn Fn() -> Result<Sender> + 'a>,
    sender: Option<Sender>,
    shared: Shared,
    lines: Vec<u64>,
    reasons: Vec<String>,
    raws: Vec<(Vec<u8>, bool)>,
    bytes: usize,
    rows: u64,
    failure: Option<Error>,
}

impl<'a> Quarantine<'a> {
    /// Collects bad rows of `archive`, which is read from `source`; `open` creates the stage.
    pub fn new(archive: &str, source: &Path, open: Box<dyn Fn() -> Result<Sender> + 'a>) -> Self {
        Quarantine {
            archive: archive.to_owned(),
            source: source.display().to_string(),
            open,
            sender: None,
            shared: Shared::default(),
            lines: Vec::new(),
            reasons: Vec::new(),
            raws: Vec::new(),
            bytes: 0,
            rows: 0,
            failure: None,
        }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds one row. An error in sending it is returned by [`Self::finish`].
    pub fn add(&mut self, row: &BadRow<'_>) {
        self.rows += 1;
        // The archive will not be committed any more, so the rows are only counted.
        if self.failure.is_some() {
            return;
        }
        let (raw, cut) = row.kept();
        self.lines.push(row.line);
        self.bytes += raw.len() + row.reason.len() + 64;
        self.reasons.push(row.reason.clone());
        self.raws.push((raw.to_owned(), cut));
        if self.bytes > BATCH_BYTES
            && let Err(error) = self.send()
        {
            self.failure = Some(error);
        }
    }

    fn send(&mut self) -> Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let sender = match &mut self.sender {
            Some(sender) => sender,
            none => none.insert((self.open)()?),
        };
        let rows = self.lines.len();
        let mut out = FrameWriter::new(Vec::new());
        native::begin(&mut out, COLUMNS.len(), rows);
        for (name, kind) in COLUMNS {
            native::column(&mut out, name, kind);
            match name {
                "archive" => {
                    (0..rows).for_each(|_row| native::string(&mut out, self.archive.as_bytes()))
                }
                "source" => {
                    (0..rows).for_each(|_row| native::string(&mut out, self.source.as_bytes()));
                }
                "line" => self
                    .lines
                    .iter()
                    .for_each(|line| out.write(&line.to_le_bytes())),
                "reason" => self
                    .reasons
                    .iter()
                    .for_each(|reason| native::string(&mut out, reason.as_bytes())),
                "raw" => self
                    .raws
                    .iter()
                    .for_each(|(raw, _)| native::string(&mut out, raw)),
                _ => self
                    .raws
                    .iter()
                    .for_each(|&(_, cut)| out.write(&[u8::from(cut)])),
            }
        }
        let frames = out.finish(Vec::new());
        let rows = rows as u64;
        // If the insert fails, these rows are lost here. The load of the archive fails then, too.
        self.lines.clear();
        self.reasons.clear();
        self.raws.clear();
        self.bytes = 0;
        sender.insert(&Block { rows, frames }, &self.shared)
    }

    /// Sends what is left and checks that all rows arrived. Returns the stage, if there is one.
    pub fn finish(&mut self) -> Result<Option<&str>> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        self.send()?;
        match &self.sender {
            None => Ok(None),
            Some(sender) => {
                sender.check()?;
                Ok(Some(&sender.stage))
            }
        }
    }
}
