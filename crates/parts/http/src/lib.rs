//! The HTTP client for object stores, ClickHouse, endpoints of language models and published
//! archives.
//!
//! It blocks, so it belongs to a thread that may wait. TLS trusts what the system trusts. A status
//! of the server is not an error here, because only the caller knows what it means. Redirects are
//! followed only where the caller asks for it, because a request may carry a secret that is meant
//! for one host.
//!
//! ```
//! use std::time::Duration;
//!
//! let agent = dyno_http::agent(&dyno_http::Settings {
//!     whole: Duration::from_secs(2),
//!     ..dyno_http::Settings::default()
//! });
//! // Nothing listens there.
//! let error = agent.get("http://127.0.0.1:9/").call().unwrap_err();
//! let failure = dyno_http::Failure::from_error(&error);
//! assert!(!failure.lasting, "{}", failure.reason);
//! ```

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

pub use ureq;
use ureq::Error;
use ureq::tls::{RootCerts, TlsConfig};

/// Connections to one host that are kept for the next request.
const MOST_IDLE: usize = 64;

/// Time limits, and how far redirects are followed.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Time to connect, with the handshake of TLS.
    pub connect: Duration,
    /// Time of the whole request, to the end of the answer.
    pub whole: Duration,
    /// A connection that was idle for longer is not used again, because the server may be closing
    /// it.
    pub idle: Duration,
    /// The most redirects that are followed.
    pub redirects: u32,
}

impl Default for Settings {
    /// 10 s to connect, 60 s in all, 15 s idle, no redirects.
    fn default() -> Self {
        Settings {
            connect: Duration::from_secs(10),
            whole: Duration::from_secs(60),
            idle: Duration::from_secs(15),
            redirects: 0,
        }
    }
}

/// Makes a client that keeps connections open. Threads may share it.
#[must_use]
pub fn agent(settings: &Settings) -> ureq::Agent {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(provider)
        .build();
    ureq::Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(settings.redirects)
        .max_redirects_will_error(false)
        .timeout_connect(Some(settings.connect.min(settings.whole)))
        .timeout_global(Some(settings.whole))
        .max_idle_age(settings.idle)
        .max_idle_connections_per_host(MOST_IDLE)
        .max_idle_connections(4 * MOST_IDLE)
        .user_agent("dynolab")
        .build()
        .new_agent()
}

/// Why a request got no answer. The text never holds the address, which may be signed or hold a
/// password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Whether another attempt would fail in the same way.
    pub lasting: bool,
    /// A few words for a message.
    pub reason: String,
}

impl Failure {
    /// Reads what an error of the client means for another attempt.
    #[must_use]
    pub fn from_error(error: &Error) -> Self {
        let (lasting, reason) = match error {
            Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => (
                false,
                "connection refused: nothing listens there".to_owned(),
            ),
            // The handshake happens while bytes are read and written, so its errors come as theirs.
            Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                Some::<&rustls::Error>(tls) => (true, format!("TLS: {tls}")),
                None => (false, error.to_string()),
            },
            Error::Timeout(_) => (false, "no answer in time".to_owned()),
            Error::HostNotFound => (false, "the endpoint's host is not known".to_owned()),
            Error::ConnectionFailed => (false, "no connection".to_owned()),
            Error::Rustls(error) => (true, format!("TLS: {error}")),
            Error::Tls(error) => (true, format!("TLS: {error}")),
            Error::BodyExceedsLimit(_) => (true, "the answer is too long".to_owned()),
            Error::Protocol(_) => (false, "the answer is not HTTP".to_owned()),
            _ => (true, "the request could not be sent".to_owned()),
        };
        Failure { lasting, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_other_attempt_would_mend_is_told_apart() {
        let untrusted = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let handshake = std::io::Error::new(ErrorKind::InvalidData, untrusted);
        let failure = Failure::from_error(&Error::Io(handshake));
        assert!(failure.lasting, "{failure:?}");
        assert!(failure.reason.starts_with("TLS: "), "{failure:?}");
        let cut = Failure::from_error(&Error::Io(ErrorKind::ConnectionReset.into()));
        assert!(!cut.lasting, "{cut:?}");
    }
}
