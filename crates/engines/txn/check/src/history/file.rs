//! The file of a history: a header, then one event on each line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Event, History, HistoryError};

const MAGIC: &str = "dyno-txn-history";
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    magic: String,
    version: u32,
    /// A note about the origin of the history, for a person who opens the file.
    #[serde(default)]
    about: String,
}

impl History {
    /// Writes the history to `path`, with `about` in its header.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path, about: &str) -> Result<(), HistoryError> {
        let failed = |source| HistoryError::Io {
            action: "write",
            path: path.to_path_buf(),
            source,
        };
        let mut to = BufWriter::new(File::create(path).map_err(failed)?);
        let header = Header {
            magic: MAGIC.to_owned(),
            version: VERSION,
            about: about.to_owned(),
        };
        line(&mut to, &header).map_err(failed)?;
        for event in self.events() {
            line(&mut to, &event).map_err(failed)?;
        }
        to.flush().map_err(failed)
    }

    /// Reads a file that [`History::save`] wrote.
    ///
    /// # Errors
    /// The file cannot be read, is not a history, has a newer version, or is not consistent.
    pub fn load(path: &Path) -> Result<Self, HistoryError> {
        let failed = |source| HistoryError::Io {
            action: "read",
            path: path.to_path_buf(),
            source,
        };
        let wrong = |line: usize, reason: String| HistoryError::Line {
            path: path.to_path_buf(),
            line,
            reason,
        };
        let mut lines = BufReader::new(File::open(path).map_err(failed)?).lines();
        let first = lines
            .next()
            .transpose()
            .map_err(failed)?
            .unwrap_or_default();
        check_header(&first).map_err(|reason| wrong(1, reason))?;
        let mut events: Vec<Event> = Vec::new();
        for (at, text) in lines.enumerate() {
            let text = text.map_err(failed)?;
            let event = serde_json::from_str(&text);
            events.push(event.map_err(|error| wrong(at + 2, error.to_string()))?);
        }
        Self::from_events(&events)
    }
}

fn line(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, what).map_err(io::Error::from)?;
    to.write_all(b"\n")
}

fn check_header(text: &str) -> Result<(), String> {
    let header: Header = serde_json::from_str(text)
        .map_err(|error| format!("this is not a history of transactions: {error}"))?;
    if header.magic != MAGIC {
        return Err(format!("the magic is {:?}, not {MAGIC:?}", header.magic));
    }
    if header.version > VERSION || header.version == 0 {
        return Err(format!(
            "the history has version {}; this program reads up to {VERSION}",
            header.version
        ));
    }
    Ok(())
}
