//! Asking a server for a backup.

use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dyno_net::{FrameRef, Head, Outbound, Port};
use dyno_txn_api::{Code, Error, Result, Target};

use super::reach::Reach;
use crate::Local;
use crate::backups::{decode_answer, encode_ask};
use crate::error::{from_net, unavailable};
use crate::hello::{BACKUP, BACKUP_STATE, REFUSED, decode_refusal};
use crate::options::OpenOptions;

/// Between two questions how far it is.
const PAUSE: Duration = Duration::from_millis(50);
/// How long an answer to one of them may take.
const ANSWER: Duration = Duration::from_secs(10);

/// Copies a database, while it runs, as of one moment, so that [`crate::restore`] makes a directory of it.
///
/// Of a directory (`local:DIR`), which no other process may have open, `to` is a folder, empty or not there. Of a
/// server (`dyno://HOST:PORT`) it is a name: the copy is made at the server, below the folder that it was
/// started with.
///
/// # Errors
/// [`Code::BadArgument`] when `to` is taken or no name, [`Code::NotSupported`] from a server without a folder
/// for backups and for other engines, [`Code::Unavailable`].
pub fn backup(target: &Target, options: OpenOptions, to: &str) -> Result<()> {
    match target {
        Target::Local(directory) => Local::open(directory, options)?.backup(Path::new(to)),
        Target::Dyno(addresses) => {
            let (mut port, _) = Reach::remote(addresses, &options)?.dial(0, 0)?;
            let body = encode_ask(fresh_ticket(), to);
            loop {
                if let Some(result) = ask(&mut port, &body, options.spin)? {
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

fn ask(port: &mut Port, body: &[u8], spin: Duration) -> Result<Option<Result<()>>> {
    let head = Head {
        verb: BACKUP,
        flags: 0,
        request: 0,
    };
    port.send(head, &[body]).map_err(unavailable)?;
    let mut said = None;
    let take = |frame: FrameRef<'_>, _: &mut Outbound| {
        said = match frame.head.verb {
            BACKUP_STATE => Some(decode_answer(frame.body)),
            REFUSED => Some(Some(Err(decode_refusal(frame.body)))),
            _ => return ControlFlow::Continue(()),
        };
        ControlFlow::Continue(())
    };
    match port.wait(spin, ANSWER, take) {
        Ok(_) => {}
        // What it said before it ended counts.
        Err(_) if said.is_some() => {}
        Err(closed) => return Err(from_net(closed.into_error("the server"))),
    }
    said.ok_or_else(|| unavailable("the server does not say how far the backup is"))
}

/// Tells this question from those of others. Two clients in the same nanosecond would share one backup.
fn fresh_ticket() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64) ^ (u64::from(std::process::id()) << 40)
}
