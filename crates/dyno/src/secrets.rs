//! Tokens, passwords and certificates that commands are handed.

use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use dyno_ingest_clickhouse::Password;
use dyno_serve::rustls::ServerConfig;
use dyno_serve::tls;

/// Holds a token, for those who do not want it in a file.
const TOKEN_VARIABLE: &str = "DYNO_TOKEN";

/// Holds the password of ClickHouse's user.
const CLICKHOUSE_VARIABLE: &str = "CLICKHOUSE_PASSWORD";
/// Holds the key of an endpoint of a language model.
const LLM_KEY_VARIABLE: &str = "DYNO_LLM_KEY";

/// The token in a file, or else in the environment. White space around it does not count.
pub fn token(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    secret("token", file, TOKEN_VARIABLE)
}

/// The password for ClickHouse in a file, or else in the environment; none where it has none.
pub fn clickhouse_password(file: Option<&Path>) -> anyhow::Result<Password> {
    let password = secret("password", file, CLICKHOUSE_VARIABLE)?;
    Ok(Password::new(password.unwrap_or_default()))
}

/// The key of an endpoint of a language model, in the same way.
pub fn llm_key(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    secret("key", file, LLM_KEY_VARIABLE)
}

fn secret(what: &str, file: Option<&Path>, variable: &str) -> anyhow::Result<Option<String>> {
    let Some(file) = file else {
        let held = env::var(variable).ok();
        return Ok(held.filter(|secret| !secret.is_empty()));
    };
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the {what} in {}", file.display()))?;
    match text.trim() {
        "" => bail!("there is no {what} in {}", file.display()),
        secret => Ok(Some(secret.to_owned())),
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
