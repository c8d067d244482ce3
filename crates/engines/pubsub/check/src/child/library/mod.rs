//! Clients of the library, over SQL or brokers; the address decides which.

mod consume;
mod produce;

use std::thread;
use std::time::Duration;

pub use consume::consume;
use dyno_pubsub::{Error, Retry};
pub use produce::produce;

use super::ChildError;
use super::events::Events;

const RETRY_PAUSE: Duration = Duration::from_millis(30);

/// Opens a client, however long the server is away. Returns `None` if the checker asks to stop
/// before.
fn open<T>(
    events: &Events,
    action: &'static str,
    mut open: impl FnMut() -> Result<T, Error>,
) -> Result<Option<T>, ChildError> {
    while !events.stopping() {
        match open() {
            Ok(client) => return Ok(Some(client)),
            Err(error) if error.retry() == Retry::Never => {
                return Err(ChildError::refused(action)(error));
            }
            Err(_) => thread::sleep(RETRY_PAUSE),
        }
    }
    Ok(None)
}
