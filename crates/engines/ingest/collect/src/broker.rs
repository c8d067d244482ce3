//! The address of the broker that messages come from.

use std::fmt;
use std::str::FromStr;

use crate::CollectError;

/// A broker and the topics to subscribe to, as `mqtt://USER@HOST:PORT/TOPIC`, or `mqtts://` before
/// the same.
#[derive(Clone, PartialEq, Eq)]
pub struct Broker {
    /// Whether the connection is encrypted with TLS.
    pub tls: bool,
    /// Name or IP address, without the brackets of an IPv6 address.
    pub host: String,
    /// Port; if the address has none, 1883, or 8883 with TLS.
    pub port: u16,
    /// The filter of topics: `+` stands for a level, `#` for all that follow.
    pub topic: String,
    /// The user to log in as, if the broker wants one.
    pub user: Option<String>,
    /// The password of the user. It never comes from the address, and no message shows it.
    pub password: Option<String>,
}

impl FromStr for Broker {
    type Err = CollectError;

    fn from_str(text: &str) -> Result<Broker, CollectError> {
        let wrong = |reason| CollectError::Address {
            text: shown(text),
            reason,
        };
        let (tls, rest) = match text.split_once("://") {
            Some(("mqtt", rest)) => (false, rest),
            Some(("mqtts", rest)) => (true, rest),
            _ => return Err(wrong("it begins with neither mqtt:// nor mqtts://")),
        };
        let (authority, topic) = rest
            .split_once('/')
            .ok_or_else(|| wrong("it has no topic"))?;
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => {
                return Err(wrong("a password does not belong into an address"));
            }
            Some((user, place)) => (Some(user.to_owned()), place),
            None => (None, authority),
        };
        let (host, port) = match place.rsplit_once(':') {
            // A bare IPv6 address has colons of its own; with a port it stands in brackets.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (
                host,
                port.parse()
                    .map_err(|_| wrong("its port is not a number"))?,
            ),
            _ => (place, if tls { 8883 } else { 1883 }),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        check_filter(topic).map_err(wrong)?;
        Ok(Broker {
            tls,
            host: host.to_owned(),
            port,
            topic: topic.to_owned(),
            user,
            password: None,
        })
    }
}

/// The address without the password that it should not have: everything from the first colon
/// behind the scheme to the last `@` is hidden, because a password may have both signs in it.
fn shown(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    match rest.rsplit_once('@') {
        Some((user, behind)) => match user.split_once(':') {
            Some((user, _password)) => format!("{scheme}{user}:...@{behind}"),
            None => text.to_owned(),
        },
        None => text.to_owned(),
    }
}

/// MQTT 3.1.1, 4.7: wildcards stand for whole levels, and `#` is the last one.
fn check_filter(topic: &str) -> Result<(), &'static str> {
    let levels: Vec<&str> = topic.split('/').collect();
    if topic.is_empty() || topic.len() > 65_535 || topic.contains('\0') {
        return Err("its topic is empty or too long");
    }
    for (at, level) in levels.iter().enumerate() {
        if level.contains(['#', '+']) && level.len() > 1 {
            return Err("in its topic + or # is not a level of its own");
        }
        if *level == "#" && at + 1 < levels.len() {
            return Err("in its topic # is not the last level");
        }
    }
    Ok(())
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "mqtts" } else { "mqtt" };
        write!(f, "{scheme}://{}:{}/{}", self.host, self.port, self.topic)
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let broker: Broker = "mqtt://mqtt.pskreporter.info/pskr/filter/v2/+/FT8/#"
            .parse()
            .unwrap();
        assert_eq!(
            (broker.host.as_str(), broker.port),
            ("mqtt.pskreporter.info", 1883)
        );
        assert_eq!(broker.topic, "pskr/filter/v2/+/FT8/#");
        let broker: Broker = "mqtt://me@[::1]:2883/a".parse().unwrap();
        assert_eq!((broker.host.as_str(), broker.port), ("::1", 2883));
        assert_eq!((broker.user.as_deref(), broker.tls), (Some("me"), false));
        let broker: Broker = "mqtts://host/a".parse().unwrap();
        assert_eq!((broker.port, broker.tls), (8883, true));
        assert_eq!(broker.to_string(), "mqtts://host:8883/a");
    }

    #[test]
    fn an_address_without_a_password_is_shown_as_it_is() {
        for text in ["mqtt://me@host", "mqtt://host:1", "mqtt://[::1]"] {
            let said = text.parse::<Broker>().unwrap_err().to_string();
            assert!(said.contains(text), "{said}");
        }
    }

    #[test]
    fn what_is_no_broker_is_refused_and_no_password_is_shown() {
        for (text, part) in [
            ("tcp://host/a", "begins with neither"),
            ("host/a", "begins with neither"),
            ("mqtt://host", "no topic"),
            ("mqtt://host/", "topic is empty"),
            ("mqtt:///a", "no host"),
            ("mqtt://host:port/a", "port"),
            ("mqtt://host/a/#/b", "last level"),
            ("mqtt://host/a+/b", "level of its own"),
            ("mqtt://me:secret@host/a", "password"),
            ("mqtt://me:secret:7@host/a", "password"),
            ("mqtt://me:secret@7@host/a", "password"),
            ("me:secret@host/a", "begins with neither"),
        ] {
            let said = text.parse::<Broker>().unwrap_err().to_string();
            assert!(said.contains(part) && !said.contains("secret"), "{said}");
        }
    }
}
