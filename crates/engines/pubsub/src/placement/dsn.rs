//! How to connect to another cluster: by what the home stores, which holds no password, or by what
//! the environment says.

use std::time::Duration;

use dyno_postgres::Dsn;

use crate::error::{Error, Result};

/// How long connecting to another cluster may take, unless its connection string says so. A cluster
/// that does not answer delays a consumer's other partitions for so long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The environment variable that replaces a cluster's connection string, for its password:
/// `DYNO_PUBSUB_DSN_EU_2` for `eu-2`.
pub fn variable(cluster: &str) -> String {
    let letters = cluster.chars().map(|c| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    });
    format!("DYNO_PUBSUB_DSN_{}", letters.collect::<String>())
}

/// The connection string of a cluster.
pub fn resolve(
    cluster: &str,
    stored: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Dsn> {
    let text = environment(&variable(cluster)).unwrap_or_else(|| stored.to_owned());
    Ok(Dsn::parse(&text)?.or_connect_timeout(CONNECT_TIMEOUT))
}

/// Refuses a connection string with a password, which would be stored for all users of the database
/// to read.
pub fn check(cluster: &str, text: &str) -> Result<()> {
    if Dsn::holds_password(text)? {
        let variable = variable(cluster);
        return Err(Error::bad_argument(format_args!(
            "the connection string of cluster {cluster} holds a password, and it would be stored for all to \
             read: leave it out, and let {variable} hold all of it, or PGPASSWORD the password"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_replaces_what_is_stored() {
        let stored = "host=far port=6000 user=ann dbname=log";
        let plain = resolve("eu-2", stored, |_| None).unwrap();
        assert_eq!(plain.to_string(), "ann@far:6000/log");
        assert_eq!(plain.config().get_connect_timeout(), Some(&CONNECT_TIMEOUT));
        let replaced = resolve("eu-2", stored, |name| {
            (name == "DYNO_PUBSUB_DSN_EU_2")
                .then(|| "postgres://bob:secret@near/log?connect_timeout=9".to_owned())
        });
        let replaced = replaced.unwrap();
        assert_eq!(replaced.to_string(), "bob@near:5432/log");
        let timeout = replaced.config().get_connect_timeout().copied();
        assert_eq!(timeout, Some(Duration::from_secs(9)));
    }

    #[test]
    fn a_password_is_not_stored() {
        check("b", "host=far user=ann dbname=log").unwrap();
        for text in ["postgres://ann:secret@far/log", "host=far password=secret"] {
            let error = check("b", text).unwrap_err();
            assert_eq!(error.code(), "bad-argument");
            assert!(error.text().contains("DYNO_PUBSUB_DSN_B"), "{error}");
            assert!(!error.text().contains("secret"), "{error}");
        }
    }
}
