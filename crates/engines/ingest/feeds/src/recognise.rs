//! Recognises the feed of a text by its first lines.

use std::path::Path;

use dyno_ingest::Result;
use dyno_ingest::load::Engine;
use dyno_ingest::scan::Block;
use dyno_ingest::source::{Source, open_path};
use dyno_ingest::table::WSPR;

use crate::{FEEDS, Feed};

/// How many lines are examined.
const LINES: usize = 50;

/// The name of the feed that claims a text by its first lines; none where no feed does.
pub fn feed_of_text(text: &[u8]) -> Option<&'static str> {
    // A claim parses the lines that it is given, so it gets only the first ones.
    let text = beginning(text);
    let found = FEEDS.iter().find(|feed| (feed.claims)(&text));
    found.map(|feed| feed.name)
}

/// The name of another feed that claims the text; `None` if `feed` claims it, or no feed.
pub(crate) fn other_than(feed: &Feed, text: &[u8]) -> Option<&'static str> {
    // The feed that was named comes first: a text may look like two feeds, and then the caller
    // decides.
    if (feed.claims)(&beginning(text)) {
        return None;
    }
    feed_of_text(text).filter(|&other| other != feed.name)
}

/// The name of the feed that claims the file at `path`. Parquet comes of WSPR alone.
///
/// # Errors
/// Those of opening it and of reading its first block.
pub fn feed_of_file(path: &Path) -> Result<Option<&'static str>> {
    match open_path(path, Engine::Native, None)? {
        Source::Parquet(..) => Ok(Some(WSPR)),
        Source::Text(mut source) => {
            let mut block = Block::default();
            let any = source.next_block(&mut block)?;
            Ok(any.then(|| feed_of_text(block.text())).flatten())
        }
    }
}

fn beginning(text: &[u8]) -> String {
    let lines = text.split_inclusive(|&byte| byte == b'\n').take(LINES);
    let bytes = lines.map(<[u8]>::len).sum();
    String::from_utf8_lossy(&text[..bytes]).into_owned()
}
