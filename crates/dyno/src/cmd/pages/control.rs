//! The socket at which a process that has a store answers `status` and `compact`: a word and a line end in, one JSON
//! object out.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use dyno_pages::{KindCount, Store};
use serde_json::{Value, json};

/// A question or an answer that takes longer is given up.
const WAIT: Duration = Duration::from_secs(120);
/// The longest word there is, and some.
const MOST_WORD_BYTES: usize = 64;
/// Spans that a compaction asked for empties of each class: all.
const ALL: usize = usize::MAX;

/// Listens at `path` for as long as the process lives. One that answers there already is left alone.
pub fn listen(path: &Path, store: Arc<Store>) -> anyhow::Result<()> {
    if UnixStream::connect(path).is_ok() {
        bail!("{}: a process answers there already", path.display());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", path.display()));
        }
        _ => {}
    }
    let listener =
        UnixListener::bind(path).with_context(|| format!("cannot listen at {}", path.display()))?;
    thread::Builder::new()
        .name("pages-control".into())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                // One after the other; who asks and goes away has lost nothing.
                if let Err(error) = serve(&stream, &store) {
                    eprintln!("dyno: a question was not answered: {error:#}");
                }
            }
        })?;
    Ok(())
}

fn serve(mut stream: &UnixStream, store: &Store) -> anyhow::Result<()> {
    // The folder is its owner's alone, so that nobody else can keep the one thread waiting.
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.set_write_timeout(Some(Duration::from_secs(1)))?;
    let mut word = Vec::new();
    let mut byte = [0];
    while word.len() < MOST_WORD_BYTES && stream.read(&mut byte)? == 1 && byte[0] != b'\n' {
        word.push(byte[0]);
    }
    let answer = match word.as_slice() {
        b"status" => status(store)?,
        b"compact" => {
            let done = store.compact(ALL)?;
            json!({
                "moved": done.moved,
                "freed_spans": done.freed_spans,
                "given_back_bytes": done.given_back_bytes,
                "huge_pages": store.gather(),
            })
        }
        _ => json!({ "error": "there are: status, compact" }),
    };
    Ok(stream.write_all(answer.to_string().as_bytes())?)
}

/// Asks the process that has the store of `path`.
pub fn ask(path: &Path, word: &str) -> anyhow::Result<Value> {
    let nobody = || format!("{}: no process answers there", path.display());
    let mut stream = UnixStream::connect(path).with_context(nobody)?;
    stream.set_read_timeout(Some(WAIT))?;
    stream.write_all(format!("{word}\n").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let answer: Value = serde_json::from_str(&text).context("the answer is no JSON")?;
    match answer.get("error") {
        None => Ok(answer),
        Some(error) => bail!("{error}"),
    }
}

/// Figures of a store.
pub fn status(store: &Store) -> anyhow::Result<Value> {
    let stats = store.stats()?;
    let kind = |kind: KindCount| json!({ "pages": kind.pages, "bytes": kind.bytes });
    Ok(json!({
        "pages": store.pages(),
        "stored_pages": stats.stored_pages(),
        "repeated": kind(stats.repeated),
        "lz4": kind(stats.lz4),
        "zstd": kind(stats.zstd),
        "raw": kind(stats.raw),
        "file": kind(stats.file),
        "shared_pages": stats.shared,
        "pages_by_age": stats.by_age,
        "stubborn_pages": stats.stubborn,
        "refused_pages": stats.refused,
        "slot_bytes": stats.slot_bytes,
        "resident_bytes": stats.resident_bytes,
        "beside_bytes": stats.beside_bytes,
        "ratio": stats.ratio(),
    }))
}
