//! A bounded pool of connections, which are reused by later transactions.

use std::time::Instant;

use dyno_postgres::Dsn;
use dyno_txn_api::{Code, Error, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::session::Session;

/// The connections to a database, in use and idle.
pub struct Pool {
    pub dsn: Dsn,
    pub settings: dyno_postgres::Session,
    most: usize,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Session>,
    open: usize,
}

/// A connection that goes back to the pool when it is dropped.
pub struct Lease<'a> {
    pool: &'a Pool,
    session: Option<Session>,
}

impl Pool {
    pub fn new(dsn: Dsn, settings: dyno_postgres::Session, most: usize) -> Pool {
        Pool {
            dsn,
            settings,
            most: most.max(1),
            state: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    /// Takes an idle connection or opens one. Waits until the deadline if all are in use.
    pub fn acquire(&self, until: Instant) -> Result<Lease<'_>> {
        let mut state = self.lock();
        loop {
            while let Some(session) = state.idle.pop() {
                if session.is_good() {
                    return Ok(Lease {
                        pool: self,
                        session: Some(session),
                    });
                }
                // The server closed it, or a deadline cut it off. It makes room for a new one.
                state.open -= 1;
            }
            if state.open < self.most {
                // The place is taken before connecting, which happens without the lock: it can take
                // seconds, and others must be able to return their connections meanwhile.
                state.open += 1;
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let text = format!("{}: all {} connections are in use", self.dsn, self.most);
                return Err(Error::new(Code::Overloaded, text));
            }
            self.freed.wait_for(&mut state, left);
        }
        drop(state);
        // If connecting fails, dropping the lease gives the place back.
        let mut lease = Lease {
            pool: self,
            session: None,
        };
        lease.session = Some(Session::open(&self.dsn, &self.settings)?);
        Ok(lease)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Lease<'_> {
    /// The connection, unless it was closed.
    pub fn session(&mut self) -> Result<&mut Session> {
        self.session.as_mut().ok_or_else(|| {
            let text = "the transaction's connection is gone";
            Error::new(Code::Finished, text)
        })
    }

    /// Closes the connection instead of returning it to the pool.
    pub fn let_go(&mut self) {
        self.session = None;
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        match self.session.take().filter(Session::is_good) {
            Some(session) => state.idle.push(session),
            None => state.open -= 1,
        }
        drop(state);
        self.pool.freed.notify_one();
    }
}
