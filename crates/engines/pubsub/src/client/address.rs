//! The address of a server or of a broker, as a client is given it.

use dyno_postgres::Dsn;

use crate::error::{Error, Result};

/// Where a client connects to.
#[derive(Clone)]
pub enum Address {
    /// Direct mode: the client speaks SQL with PostgreSQL itself.
    Server(Box<Dsn>),
    /// A broker at `HOST:PORT` or `unix:PATH`.
    Broker(String),
}

impl Address {
    /// Reads `postgres://...`, `postgresql://...` or `host=... dbname=...` for a server, and
    /// `dyno://HOST:PORT` or `unix:PATH` for a broker.
    ///
    /// # Errors
    /// `bad-argument`.
    pub fn parse(text: &str) -> Result<Address> {
        if let Some(broker) = text.strip_prefix("dyno://") {
            let broker = broker.trim_end_matches('/');
            if broker.is_empty() {
                return Err(Error::bad_argument(format_args!(
                    "address {text:?} names no broker"
                )));
            }
            return Ok(Address::Broker(broker.to_owned()));
        }
        if text.starts_with("unix:") {
            return Ok(Address::Broker(text.to_owned()));
        }
        // Anything else with one of these signs is PostgreSQL's business, including the error for a
        // scheme that nothing knows.
        if text.contains("://") || text.contains('=') {
            return Ok(Address::Server(Box::new(Dsn::parse(text)?)));
        }
        Err(Error::bad_argument(format_args!(
            "address {text:?} is not one of postgres://..., host=..., dyno://HOST:PORT, unix:PATH"
        )))
    }
}

impl TryFrom<&str> for Address {
    type Error = Error;

    fn try_from(text: &str) -> Result<Address> {
        Address::parse(text)
    }
}

impl From<&Dsn> for Address {
    fn from(dsn: &Dsn) -> Address {
        Address::Server(Box::new(dsn.clone()))
    }
}

impl From<&Address> for Address {
    fn from(address: &Address) -> Address {
        address.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn forms() {
        let broker = |text| match Address::parse(text) {
            Ok(Address::Broker(at)) => at,
            _ => "no broker".to_owned(),
        };
        assert_eq!(broker("dyno://localhost:7000"), "localhost:7000");
        assert_eq!(broker("unix:/run/x"), "unix:/run/x");
        assert_eq!(broker("postgres://u@h/db"), "no broker");
        assert!(matches!(
            Address::parse("host=/tmp user=a"),
            Ok(Address::Server(_))
        ));
        for bad in ["", "localhost", "dyno://"] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
