//! Batches of columns to rows of the protocol, as they come.

use std::iter;
use std::sync::Arc;

use arrow_pg::datatypes::arrow_schema_to_pg_fields;
use arrow_pg::encode_recordbatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use futures::{StreamExt, stream};
use pgwire::api::ClientInfo;
use pgwire::api::portal::Format;
use pgwire::api::results::QueryResponse;
use pgwire::error::PgWireResult;
use pgwire::messages::data::DataRow;
use pgwire::types::format::FormatOptions;

use super::error;
use crate::serve::columns::{wide_batch, wide_schema};
use crate::serve::engine::Running;
use crate::serve::refusal::{Kind, Refusal};

/// Refuses several formats that are fewer than the columns: `pgwire` would look for the format of a
/// column beyond their end, which panics.
pub(super) fn check_formats(format: &Format, columns: &Schema) -> PgWireResult<()> {
    let columns = columns.fields().len();
    match format {
        Format::Individual(codes) if codes.len() < columns => Err(error(Refusal::new(
            Kind::Protocol,
            format!(
                "bind message has {} result formats but query has {columns} columns",
                codes.len()
            ),
        ))),
        _ => Ok(()),
    }
}

/// The answer of a statement that runs. Rows are made when the client takes them, so a slow one
/// makes the statement wait instead of filling memory.
pub(super) fn answer<C: ClientInfo>(
    client: &C,
    columns: &SchemaRef,
    running: Running,
    format: &Format,
) -> PgWireResult<QueryResponse> {
    check_formats(format, columns)?;
    let options = Arc::new(FormatOptions::from_client_metadata(client.metadata()));
    let columns = wide_schema(columns);
    let fields = arrow_schema_to_pg_fields(&columns, format, Some(options))?;
    let fields = Arc::new(fields);
    let shared = Arc::clone(&fields);
    let batches = stream::unfold(running, async |mut running| {
        let next = running.next().await?;
        Some((next, running))
    });
    let rows = batches.map(move |batch| {
        type Rows = Box<dyn Iterator<Item = PgWireResult<DataRow>> + Send + Sync>;
        let batch = batch.and_then(|batch| wide_batch(&batch, &columns));
        let rows: Rows = match batch {
            Ok(batch) => encode_recordbatch(Arc::clone(&shared), batch),
            Err(refusal) => Box::new(iter::once(Err(error(refusal)))),
        };
        stream::iter(rows)
    });
    Ok(QueryResponse::new(fields, rows.flatten()))
}
