//! Settings of a connection, and statements about transactions, behind which there is nothing.
//!
//! Drivers set and ask many of PostgreSQL's settings before they do anything else. Those that
//! change what is answered here have an effect (the time limit, the form of dates); the others are
//! remembered and shown again. Times are sent in UTC with their offset whatever time zone is set,
//! so that an answer does not depend on the client's.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use datafusion::sql::sqlparser::ast::{Expr, Set, Statement};
use futures::{Sink, SinkExt, stream};
use pgwire::api::results::{DataRowEncoder, FieldFormat, FieldInfo, QueryResponse, Response, Tag};
use pgwire::api::{ClientInfo, Type};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::TransactionStatus;
use pgwire::messages::startup::ParameterStatus;

use super::error;
use crate::serve::refusal::{Kind, Refusal};

/// The version whose catalogue is imitated, with the program that does it.
pub(super) const VERSION: &str = concat!("16.6 (dyno ", env!("CARGO_PKG_VERSION"), ")");

/// Settings that clients ask for and that have one value here.
const FIXED: [(&str, &str); 16] = [
    ("server_version", VERSION),
    ("server_version_num", "160006"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("transaction_read_only", "on"),
    ("default_transaction_read_only", "on"),
    ("transaction_isolation", "read committed"),
    ("default_transaction_isolation", "read committed"),
    ("is_superuser", "off"),
    ("max_identifier_length", "63"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("max_index_keys", "32"),
    ("block_size", "8192"),
];
/// Settings that a client may change, as they are before that.
const CHANGEABLE: [(&str, &str); 11] = [
    ("timezone", "UTC"),
    ("statement_timeout", "0"),
    ("search_path", "public"),
    ("datestyle", "ISO, MDY"),
    ("intervalstyle", "postgres"),
    ("extra_float_digits", "1"),
    ("bytea_output", "hex"),
    ("application_name", ""),
    ("client_min_messages", "notice"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
];
/// All of them, as they are in a new connection.
pub(in crate::serve) const SETTINGS: [&[(&str, &str)]; 2] = [&FIXED, &CHANGEABLE];
/// Settings whose change PostgreSQL reports to the client, under these names.
const REPORTED: [(&str, &str); 4] = [
    ("timezone", "TimeZone"),
    ("datestyle", "DateStyle"),
    ("intervalstyle", "IntervalStyle"),
    ("application_name", "application_name"),
];

/// The time limit that the client set; `None` without one.
pub(super) fn statement_timeout<C: ClientInfo>(client: &C) -> Option<Duration> {
    let text = client.metadata().get("statement_timeout")?;
    duration(text).filter(|limit| !limit.is_zero())
}

/// A duration as settings have it: a number with a unit, or of milliseconds.
fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(unit_ms).map(Duration::from_millis)
}

/// Whether a statement is one that [`respond`] answers without rows.
pub(super) fn is_setting(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Set(_)
            | Statement::StartTransaction { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Discard { .. }
            | Statement::Deallocate { .. }
            | Statement::Reset(_)
            | Statement::UNLISTEN { .. }
    )
}

/// The setting that a statement asks for.
pub(super) fn shown(statement: &Statement) -> Option<String> {
    let Statement::ShowVariable { variable } = statement else {
        return None;
    };
    let words: Vec<String> = variable
        .iter()
        .map(|word| word.value.to_lowercase())
        .collect();
    Some(match words.join(" ").as_str() {
        "time zone" => "timezone".to_owned(),
        "transaction isolation level" => "transaction_isolation".to_owned(),
        name => name.to_owned(),
    })
}

/// Answers a statement about settings or transactions; `None` for any other.
pub(super) async fn respond<C>(
    client: &mut C,
    statement: &Statement,
) -> PgWireResult<Option<Response>>
where
    C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
    C::Error: Debug,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    let status = client.transaction_status();
    let ends = matches!(
        statement,
        Statement::Commit { .. } | Statement::Rollback { .. }
    );
    // Drivers rely on a failed transaction staying failed: they send what follows without waiting.
    if status == TransactionStatus::Error && !ends {
        return Err(error(Refusal::new(
            Kind::FailedTransaction,
            "current transaction is aborted, commands ignored until end of transaction block",
        )));
    }
    if let Some(name) = shown(statement) {
        return show(client, &name).map(Some);
    }
    let response = match statement {
        Statement::Set(set) => {
            change(client, set).await?;
            Response::Execution(Tag::new("SET"))
        }
        Statement::StartTransaction { .. } if status == TransactionStatus::Idle => {
            Response::TransactionStart(Tag::new("BEGIN"))
        }
        Statement::StartTransaction { .. } => Response::Execution(Tag::new("BEGIN")),
        Statement::Commit { .. } if status != TransactionStatus::Error => {
            Response::TransactionEnd(Tag::new("COMMIT"))
        }
        Statement::Commit { .. } | Statement::Rollback { .. } => {
            Response::TransactionEnd(Tag::new("ROLLBACK"))
        }
        Statement::Discard { .. } => Response::Execution(Tag::new("DISCARD ALL")),
        Statement::Deallocate { .. } => Response::Execution(Tag::new("DEALLOCATE")),
        Statement::Reset(_) => Response::Execution(Tag::new("RESET")),
        Statement::UNLISTEN { .. } => Response::Execution(Tag::new("UNLISTEN")),
        _ => return Ok(None),
    };
    Ok(Some(response))
}

async fn change<C>(client: &mut C, set: &Set) -> PgWireResult<()>
where
    C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
    C::Error: Debug,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    let (name, value) = match set {
        Set::SingleAssignment {
            variable, values, ..
        } => {
            let values: Vec<String> = values.iter().map(text).collect();
            (variable.to_string().to_lowercase(), values.join(", "))
        }
        Set::SetTimeZone { value, .. } => ("timezone".to_owned(), text(value)),
        // The isolation of transactions and the encoding of names change nothing that is read here.
        _ => return Ok(()),
    };
    if FIXED.iter().any(|(fixed, _)| *fixed == name) {
        return Ok(());
    }
    let known = CHANGEABLE.iter().any(|(known, _)| *known == name);
    // A setting of an extension has a dot in its name and may be set before the extension is there.
    // Those of the engine itself would change limits.
    let engine = name.starts_with("datafusion.") || name.starts_with("dyno.");
    if engine || !(known || name.contains('.')) {
        return Err(error(Refusal::new(
            Kind::NoSetting,
            format!("unrecognized configuration parameter \"{name}\""),
        )));
    }
    if name == "statement_timeout" && duration(&value).is_none() {
        return Err(error(Refusal::new(
            Kind::Value,
            format!("invalid value for parameter \"statement_timeout\": \"{value}\""),
        )));
    }
    let reported = REPORTED.iter().find(|(reported, _)| *reported == name);
    client.metadata_mut().insert(name, value.clone());
    if let Some((_, title)) = reported {
        let status = ParameterStatus::new((*title).to_owned(), value);
        client
            .send(PgWireBackendMessage::ParameterStatus(status))
            .await?;
    }
    Ok(())
}

/// A value without the quotes in which a statement has it.
fn text(value: &Expr) -> String {
    let text = value.to_string();
    text.trim_matches(['\'', '"']).to_owned()
}

fn show<C: ClientInfo>(client: &C, name: &str) -> PgWireResult<Response> {
    let of = |list: &[(&str, &str)]| {
        let found = list.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let set = || client.metadata().get(name).cloned();
    let value = of(&FIXED).or_else(set).or_else(|| of(&CHANGEABLE));
    let value = value.ok_or_else(|| {
        error(Refusal::new(
            Kind::NoSetting,
            format!("unrecognized configuration parameter \"{name}\""),
        ))
    })?;
    let column = FieldInfo::new(name.to_owned(), None, None, Type::TEXT, FieldFormat::Text);
    let columns = Arc::new(vec![column]);
    let mut encoder = DataRowEncoder::new(Arc::clone(&columns));
    encoder.encode_field(&Some(value.as_str()))?;
    let row = Ok(encoder.take_row());
    let rows = stream::iter([row]);
    let mut response = QueryResponse::new(columns, rows);
    response.set_command_tag("SHOW");
    Ok(Response::Query(response))
}
