//! Where a server listens: `unix:PATH` or `HOST:PORT`.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::NetError;

/// The address of a listener, as users write it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A Unix socket, by the path of its file.
    Unix(PathBuf),
    /// A host, by name or number, and a port. Port 0 lets the system choose one.
    Tcp {
        /// Name or number of the host, an IPv6 number without its brackets.
        host: String,
        /// The port; 0 only for a listener.
        port: u16,
    },
}

impl Address {
    /// Whether only this machine can reach it. A host name other than `localhost` counts as
    /// reachable.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

impl FromStr for Address {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Address, NetError> {
        let wrong = |reason| NetError::Address {
            text: text.to_owned(),
            reason,
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err(wrong("a path follows unix:")),
                path => Ok(Address::Unix(PathBuf::from(path))),
            };
        }
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| wrong("write HOST:PORT or unix:PATH"))?;
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            return Err(wrong("put an IPv6 host in brackets, as [::1]:5433"));
        }
        let host = bare.unwrap_or(host);
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        Ok(Address::Tcp {
            host: host.to_owned(),
            port: port
                .parse()
                .map_err(|_| wrong("the port is not a number from 0 to 65535"))?,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_written() {
        for text in [
            "unix:/run/a b.sock",
            "localhost:5433",
            "10.0.0.1:0",
            "[::1]:80",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address_says_why() {
        for (text, reason) in [
            ("unix:", "a path follows"),
            ("localhost", "write HOST:PORT"),
            (":80", "host is missing"),
            ("::1:80", "brackets"),
            ("host:65536", "not a number"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn only_loopback_is_local() {
        let local = |text: &str| text.parse::<Address>().unwrap().is_local();
        assert!(
            local("unix:x") && local("127.0.0.9:1") && local("[::1]:1") && local("localhost:1")
        );
        assert!(!local("0.0.0.0:1") && !local("db.example:1"));
    }
}
