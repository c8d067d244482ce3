//! Tokens, passwords and certificates, from files or the environment.

use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use dyno_ingest_clickhouse::Password;
use dyno_serve::rustls::ServerConfig;
use dyno_serve::tls;

/// Names the variable that holds a token, if no file is given.
const TOKEN_VARIABLE: &str = "DYNO_TOKEN";

/// Names the variable that holds the password of ClickHouse's user.
const CLICKHOUSE_VARIABLE: &str = "CLICKHOUSE_PASSWORD";
/// Names the variable that holds the key of a language model's endpoint.
const LLM_KEY_VARIABLE: &str = "DYNO_LLM_KEY";

/// Reads the token from a file, or else from the environment, without white space around it.
pub fn token(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    secret("token", file, TOKEN_VARIABLE)
}

/// Reads ClickHouse's password in the same way; it is empty if there is none.
pub fn clickhouse_password(file: Option<&Path>) -> anyhow::Result<Password> {
    let password = secret("password", file, CLICKHOUSE_VARIABLE)?;
    Ok(Password::new(password.unwrap_or_default()))
}

/// Reads the key of a language model's endpoint in the same way.
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
    // A file that the user names and that is empty is an error: a server would otherwise start
    // without a token, open to everyone.
    match text.trim() {
        "" => bail!("there is no {what} in {}", file.display()),
        secret => Ok(Some(secret.to_owned())),
    }
}

/// The certificate and key of a server; `None` without TLS.
pub fn server_tls(
    certificate: Option<&Path>,
    key: Option<&Path>,
) -> anyhow::Result<Option<Arc<ServerConfig>>> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(tls::server(certificate, key)?)),
        _ => Ok(None),
    }
}
