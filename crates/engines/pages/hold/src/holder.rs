//! The process that holds the files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use dyno_net::BoundListener;

use crate::HoldError;
use crate::message::{MOST_HELD, MOST_NOTE_BYTES, Verb, message};
use crate::rights::{Arrived, own_user, peer_user, receive, send};

/// How long one read or write of a client may take. Other clients wait meanwhile.
const WAIT: Duration = Duration::from_secs(5);

/// The holder and its listening socket, whose file goes away with it.
#[derive(Debug)]
pub struct Holder {
    listener: BoundListener,
    held: BTreeMap<String, (Vec<u8>, OwnedFd)>,
}

impl Holder {
    /// Listens at `path`, which must be in a directory that other users cannot write to. The socket
    /// that a dead holder left is replaced; that of a living one, and any other file, stay.
    ///
    /// # Errors
    /// When a process listens there, another file is there, or the system refuses a socket.
    pub fn bind(path: &Path) -> Result<Self, HoldError> {
        let failed = |source| HoldError::Io {
            what: "become",
            path: path.to_owned(),
            source,
        };
        let listener = BoundListener::bind(path).map_err(failed)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Self {
            listener,
            held: BTreeMap::new(),
        })
    }

    /// Holds files until a client asks the holder to end.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn run(mut self) -> Result<(), HoldError> {
        // The kernel gains no memory by killing this process, so it is exempt from that. Without
        // the privilege the write fails, and the holder is treated as any other process.
        let _ = fs::write("/proc/self/oom_score_adj", "-1000");
        loop {
            match self.listener.socket().accept() {
                Ok((socket, _)) => {
                    // An error concerns this client alone, which sees its connection end.
                    if matches!(self.serve(&socket), Ok(true)) {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Mostly the process is out of descriptors, which ends when a connection is closed.
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Answers one question. Returns true if it was the last one.
    fn serve(&mut self, socket: &UnixStream) -> Result<bool, HoldError> {
        let failed = |error: io::Error| HoldError::Message(error.to_string());
        socket.set_read_timeout(Some(WAIT)).map_err(failed)?;
        socket.set_write_timeout(Some(WAIT)).map_err(failed)?;
        // The system says who connected, and it is checked before a byte is read, so another user
        // can keep the holder waiting for no longer than it takes to accept.
        let user = peer_user(socket).map_err(failed)?;
        if user != 0 && user != own_user() {
            return Err(HoldError::Message(format!(
                "user {user} is neither root nor the user of this holder"
            )));
        }
        let answer = |verb, note: &[u8]| message(verb, "", note);
        let arrived = match receive(socket) {
            Ok(arrived) => arrived,
            Err(error) => {
                let why = error.to_string();
                send(socket, &answer(Verb::Refused, why.as_bytes())?, None).map_err(failed)?;
                return Err(error);
            }
        };
        let end = arrived.head.verb == Verb::End;
        if arrived.head.verb == Verb::Get
            && let Some((note, file)) = self.held.get(&arrived.name)
        {
            send(socket, &answer(Verb::Done, note)?, Some(file.as_fd())).map_err(failed)?;
            return Ok(false);
        }
        let (verb, note) = self.answer(arrived);
        send(socket, &answer(verb, &note)?, None).map_err(failed)?;
        Ok(end)
    }

    fn answer(&mut self, request: Arrived) -> (Verb, Vec<u8>) {
        match (request.head.verb, request.file) {
            (Verb::Put, Some(file)) => {
                if self.held.len() >= MOST_HELD && !self.held.contains_key(&request.name) {
                    return (Verb::Full, Vec::new());
                }
                self.held.insert(request.name, (request.note, file));
                (Verb::Done, Vec::new())
            }
            (Verb::Drop, _) => match self.held.remove(&request.name) {
                Some(_) => (Verb::Done, Vec::new()),
                None => (Verb::Unknown, Vec::new()),
            },
            (Verb::Get, _) => (Verb::Unknown, Vec::new()),
            (Verb::List, _) => {
                let mut names: Vec<u8> = Vec::new();
                for name in self.held.keys() {
                    // Names that do not fit into a note are left out; they can still be asked for.
                    if names.len() + name.len() < MOST_NOTE_BYTES {
                        names.extend(name.as_bytes());
                        names.push(b'\n');
                    }
                }
                (Verb::Done, names)
            }
            (Verb::End, _) => (Verb::Done, Vec::new()),
            _ => (
                Verb::Refused,
                b"not a question, or without its file".to_vec(),
            ),
        }
    }
}
