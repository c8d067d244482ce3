//! How long a log that cannot be reached is waited for.

use std::time::{Duration, Instant};

use dyno_pubsub::{Error, Result, Retry};

use super::WAIT;

/// How long the log may be unreachable before the command gives up, as long as a producer retries.
const LONGEST: Duration = Duration::from_secs(120);

#[derive(Default)]
pub struct Patience {
    away_since: Option<Instant>,
}

impl Patience {
    /// Notes that the log has answered.
    pub fn renew(&mut self) {
        self.away_since = None;
    }

    /// Waits a moment if the error may pass, until [`LONGEST`] is over.
    ///
    /// # Errors
    /// The error itself, if it does not pass or has lasted too long.
    pub fn bear(&mut self, error: Error) -> Result<()> {
        if error.retry() == Retry::Never {
            return Err(error);
        }
        let since = *self.away_since.get_or_insert_with(|| {
            eprintln!("dyno: {error}; it is tried again");
            Instant::now()
        });
        if since.elapsed() > LONGEST {
            return Err(error);
        }
        std::thread::sleep(WAIT);
        Ok(())
    }
}
