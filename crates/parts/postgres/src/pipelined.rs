//! A connection on which several statements can be in flight: the driver's asynchronous client, for
//! callers with a runtime of their own. A [`Dsn`] and a [`Session`] mean the same as in
//! [`crate::connect`], except that notices are ignored.

use std::future::Future;
use std::pin::Pin;

use postgres::config::Host;
use tokio_postgres::{Client, Config, Error, NoTls};

use crate::class::Class;
use crate::connect::{CONNECT_TIMEOUT, Session, set_keepalives};
use crate::dsn::{Dsn, SslMode};
use crate::error::PgError;
use crate::tls;

/// Drives the connection's I/O. It must run for as long as the client is used, and ends with the
/// connection.
pub type Driver = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Connects, and returns the client and the driver of the connection.
///
/// # Errors
/// As [`crate::connect`].
pub async fn connect_pipelined(dsn: &Dsn, session: &Session) -> Result<(Client, Driver), PgError> {
    let config = config(dsn, session);
    let failed = |source: Error| PgError::Connect {
        target: dsn.to_string(),
        class: Class::of_connect(&source),
        source: Box::new(source),
    };
    Ok(match tls::connector(dsn)? {
        Some(connector) => {
            let (client, connection) = config.connect(connector).await.map_err(failed)?;
            (client, Box::pin(connection))
        }
        None => {
            let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
            (client, Box::pin(connection))
        }
    })
}

/// The asynchronous driver's configuration. It is built anew, because the blocking driver's cannot
/// be converted.
fn config(dsn: &Dsn, session: &Session) -> Config {
    let mut from = dsn.config();
    set_keepalives(&mut from);
    let mut config = Config::new();
    for host in from.get_hosts() {
        match host {
            Host::Tcp(name) => config.host(name),
            Host::Unix(path) => config.host_path(path),
        };
    }
    for address in from.get_hostaddrs() {
        config.hostaddr(*address);
    }
    for port in from.get_ports() {
        config.port(*port);
    }
    if let Some(user) = from.get_user() {
        config.user(user);
    }
    if let Some(password) = from.get_password() {
        config.password(password);
    }
    if let Some(name) = from.get_dbname() {
        config.dbname(name);
    }
    if !session.application_name.is_empty() {
        config.application_name(&session.application_name);
    } else if let Some(name) = from.get_application_name() {
        config.application_name(name);
    }
    let wait = session
        .connect_timeout
        .or(from.get_connect_timeout().copied())
        .unwrap_or(CONNECT_TIMEOUT);
    config.connect_timeout(wait);
    config.keepalives(from.get_keepalives());
    config.keepalives_idle(from.get_keepalives_idle());
    if let Some(interval) = from.get_keepalives_interval() {
        config.keepalives_interval(interval);
    }
    if let Some(retries) = from.get_keepalives_retries() {
        config.keepalives_retries(retries);
    }
    if let Some(wait) = from.get_tcp_user_timeout() {
        config.tcp_user_timeout(*wait);
    }
    let options = format!(
        "{} {}",
        from.get_options().unwrap_or_default(),
        session.options()
    );
    if !options.trim().is_empty() {
        config.options(options.trim());
    }
    config.target_session_attrs(from.get_target_session_attrs());
    config.ssl_mode(match dsn.ssl_mode() {
        SslMode::Disable => tokio_postgres::config::SslMode::Disable,
        SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
        _ => tokio_postgres::config::SslMode::Require,
    });
    config
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn from_dsn(dsn: &str) -> Config {
        let dsn = Dsn::parse(dsn).expect("a connection string");
        config(&dsn, &Session::default())
    }

    #[test]
    fn a_dead_server_is_noticed_as_soon_as_on_a_blocking_connection() {
        let config = from_dsn("host=db");
        assert!(config.get_keepalives());
        assert_eq!(config.get_keepalives_idle(), Duration::from_secs(30));
        let probes = (
            config.get_keepalives_interval(),
            config.get_keepalives_retries(),
        );
        assert_eq!(probes, (Some(Duration::from_secs(10)), Some(3)));
    }

    #[test]
    fn the_connection_strings_own_keepalives_are_kept() {
        let config = from_dsn(
            "host=db keepalives=1 keepalives_idle=60 keepalives_interval=7 \
                         keepalives_retries=2 tcp_user_timeout=9",
        );
        assert_eq!(config.get_keepalives_idle(), Duration::from_secs(60));
        let probes = (
            config.get_keepalives_interval(),
            config.get_keepalives_retries(),
            config.get_tcp_user_timeout().copied(),
        );
        let seconds = |count| Some(Duration::from_secs(count));
        assert_eq!(probes, (seconds(7), Some(2), seconds(9)));
        assert!(!from_dsn("host=db keepalives=0").get_keepalives());
    }
}
