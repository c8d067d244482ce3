//! Runs a transaction until it is committed: a bounded number of attempts with growing pauses.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::thread;
use std::time::Duration;

use crate::{
    Committed, Database, Error, Operation, Options, Request, Result, Retry, Timestamp, Transaction,
};

/// The pause after the first conflict. Each further pause is twice as long.
const PAUSE_FIRST: Duration = Duration::from_micros(50);
/// The longest pause between two attempts.
const PAUSE_MOST: Duration = Duration::from_millis(50);

/// The result of a closure that was committed, and how it got there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome<T> {
    /// What the closure returned in the attempt that was committed.
    pub value: T,
    /// The timestamp of the transaction, if the engine has timestamps.
    pub timestamp: Option<Timestamp>,
    /// How many attempts there were, with the one that was committed.
    pub attempts: u32,
}

/// Retries for every [`Database`].
pub trait Transact {
    /// Runs the closure in a transaction and commits it. Both are repeated as long as the engine
    /// says that this is safe, so the closure must have no effects outside of the transaction. An
    /// error of the closure's own ([`Error::user_abort`]) rolls back and is returned.
    ///
    /// ```
    /// use dyno_txn_api::{Database, TableDef, Transact, model::Model};
    /// let db = Model::new();
    /// let table = db.create_table(&TableDef::hash("counters", 0))?;
    /// let count = db.transact(|t| {
    ///     let old = t.get(table, b"visits")?.map_or(0, |value| value[0]);
    ///     t.put(table, b"visits", &[old + 1])?;
    ///     Ok(old + 1)
    /// })?;
    /// assert_eq!(count, 1);
    /// # Ok::<(), dyno_txn_api::Error>(())
    /// ```
    fn transact<T>(&self, work: impl FnMut(&mut dyn Transaction) -> Result<T>) -> Result<T> {
        let outcome = self.transact_with(&Options::default(), work)?;
        Ok(outcome.value)
    }

    /// The same as [`Transact::transact`] with options, and with the number of attempts.
    fn transact_with<T>(
        &self,
        options: &Options,
        work: impl FnMut(&mut dyn Transaction) -> Result<T>,
    ) -> Result<Outcome<T>>;

    /// Runs a request until it is committed, or an error says not to retry.
    fn transact_once(&self, request: Request, options: &Options) -> Result<Outcome<Committed>>;

    /// Runs operations as one transaction in one request.
    fn one_shot(&self, operations: Vec<Operation>) -> Result<Committed> {
        let request = Request::Operations(operations);
        Ok(self.transact_once(request, &Options::default())?.value)
    }

    /// Calls a procedure of the engine, with the default options and no home.
    fn call(&self, procedure: &str, arguments: &[u8]) -> Result<Vec<u8>> {
        let request = Request::Call {
            procedure: procedure.to_owned(),
            arguments: arguments.to_vec(),
            home: None,
        };
        let outcome = self.transact_once(request, &Options::default())?;
        Ok(outcome.value.returned)
    }
}

impl<D: Database + ?Sized> Transact for D {
    fn transact_with<T>(
        &self,
        options: &Options,
        mut work: impl FnMut(&mut dyn Transaction) -> Result<T>,
    ) -> Result<Outcome<T>> {
        repeat(options, || {
            let mut transaction = self.begin(options)?;
            match work(&mut *transaction) {
                Ok(value) => Ok((value, transaction.commit()?)),
                Err(error) => {
                    // The closure's error says more than that of a failed rollback, after which the
                    // engine ends the transaction by itself.
                    let _ = transaction.rollback();
                    Err(error)
                }
            }
        })
        .map(|((value, timestamp), attempts)| Outcome {
            value,
            timestamp,
            attempts,
        })
    }

    fn transact_once(&self, request: Request, options: &Options) -> Result<Outcome<Committed>> {
        let (value, attempts) = repeat(options, || self.execute(request.clone(), options))?;
        Ok(Outcome {
            timestamp: value.timestamp,
            value,
            attempts,
        })
    }
}

/// Repeats an attempt. Returns its result and the number of attempts, or the last error.
fn repeat<T>(options: &Options, mut attempt: impl FnMut() -> Result<T>) -> Result<(T, u32)> {
    let mut pause = PAUSE_FIRST;
    let mut tried = 0;
    loop {
        tried += 1;
        match attempt() {
            Ok(value) => return Ok((value, tried)),
            // Only [`Retry::Safe`] is repeated: an attempt whose outcome is unknown may have been
            // committed, and a second one would apply it twice.
            Err(error) if error.retry() == Retry::Safe && tried < options.attempts => {
                thread::sleep(pause.mul_f64(jitter()));
                // The pause grows because many clients may be after the same row, and shorter
                // pauses would only add failed attempts.
                pause = (pause * 2).min(PAUSE_MOST);
            }
            Err(error) if tried > 1 && error.retry() == Retry::Safe => {
                let text = format!("{} (tried {tried} times)", error.text());
                return Err(Error::with_retry(error.kind(), Retry::Safe, text));
            }
            Err(error) => return Err(error),
        }
    }
}

/// A factor between 0.5 and 1.5, so that two transactions that collided do not collide again. The
/// random keys of the standard library are random enough, and need no dependency.
fn jitter() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    0.5 + (random >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    fn options(attempts: u32) -> Options {
        Options {
            attempts,
            ..Options::default()
        }
    }

    #[test]
    fn it_is_tried_as_often_as_allowed_and_no_more() {
        let mut tries = 0;
        let failed = repeat(&options(3), || {
            tries += 1;
            Err::<(), _>(Error::new(Code::Conflict, "in the way"))
        });
        assert_eq!(tries, 3);
        let error = failed.expect_err("never succeeded");
        assert_eq!(error.kind(), Code::Conflict);
        assert!(error.text().contains("3 times"));
    }

    #[test]
    fn an_unknown_outcome_is_not_repeated() {
        let mut tries = 0;
        let failed = repeat(&options(9), || {
            tries += 1;
            Err::<(), _>(Error::new(Code::OutcomeUnknown, "the answer was lost"))
        });
        assert_eq!((failed.is_err(), tries), (true, 1));
    }

    #[test]
    fn success_counts_attempts() {
        let mut tries = 0;
        let done = repeat(&options(9), || {
            tries += 1;
            match tries {
                3 => Ok("done"),
                _ => Err(Error::new(Code::Aborted, "pushed")),
            }
        });
        assert_eq!(done, Ok(("done", 3)));
    }
}
