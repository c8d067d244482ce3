//! Backups that clients request of a server: one at a time, by a name below one folder.
//!
//! A client polls under one ticket until its backup is over. The server keeps nothing for it, so a
//! connection that ends costs nothing. Every client of the server may request a backup, so what it
//! can choose is a name and never a path.

use std::path::{Path, PathBuf};

use dyno_txn_api::{Code, Error, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::bad_argument;
use crate::hello::{decode_refusal, encode_refusal};

/// The longest name.
const NAME_MOST: usize = 128;

const UNDER_WAY: u8 = 0;
const DONE: u8 = 1;
const FAILED: u8 = 2;

/// Takes requests of clients, on the engine's threads, for one thread of the server that carries
/// them out.
#[derive(Debug)]
pub(crate) struct BackupService {
    folder: PathBuf,
    state: Mutex<State>,
    /// Signalled when a backup is requested, and at the end.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// That of the request which `step` is about.
    ticket: u64,
    step: Step,
    closed: bool,
}

#[derive(Debug, Default)]
enum Step {
    #[default]
    Idle,
    Requested(PathBuf),
    UnderWay,
    Ended(Result<()>),
}

impl BackupService {
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        }
    }

    /// Begins a backup, or reports on the one of this ticket. Returns `None` while it is under way.
    ///
    /// A repeated request is the same one: it must not begin a second backup after the first has
    /// ended, since the client may have missed the answer.
    fn request(&self, body: &[u8]) -> Result<Option<Result<()>>> {
        let (ticket, path) = self.parse(body)?;
        let mut state = self.lock();
        let same = state.ticket == ticket;
        match &state.step {
            Step::Ended(result) if same => return Ok(Some(result.clone())),
            Step::Requested(_) | Step::UnderWay if same => return Ok(None),
            Step::Requested(_) | Step::UnderWay => {
                let text = "another backup of this server is under way";
                return Err(Error::new(Code::Unavailable, text));
            }
            Step::Idle | Step::Ended(_) => {}
        }
        state.ticket = ticket;
        state.step = Step::Requested(path);
        self.changed.notify_all();
        Ok(None)
    }

    fn parse(&self, body: &[u8]) -> Result<(u64, PathBuf)> {
        let (Some(ticket), Some(name)) = (body.first_chunk::<8>(), body.get(8..)) else {
            return Err(Error::new(
                Code::Damaged,
                "the request of a backup does not parse",
            ));
        };
        let name = checked_name(name)?;
        Ok((u64::from_le_bytes(*ticket), self.folder.join(name)))
    }

    /// Calls `make` for each backup that is requested, until [`BackupService::close`].
    pub fn run(&self, make: impl Fn(&Path) -> Result<()>) {
        while let Some(path) = self.next() {
            let result = make(&path);
            self.lock().step = Step::Ended(result);
        }
    }

    fn next(&self) -> Option<PathBuf> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            match std::mem::take(&mut state.step) {
                Step::Requested(path) => {
                    state.step = Step::UnderWay;
                    return Some(path);
                }
                other => state.step = other,
            }
            self.changed.wait(&mut state);
        }
    }

    /// Lets no further backup begin.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Checks that a name is not a path, so that nothing outside the folder can be written.
fn checked_name(name: &[u8]) -> Result<&str> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let fine = (1..=NAME_MOST).contains(&name.len()) && name[0] != b'.' && name.iter().all(allowed);
    match std::str::from_utf8(name) {
        Ok(name) if fine => Ok(name),
        _ => Err(bad_argument(format!(
            "backup `{}`: the name of a server's backup has letters, digits, `-`, `_` and `.`, \
             {NAME_MOST} bytes at most, and does not begin with `.`; the server puts it into its \
             folder of backups",
            String::from_utf8_lossy(&name[..name.len().min(NAME_MOST)]).escape_debug()
        ))),
    }
}

/// The body of a request.
pub(crate) fn encode_request(ticket: u64, name: &str) -> Vec<u8> {
    let mut out = ticket.to_le_bytes().to_vec();
    out.extend_from_slice(name.as_bytes());
    out
}

/// Handles the body of a request, and returns the body of its answer.
pub(crate) fn answer(service: Option<&BackupService>, body: &[u8]) -> Vec<u8> {
    let none = || {
        let text = "this server makes no backups: it was started without a folder for them";
        Err(Error::new(Code::NotSupported, text))
    };
    let refusal = match service.map_or_else(none, |service| service.request(body)) {
        Ok(None) => return vec![UNDER_WAY],
        Ok(Some(Ok(()))) => return vec![DONE],
        Ok(Some(Err(error))) | Err(error) => error,
    };
    let mut out = vec![FAILED];
    out.extend_from_slice(&encode_refusal(&refusal));
    out
}

/// What the body of an answer says. `None` while the backup is under way.
pub(crate) fn decode_answer(body: &[u8]) -> Option<Result<()>> {
    match body {
        [UNDER_WAY] => None,
        [DONE] => Some(Ok(())),
        [FAILED, refusal @ ..] => Some(Err(decode_refusal(refusal))),
        _ => Some(Err(Error::new(
            Code::Damaged,
            "the answer about a backup does not parse",
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["monday", "2026-11-20_a.1"] {
            assert_eq!(checked_name(name.as_bytes()), Ok(name));
        }
        let long = "a".repeat(NAME_MOST + 1);
        for name in [
            "", ".", "..", ".a", "a/b", "/etc", "../a", "a\\b", "a b", "a\0", "\u{e9}", &long,
        ] {
            let error = checked_name(name.as_bytes()).expect_err(name);
            assert_eq!(error.kind(), Code::BadArgument, "{name:?}");
        }
        assert!(checked_name(b"\xff").is_err());
    }

    #[test]
    fn one_is_made_at_a_time_and_its_end_is_told_as_often_as_asked() {
        let service = BackupService::new(PathBuf::from("there"));
        let ask =
            |ticket, name| decode_answer(&answer(Some(&service), &encode_request(ticket, name)));
        assert_eq!(ask(1, "a"), None);
        assert_eq!(ask(1, "a"), None);
        let second = ask(2, "b").expect("refused").expect_err("another one");
        assert_eq!(second.kind(), Code::Unavailable);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                service.run(|path| {
                    if path.ends_with("a") {
                        Ok(())
                    } else {
                        Err(bad_argument("no"))
                    }
                });
            });
            let ended = |ticket, name| {
                loop {
                    if let Some(result) = ask(ticket, name) {
                        return result;
                    }
                    std::thread::yield_now();
                }
            };
            assert_eq!(ended(1, "a"), Ok(()));
            assert_eq!(ask(1, "a"), Some(Ok(())));
            assert_eq!(ended(2, "b"), Err(bad_argument("no")));
            service.close();
        });
    }

    #[test]
    fn what_does_not_parse_and_a_server_without_a_folder_say_so() {
        let service = BackupService::new(PathBuf::new());
        let cut = decode_answer(&answer(Some(&service), b"short")).expect("refused");
        assert_eq!(cut.expect_err("short").kind(), Code::Damaged);
        let none = decode_answer(&answer(None, &encode_request(1, "a"))).expect("refused");
        assert_eq!(none.expect_err("no folder").kind(), Code::NotSupported);
        assert!(decode_answer(&[]).expect("an end").is_err());
        assert!(decode_answer(&[7]).expect("an end").is_err());
    }
}
