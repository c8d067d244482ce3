//! The daemon's side of the conversation.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::HoldError;
use crate::detached::detached;
use crate::message::{MOST_HELD, Verb, message};
use crate::rights::{Arrived, receive, send};

/// How long one read or write of an answer may take.
const WAIT: Duration = Duration::from_secs(10);

/// Talks to the holder at a socket. Each call makes a connection of its own, so a holder that was
/// started again is found by the next call.
#[derive(Debug, Clone)]
pub struct Client {
    path: PathBuf,
}

/// A descriptor that was held, with its note.
#[derive(Debug)]
pub struct HeldFile {
    /// The open file; the holder keeps a descriptor of its own.
    pub file: OwnedFd,
    /// The note that was put there with it.
    pub note: Vec<u8>,
}

impl Client {
    /// Makes a client of the holder at `path`, and asks it a question to see that it answers.
    ///
    /// # Errors
    /// If nothing listens there, or it does not answer.
    pub fn connect(path: &Path) -> Result<Self, HoldError> {
        let client = Self {
            path: path.to_owned(),
        };
        client.list()?;
        Ok(client)
    }

    /// Has `file` held as `name` with a note. What was held under that name is let go.
    ///
    /// # Errors
    /// [`HoldError::Full`], [`HoldError::TooLong`], or when the holder is gone.
    pub fn put(&self, name: &str, note: &[u8], file: BorrowedFd<'_>) -> Result<(), HoldError> {
        self.ask(Verb::Put, name, note, Some(file)).map(drop)
    }

    /// Gets another descriptor of the file that is held as `name`.
    ///
    /// # Errors
    /// [`HoldError::Unknown`], or when the holder is gone.
    pub fn get(&self, name: &str) -> Result<HeldFile, HoldError> {
        let answer = self.ask(Verb::Get, name, &[], None)?;
        match answer.file {
            Some(file) => Ok(HeldFile {
                file,
                note: answer.note,
            }),
            None => Err(HoldError::Message("the file did not come".to_owned())),
        }
    }

    /// The names of all held files, as many as fit into a note.
    ///
    /// # Errors
    /// When the holder is gone.
    pub fn list(&self) -> Result<Vec<String>, HoldError> {
        let note = self.ask(Verb::List, "", &[], None)?.note;
        let names = String::from_utf8_lossy(&note);
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Has the holder close the file that is held as `name`.
    ///
    /// # Errors
    /// [`HoldError::Unknown`], or when the holder is gone.
    pub fn drop_held(&self, name: &str) -> Result<(), HoldError> {
        self.ask(Verb::Drop, name, &[], None).map(drop)
    }

    /// Ends the holder. Files that only it held are gone.
    ///
    /// # Errors
    /// If the holder is gone already.
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
            Verb::Full => Err(HoldError::Full { most: MOST_HELD }),
            _ => Err(HoldError::Message(
                String::from_utf8_lossy(&answer.note).into_owned(),
            )),
        }
    }
}

/// Starts a holder as a process that outlives this one, by a command that calls
/// [`crate::Holder::run`] for `path`. A holder that answers there already is used instead.
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
    // The holder gets a session of its own, so that Ctrl-C on the daemon does not reach it.
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
        // A holder that lost a race for the socket ends, and the winner answers in the next round;
        // any other early end is reported at once instead of after the whole wait.
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Err(failed(io::Error::other(format!("it ended: {status}"))));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
