//! A connection on which several statements can be in flight: the driver's asynchronous client, for
//! callers with a runtime of their own. A [`Dsn`] and a [`Session`] mean the same as in
//! [`crate::connect`], except that notices are ignored.

use std::future::Future;
use std::pin::Pin;

use postgres::config::Host;
use tokio_postgres::{Client, Config, Error, NoTls};

use crate::class::Class;
use crate::connect::{CONNECT_TIMEOUT, KEEPALIVE_IDLE, Session};
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
    let from = dsn.config();
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
    config.keepalives_idle(KEEPALIVE_IDLE.min(from.get_keepalives_idle()));
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
