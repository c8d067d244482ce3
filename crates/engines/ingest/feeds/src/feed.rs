//! What a feed is: its archives, their columns and lines, and how to generate some.

use std::fmt;
use std::path::Path;

use crate::batch::{Batch, MadeLine, Packing};
use crate::field::Field;
use crate::rows::Rows;

/// A source of archives. To add one, describe it in a file beside the others, and enter it in
/// [`crate::FEEDS`].
pub struct Feed {
    /// The name that commands and the ledger use.
    pub name: &'static str,
    /// A description in a few words.
    pub about: &'static str,
    /// What one archive covers, with its article: a day, a log.
    pub covers: &'static str,
    /// Whether a line means the same outside its file, so that the records of a log can be lines of
    /// this feed.
    pub lines_stand_alone: bool,
    /// The identity of the archive in a file, by the file's name.
    pub archive: fn(&Path) -> String,
    /// Whether text that begins like this is of this feed and of no other.
    pub claims: fn(&str) -> bool,
    /// How its lines become [`Rows`]; `None` for WSPR, whose scanner and columns are those of the
    /// ingest engine.
    pub rows: Option<RowFormat>,
}

impl Feed {
    /// The identity of a file in the ledger, which decides what it replaces: the archive that the
    /// caller says it is, or else that of its name, behind the feed's name. WSPR's archives have
    /// the feed's name only if they are months, because tables have had such identities since
    /// before there were other feeds.
    pub fn identity(&self, given: Option<&str>, path: &Path) -> String {
        let archive = given.map_or_else(|| (self.archive)(path), str::to_owned);
        let prefix = format!("{}/", self.name);
        // An identity that already has the prefix comes from the ledger, and a second prefix would
        // make it another archive.
        if self.rows.is_none() || archive.starts_with(&prefix) {
            archive
        } else {
            prefix + &archive
        }
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// How the lines of a feed become [`Rows`], and how to generate such lines.
pub struct RowFormat {
    /// The columns of the feed's table, in order.
    pub fields: &'static [Field],
    /// How a database lays the table out.
    pub layout: Layout,
    /// Makes a reader for the lines of one archive.
    pub reader: fn() -> Box<dyn Reader>,
    /// The file name of a generated archive.
    pub file_name: fn(&Batch) -> String,
    /// How its archives are packed.
    pub packing: Packing,
    /// The lines of an archive, as the published ones have them, with oddities at the rate that the
    /// batch says.
    pub lines: fn(&Batch) -> Box<dyn Iterator<Item = MadeLine>>,
}

/// A file's name without its folder and without the extensions of its packing and its form.
pub fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy();
    let mut stem = name.as_ref();
    for extension in [
        ".gz", ".zip", ".csv", ".txt", ".log", ".cbr", ".jsonl", ".json",
    ] {
        stem = stem.strip_suffix(extension).unwrap_or(stem);
    }
    stem.to_owned()
}

/// Turns the lines of one archive into rows.
pub trait Reader: Send {
    /// Parses one line, which comes without its line feed, and adds its rows. After an error it has
    /// added none.
    ///
    /// # Errors
    /// Why the line is not a row, or why the archive cannot be of this feed.
    fn line(&mut self, line: &[u8], rows: &mut Rows) -> Result<Line, Refusal>;

    /// Counts a line that is too long to be read. It goes into quarantine without the reader.
    fn passed_over(&mut self) {}

    /// What is odd about the archive as a whole, once it has ended.
    fn end(&mut self) -> Option<String> {
        None
    }
}

/// How a database sorts and types the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The columns that rows are sorted by: integers, moments and words. Rows that are often
    /// queried together should be neighbours.
    pub order: &'static [&'static str],
    /// The moments that are whole seconds from 1970 to 2106, which every database has a type for. A
    /// row with another one there is a bad row of such a database.
    pub seconds: &'static [&'static str],
}

/// What a line that is not bad consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The line is one row or several.
    Rows,
    /// The line has no row and is not bad: it is blank, a header or a comment.
    Nothing,
}

/// Why a line is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The line goes into quarantine for this reason.
    Line(String),
    /// Nothing of the archive may be loaded. If it goes on with a topic, only the line is refused.
    Archive(String),
}

impl From<String> for Refusal {
    fn from(reason: String) -> Refusal {
        Refusal::Line(reason)
    }
}
