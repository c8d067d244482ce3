//! Opens connections: application name, timeouts, settings of the session, and the server's
//! notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use postgres::error::DbError;
use postgres::{Client, Config};

use crate::class::Class;
use crate::dsn::Dsn;
use crate::error::PgError;
use crate::tls;

/// The driver's default, which would leave a dead peer unnoticed for two hours.
const DRIVER_KEEPALIVE_IDLE: Duration = Duration::from_secs(2 * 60 * 60);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How a session is set up when it connects.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// The name that `pg_stat_activity` shows for it.
    pub application_name: String,
    /// How long to wait for a connection. `None` takes the connection string's, or else 10 seconds.
    pub connect_timeout: Option<Duration>,
    /// Settings (name, value), in force from the first statement on.
    pub settings: Vec<(String, String)>,
    /// Counts the server's notices and warnings, if set.
    pub notices: Option<Arc<Notices>>,
}

impl Session {
    /// A session with a name and no settings.
    pub fn named(application_name: &str) -> Self {
        Self {
            application_name: application_name.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a setting for the startup packet, in force from the first statement on.
    pub fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Startup options as PostgreSQL splits them: spaces and backslashes are escaped by a
    /// backslash.
    pub(crate) fn options(&self) -> String {
        let escape = |text: &str| text.replace('\\', "\\\\").replace(' ', "\\ ");
        let settings = self.settings.iter();
        let words = settings.map(|(name, value)| format!("-c {name}={}", escape(value)));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Counts of what a server sent besides its answers.
///
/// One of these warnings matters: when a commit waits for a synchronous standby and the wait is
/// cancelled, the server answers that the commit succeeded, and only warns that no standby may have
/// it.
#[derive(Debug, Default)]
pub struct Notices {
    unreplicated: AtomicU64,
    others: AtomicU64,
}

impl Notices {
    /// Commits so far that were answered without the synchronous standbys they should have waited
    /// for. If it grows during a statement, the caller must not treat that statement as
    /// acknowledged.
    pub fn unreplicated(&self) -> u64 {
        self.unreplicated.load(Ordering::Acquire)
    }

    /// Other notices and warnings so far.
    pub fn others(&self) -> u64 {
        self.others.load(Ordering::Acquire)
    }

    fn hear(&self, notice: &DbError) {
        // See syncrep.c. The SQLSTATE is that of any warning, so the text decides. A translated
        // server sends other text but the same function name.
        let waiting = notice.routine() == Some("SyncRepWaitForLSN")
            || notice
                .message()
                .contains("wait for synchronous replication");
        let counter = if waiting {
            &self.unreplicated
        } else {
            &self.others
        };
        counter.fetch_add(1, Ordering::AcqRel);
    }
}

/// Has the system probe a silent server early, unless the connection string has values of its own.
pub(crate) fn set_keepalives(config: &mut Config) {
    // The driver does not tell whether the caller set the value, so its default counts as not set.
    if config.get_keepalives_idle() == DRIVER_KEEPALIVE_IDLE {
        config.keepalives_idle(KEEPALIVE_IDLE);
        config.keepalives_interval(KEEPALIVE_INTERVAL);
        config.keepalives_retries(KEEPALIVE_RETRIES);
    }
}

/// Connects.
///
/// # Errors
/// [`PgError::Connect`] with its class, [`PgError::Dsn`] and [`PgError::Tls`] when there was
/// nothing to try.
pub fn connect(dsn: &Dsn, session: &Session) -> Result<Client, PgError> {
    let mut config = dsn.config();
    if !session.application_name.is_empty() {
        config.application_name(&session.application_name);
    }
    if let Some(timeout) = session.connect_timeout {
        config.connect_timeout(timeout);
    } else if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    set_keepalives(&mut config);
    let mut options = config.get_options().unwrap_or_default().to_owned();
    if !session.settings.is_empty() {
        options = format!("{options} {}", session.options());
        config.options(options.trim());
    }
    let notices = session.notices.clone();
    config.notice_callback(move |notice| {
        if let Some(notices) = &notices {
            notices.hear(&notice);
        }
    });
    let target = dsn.to_string();
    let connected = match tls::connector(dsn)? {
        Some(connector) => config.connect(connector),
        None => config.connect(postgres::NoTls),
    };
    connected.map_err(|source| PgError::Connect {
        target,
        class: Class::of_connect(&source),
        source: Box::new(source),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_startup_options() {
        let mut session = Session::named("test");
        session.set("search_path", "a, b").set("lock_timeout", "5s");
        assert_eq!(
            session.options(),
            r"-c search_path=a,\ b -c lock_timeout=5s"
        );
    }
}
