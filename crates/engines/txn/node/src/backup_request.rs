//! Requests a backup, of a server or of a directory.

use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dyno_net::{FrameRef, Head, Outbound, Port};
use dyno_txn_api::{Code, Error, Result, Target};

use crate::backup_service::{decode_answer, encode_request};
use crate::client::Connector;
use crate::error::{from_net, unavailable};
use crate::hello::{BACKUP, BACKUP_STATE, REFUSED, decode_refusal};
use crate::open::Local;
use crate::options::OpenOptions;

/// Between two polls of the server.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the answer to a poll may take.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// Copies a database while it runs, as of one moment. [`crate::restore`] makes a directory of the
/// copy.
///
/// For a directory (`local:DIR`), which no other process may have open, `to` is a folder that is
/// empty or does not exist. For a server (`dyno://HOST:PORT`) it is a name: the server makes the
/// copy, below the folder of backups that it was started with.
///
/// # Errors
/// [`Code::BadArgument`] if `to` is taken or is not a name, [`Code::NotSupported`] from a server
/// without a folder for backups and for other engines, [`Code::Unavailable`] if the engine is busy
/// or the server cannot be reached; a server may then still make the backup.
pub fn backup(target: &Target, options: OpenOptions, to: &str) -> Result<()> {
    match target {
        Target::Local(directory) => Local::open(directory, options)?.backup(Path::new(to)),
        Target::Dyno(addresses) => {
            let (mut port, _) = Connector::remote(addresses, &options)?.connect(0, 0)?;
            let body = encode_request(fresh_ticket(), to);
            loop {
                if let Some(result) = poll(&mut port, &body, options.spin)? {
                    return result;
                }
                thread::sleep(PAUSE);
            }
        }
        other => {
            let text = format!("`{other}`: its own tools make its backups, not this engine");
            Err(Error::new(Code::NotSupported, text))
        }
    }
}

fn poll(port: &mut Port, body: &[u8], spin: Duration) -> Result<Option<Result<()>>> {
    let head = Head {
        verb: BACKUP,
        flags: 0,
        request: 0,
    };
    port.send(head, &[body]).map_err(unavailable)?;
    let mut answer = None;
    let take = |frame: FrameRef<'_>, _: &mut Outbound| {
        answer = match frame.head.verb {
            BACKUP_STATE => Some(decode_answer(frame.body)),
            REFUSED => Some(Some(Err(decode_refusal(frame.body)))),
            _ => return ControlFlow::Continue(()),
        };
        ControlFlow::Continue(())
    };
    match port.wait(spin, ANSWER_WAIT, take) {
        Ok(_) => {}
        // What the server said before the connection ended counts.
        Err(_) if answer.is_some() => {}
        Err(closed) => return Err(from_net(closed.into_error("the server"))),
    }
    answer.ok_or_else(|| unavailable("the server did not say how far the backup is"))
}

/// A number that no other client uses. Two clients in the same nanosecond would share one backup.
fn fresh_ticket() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64) ^ (u64::from(std::process::id()) << 40)
}
