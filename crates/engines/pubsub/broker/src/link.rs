//! A session of the server that is opened anew after it was lost.

use dyno_pubsub::{Connection, Dsn, Error, Result, Retry};

/// One session, owned by one thread.
pub struct Link {
    dsn: Dsn,
    name: String,
    settings: &'static [(&'static str, &'static str)],
    open: Option<Connection>,
}

impl Link {
    /// A link that connects when it is first used. `name` is what `pg_stat_activity` shows.
    pub fn new(dsn: &Dsn, name: &str, settings: &'static [(&'static str, &'static str)]) -> Link {
        Link {
            dsn: dsn.clone(),
            name: name.to_owned(),
            settings,
            open: None,
        }
    }

    /// Runs `ask` in the session. After an error that leaves its state in doubt the session is
    /// dropped.
    pub fn run<T>(&mut self, ask: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let session = match &mut self.open {
            Some(open) if !open.is_closed() => open,
            other => {
                *other = None;
                let opened = Connection::open_session(&self.dsn, &self.name, self.settings)?;
                other.insert(opened)
            }
        };
        let result = ask(session);
        if session.is_closed() || result.as_ref().is_err_and(in_doubt) {
            self.open = None;
        }
        result
    }

    /// Runs `ask`, which must be repeatable. A session that was lost while it was idle shows that
    /// only at the next statement, which is then run again in a new session.
    pub fn run_again<T>(&mut self, mut ask: impl FnMut(&mut Connection) -> Result<T>) -> Result<T> {
        let was_open = self.open.is_some();
        match self.run(&mut ask) {
            Err(error) if was_open && in_doubt(&error) => self.run(ask),
            done => done,
        }
    }
}

fn in_doubt(error: &Error) -> bool {
    error.retry() == Retry::Unknown
}
