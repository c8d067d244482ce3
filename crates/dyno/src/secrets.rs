//! Tokens and certificates that commands are handed.

use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use dyno_pubsub_broker::serve::rustls::ServerConfig;
use dyno_pubsub_broker::serve::tls;

/// Holds a token, for those who do not want it in a file.
const TOKEN_VARIABLE: &str = "DYNO_TOKEN";

/// The token in a file, or else in the environment. White space around it does not count.
pub fn token(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let Some(file) = file else {
        let held = env::var(TOKEN_VARIABLE).ok();
        return Ok(held.filter(|token| !token.is_empty()));
    };
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the token in {}", file.display()))?;
    match text.trim() {
        "" => bail!("there is no token in {}", file.display()),
        token => Ok(Some(token.to_owned())),
    }
}

/// What a server proves itself with, where TLS is wanted.
pub fn server_tls(
    certificate: Option<&Path>,
    key: Option<&Path>,
) -> anyhow::Result<Option<Arc<ServerConfig>>> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(tls::server(certificate, key)?)),
        _ => Ok(None),
    }
}
