//! Which standbys a commit waits for.

use std::fmt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{check_name, failed};
use crate::cluster::Cluster;
use crate::connect::{Session, connect};
use crate::error::PgError;

/// How often the primary is asked whether enough standbys are streaming.
pub(super) const POLL: Duration = Duration::from_millis(10);

/// The value of `synchronous_standby_names`. Names are those that the standbys were made with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Synchronous {
    /// A commit does not wait for a standby.
    #[default]
    Off,
    /// A commit waits for the first `count` in the list that are connected.
    First {
        /// How many standbys must confirm.
        count: usize,
        /// Names in order of preference.
        names: Vec<String>,
    },
    /// A commit waits for any `count` standbys of the list.
    Any {
        /// How many standbys must confirm.
        count: usize,
        /// Names, whose order means nothing.
        names: Vec<String>,
    },
}

impl Synchronous {
    /// The value `FIRST count (names)`.
    pub fn first(count: usize, names: &[&str]) -> Self {
        Self::First {
            count,
            names: names.iter().map(ToString::to_string).collect(),
        }
    }

    /// The value `ANY count (names)`.
    pub fn any(count: usize, names: &[&str]) -> Self {
        Self::Any {
            count,
            names: names.iter().map(ToString::to_string).collect(),
        }
    }

    fn parts(&self) -> Option<(usize, &[String])> {
        match self {
            Self::Off => None,
            Self::First { count, names } | Self::Any { count, names } => Some((*count, names)),
        }
    }

    fn check(&self) -> Result<(), PgError> {
        let Some((count, names)) = self.parts() else {
            return Ok(());
        };
        names.iter().try_for_each(|name| check_name(name))?;
        if count == 0 || count > names.len() {
            let text = self.to_string();
            return Err(failed(
                &text,
                format!("cannot wait for {count} of {} standbys", names.len()),
            ));
        }
        Ok(())
    }
}

/// Formats the value of the setting.
impl fmt::Display for Synchronous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((count, names)) = self.parts() else {
            return Ok(());
        };
        let how = match self {
            Self::Any { .. } => "ANY",
            _ => "FIRST",
        };
        let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        write!(f, "{how} {count} ({})", names.join(", "))
    }
}

impl Cluster {
    /// Makes commits of this primary wait for standbys from when it returns. It returns once as
    /// many as are needed are streaming, so no commit hangs for lack of a standby.
    ///
    /// # Errors
    /// When the names are not valid, or too few of them are streaming after `timeout`; the setting
    /// stays then.
    pub fn set_synchronous(
        &mut self,
        wanted: &Synchronous,
        timeout: Duration,
    ) -> Result<(), PgError> {
        wanted.check()?;
        self.identity.synchronous = wanted.clone();
        self.identity.store(&self.home)?;
        self.reload()?;
        let mut client = connect(&self.dsn(), &Session::named("dyno standby"))?;
        let ask = "SELECT current_setting('synchronous_standby_names'), \
                   count(*) FROM pg_stat_replication \
                   WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')";
        let (text, deadline) = (wanted.to_string(), Instant::now() + timeout);
        let needed = wanted.parts().map_or(0, |(count, _)| count);
        loop {
            let row = client
                .query_one(ask, &[])
                .map_err(PgError::statement("ask whom a commit waits for"))?;
            let (has, streaming): (&str, i64) = (row.get(0), row.get(1));
            // A reload is asynchronous: the server may still have the old value. So this waits for
            // the new value too, and not only for enough standbys, which may have been streaming
            // before.
            if has == text && usize::try_from(streaming).is_ok_and(|count| count >= needed) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let reason =
                    format!("{streaming} of {needed} are streaming, and the server has {has:?}");
                return Err(failed(&text, reason));
            }
            std::thread::sleep(POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_spelled_as_the_server_wants_it() {
        assert_eq!(Synchronous::Off.to_string(), "");
        let any = Synchronous::any(1, &["a", "b"]);
        assert_eq!(any.to_string(), "ANY 1 (\"a\", \"b\")");
        assert!(any.check().is_ok());
        assert!(Synchronous::first(3, &["a", "b"]).check().is_err());
        assert!(Synchronous::first(1, &["a'b"]).check().is_err());
    }
}
