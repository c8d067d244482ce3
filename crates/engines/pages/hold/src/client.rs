//! A daemon's side.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::HoldError;
use crate::detached::detached;
use crate::message::{Verb, message};
use crate::rights::{Arrived, receive, send};

/// How long an answer may take.
const WAIT: Duration = Duration::from_secs(10);

/// Talks to the holder at a socket, with a connection for each call.
#[derive(Debug, Clone)]
pub struct Client {
    path: PathBuf,
}

/// What was held.
#[derive(Debug)]
pub struct Held {
    /// The open file; the holder keeps its own.
    pub file: OwnedFd,
    /// What was said about it.
    pub note: Vec<u8>,
}

impl Client {
    /// Of the holder at `path`, which must answer.
    ///
    /// # Errors
    /// When it does not.
    pub fn connect(path: &Path) -> Result<Self, HoldError> {
        let client = Self {
            path: path.to_owned(),
        };
        client.list()?;
        Ok(client)
    }

    /// Has `file` held as `name` with a note; what was held so is let go.
    ///
    /// # Errors
    /// [`HoldError::Full`], [`HoldError::TooLong`], or when the holder is gone.
    pub fn put(&self, name: &str, note: &[u8], file: BorrowedFd<'_>) -> Result<(), HoldError> {
        self.ask(Verb::Put, name, note, Some(file)).map(drop)
    }

    /// What is held as `name`.
    ///
    /// # Errors
    /// [`HoldError::Unknown`], or when the holder is gone.
    pub fn get(&self, name: &str) -> Result<Held, HoldError> {
        let answer = self.ask(Verb::Get, name, &[], None)?;
        match answer.file {
            Some(file) => Ok(Held {
                file,
                note: answer.note,
            }),
            None => Err(HoldError::Message("the file did not come".to_owned())),
        }
    }

    /// All names.
    ///
    /// # Errors
    /// When the holder is gone.
    pub fn list(&self) -> Result<Vec<String>, HoldError> {
        let note = self.ask(Verb::List, "", &[], None)?.note;
        let names = String::from_utf8_lossy(&note);
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Lets go of `name`.
    ///
    /// # Errors
    /// [`HoldError::Unknown`], or when the holder is gone.
    pub fn drop_held(&self, name: &str) -> Result<(), HoldError> {
        self.ask(Verb::Drop, name, &[], None).map(drop)
    }

    /// Ends the holder, and what only it held.
    ///
    /// # Errors
    /// When it is gone.
    pub fn end(&self) -> Result<(), HoldError> {
        self.ask(Verb::End, "", &[], None).map(drop)
    }

    fn ask(
        &self,
        verb: Verb,
        name: &str,
        note: &[u8],
        file: Option<BorrowedFd<'_>>,
    ) -> Result<Arrived, HoldError> {
        let failed = |what| {
            move |source| HoldError::Io {
                what,
                path: self.path.clone(),
                source,
            }
        };
        let question = message(verb, name, note)?;
        let socket = UnixStream::connect(&self.path).map_err(failed("reach"))?;
        socket
            .set_read_timeout(Some(WAIT))
            .map_err(failed("reach"))?;
        socket
            .set_write_timeout(Some(WAIT))
            .map_err(failed("reach"))?;
        send(&socket, &question, file).map_err(failed("ask"))?;
        let answer = receive(&socket)?;
        match answer.head.verb {
            Verb::Done => Ok(answer),
            Verb::Unknown => Err(HoldError::Unknown {
                name: name.to_owned(),
            }),
            Verb::Full => Err(HoldError::Full { most: 64 }),
            _ => Err(HoldError::Message(
                String::from_utf8_lossy(&answer.note).into_owned(),
            )),
        }
    }
}

/// Starts a holder as a process of its own that outlives this one, by a command that calls
/// [`crate::Holder::run`] for `path`; one that is there already is taken.
///
/// # Errors
/// When the command cannot be started or the holder does not answer within `wait`.
pub fn start(mut command: Command, path: &Path, wait: Duration) -> Result<Client, HoldError> {
    if let Ok(client) = Client::connect(path) {
        return Ok(client);
    }
    let failed = |source| HoldError::Io {
        what: "start",
        path: path.to_owned(),
        source,
    };
    // In a session of its own, so that Ctrl-C on the daemon does not reach it.
    let mut child = detached(&mut command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let until = Instant::now() + wait;
    loop {
        match Client::connect(path) {
            Ok(client) => return Ok(client),
            Err(error) if Instant::now() >= until => return Err(error),
            Err(_) => {}
        }
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Err(failed(io::Error::other(format!("it ended: {status}"))));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
