//! The socket at which a process that has a store answers: a question of a word or three and a line
//! end in, one JSON object out.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;
use dyno_pages::{PAGE_BYTES, Store};
use dyno_pages_hold::BoundListener;
use serde_json::{Value, json};
use tracing::{error, warn};

use super::about::StatusService;
use super::store;
use crate::args::WriteBackArg;
use crate::terminal;

/// How long a client waits for an answer; a compaction of a large store takes a while.
const WAIT: Duration = Duration::from_secs(120);
/// Longer than the longest request.
const MOST_WORD_BYTES: usize = 64;
/// How many spans of each class a requested compaction empties: all.
const ALL: usize = usize::MAX;

/// Passes of ageing after which no page is older.
const OLDEST: usize = 3;

/// Listens at `path` for as long as the process lives. A process that answers there already and any
/// file that is not a socket are left alone.
pub fn listen(
    path: &Path,
    answer: impl Fn(&str) -> anyhow::Result<Value> + Send + 'static,
) -> anyhow::Result<()> {
    let listener = match BoundListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            bail!("{}: a process answers there already", path.display())
        }
        bound => bound.with_context(|| format!("cannot listen at {}", path.display()))?,
    };
    thread::Builder::new()
        .name("pages-control".into())
        .spawn(move || {
            for stream in listener.socket().incoming().flatten() {
                // One request at a time. A client that goes away before its answer loses nothing
                // but the answer, so the error is reported and the next request is served.
                if let Err(error) = serve(&stream, &answer) {
                    warn!("a question was not answered: {error:#}");
                }
            }
        })?;
    Ok(())
}

fn serve(
    mut stream: &UnixStream,
    answer: &impl Fn(&str) -> anyhow::Result<Value>,
) -> anyhow::Result<()> {
    // A client that sends nothing holds up the one thread, but only for as long as these limits.
    // Other users cannot connect, because the folder belongs to its owner alone.
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.set_write_timeout(Some(Duration::from_secs(1)))?;
    let mut word = Vec::new();
    let mut byte = [0];
    while word.len() < MOST_WORD_BYTES && stream.read(&mut byte)? == 1 && byte[0] != b'\n' {
        word.push(byte[0]);
    }
    let question = String::from_utf8_lossy(&word);
    let answer = match answer(&question) {
        Ok(answer) => answer,
        Err(error) => json!({ "error": terminal::explain(&error) }),
    };
    Ok(stream.write_all(answer.to_string().as_bytes())?)
}

impl StatusService {
    /// Answers at `path` for as long as the process lives.
    pub fn listen(self, path: &Path) -> anyhow::Result<()> {
        listen(path, move |question| self.answer(question))
    }

    fn answer(&self, question: &str) -> anyhow::Result<Value> {
        let about = &self.0;
        let store = about.disk.store();
        match question.split(' ').collect::<Vec<_>>()[..] {
            ["about"] => Ok(about.itself()),
            ["status"] => about.status(),
            ["compact"] if about.fixed => bail!(
                "the system may swap to this store: what it gave back it could not have again when memory is short"
            ),
            ["compact"] => {
                let done = store.compact(ALL)?;
                Ok(json!({
                    "moved": done.moved,
                    "freed_spans": done.freed_spans,
                    "given_back_bytes": done.given_back_bytes,
                    "huge_pages": store.gather(),
                }))
            }
            // A client may have pages of the store in its cache. Emptying the store below it would
            // mix old pages with zeros.
            ["reset"] => match about.connected() {
                0 => reset(store),
                1 => bail!(
                    "an NBD client is connected, which has its pages in use: disconnect it first"
                ),
                clients => bail!(
                    "{clients} NBD clients are connected, which have its pages in use: disconnect them first"
                ),
            },
            ["idle"] => {
                (0..OLDEST).for_each(|_| store.age());
                let idle = store.stats()?.by_age[OLDEST];
                Ok(json!({ "idle_pages": idle }))
            }
            ["writeback", kind, bytes] => {
                let Ok(kind) = WriteBackArg::from_str(kind, false) else {
                    bail!("no kind of page is called {kind}");
                };
                let most = bytes.parse::<u64>()? / PAGE_BYTES as u64;
                let mut handle = store.handle()?;
                let done = handle.write_back(0, most, store::write_back(kind))?;
                Ok(json!({ "written_back_pages": done.pages }))
            }
            _ => bail!("there are: about, status, compact, reset, idle, writeback KIND BYTES"),
        }
    }
}

/// Forgets every page, and returns how many there were.
fn reset(store: &Store) -> anyhow::Result<Value> {
    let mut handle = store.handle()?;
    let before = store.stats()?.stored_pages();
    handle.discard_all()?;
    Ok(json!({ "forgotten_pages": before }))
}

/// Says which pages were met damaged since the last call.
pub fn log_damage(store: &Store) {
    for (page, what) in store.unreported_damage() {
        error!("page {page} is damaged, and reading it is refused: {what}");
    }
}

/// Asks the process that has the store of `path`.
pub fn ask(path: &Path, word: &str) -> anyhow::Result<Value> {
    ask_within(path, word, WAIT)
}

/// As [`ask`], for at most `wait`.
pub fn ask_within(path: &Path, word: &str, wait: Duration) -> anyhow::Result<Value> {
    let mut stream = UnixStream::connect(path)
        .with_context(|| format!("{}: no process answers there", path.display()))?;
    stream.set_read_timeout(Some(wait))?;
    stream.write_all(format!("{word}\n").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let answer: Value = serde_json::from_str(&text).context("the answer is not JSON")?;
    match answer.get("error") {
        None => Ok(answer),
        Some(error) => bail!("{}", error.as_str().unwrap_or("it fails")),
    }
}
