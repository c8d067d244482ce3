//! Clients of the library, over SQL or brokers; the address decides which.

mod consume;
mod produce;

pub use consume::consume;
use dyno_pubsub::{Error, Retry};
pub use produce::produce;

use super::events::Events;
use super::{ChildError, insist};

/// Opens a client, however long the server is away. Returns `None` if the checker asks to stop
/// before.
fn open<T>(
    events: &Events,
    action: &'static str,
    open: impl FnMut() -> Result<T, Error>,
) -> Result<Option<T>, ChildError> {
    let is_passing = |error: &Error| error.retry() != Retry::Never;
    insist(events, action, is_passing, open)
}
