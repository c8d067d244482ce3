//! The simple protocol: a text of statements, answered one after the other.

use std::fmt::Debug;

use async_trait::async_trait;
use datafusion::sql::sqlparser::ast::Statement;
use futures::{Sink, SinkExt};
use pgwire::api::portal::Format;
use pgwire::api::query::{
    SimpleQueryHandler, send_execution_response, send_query_response, send_ready_for_query,
};
use pgwire::api::results::Response;
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, PgWireConnectionState};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::EmptyQueryResponse;
use pgwire::messages::simplequery::Query;

use super::{Connection, error, rows, settings};
use crate::serve::engine::Question;

#[async_trait]
impl SimpleQueryHandler for Connection {
    /// Sends each answer before the next statement starts. The default starts all of them first,
    /// and a text of more statements than the server runs at once would wait for itself.
    async fn on_query<C>(&self, client: &mut C, query: Query) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if !matches!(client.state(), PgWireConnectionState::ReadyForQuery) {
            return Err(PgWireError::NotReadyForQuery);
        }
        client.set_state(PgWireConnectionState::QueryInProgress);
        let statements = self.shared.parser.parse(&query.query).map_err(error)?;
        if statements.is_empty() {
            let empty = PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new());
            client.feed(empty).await?;
        }
        for statement in statements {
            match self.respond(client, statement).await? {
                Response::Query(answer) => send_query_response(client, answer, true).await?,
                other => send_end(client, other).await?,
            }
        }
        client.set_state(PgWireConnectionState::ReadyForQuery);
        send_ready_for_query(client, client.transaction_status()).await
    }

    async fn do_query<C>(&self, client: &mut C, sql: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let mut responses = Vec::new();
        for statement in self.shared.parser.parse(sql).map_err(error)? {
            responses.push(self.respond(client, statement).await?);
        }
        Ok(responses)
    }
}

impl Connection {
    async fn respond<C>(&self, client: &mut C, statement: Statement) -> PgWireResult<Response>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if let Some(response) = settings::respond(client, &statement).await? {
            return Ok(response);
        }
        let question = Question {
            statement,
            parameters: None,
            time: settings::statement_timeout(client),
            cancelled: Some(self.cancellation()),
        };
        let started = self.shared.engine.start(question).await;
        let (columns, running) = started.map_err(error)?;
        let answer = rows::answer(client, &columns, running, &Format::UnifiedText)?;
        Ok(Response::Query(answer))
    }
}

/// Sends the end of a statement without rows, and keeps whether a transaction is open. There are no
/// transactions behind that, but drivers compare what they are told with what they asked.
pub(super) async fn send_end<C>(client: &mut C, response: Response) -> PgWireResult<()>
where
    C: ClientInfo + Sink<PgWireBackendMessage> + Unpin,
    C::Error: Debug,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    let status = client.transaction_status();
    let tag = match response {
        Response::TransactionStart(tag) => {
            client.set_transaction_status(status.to_in_transaction_state());
            tag
        }
        Response::TransactionEnd(tag) => {
            client.set_transaction_status(status.to_idle_state());
            tag
        }
        Response::Execution(tag) => tag,
        // No statement is answered by anything else here.
        _ => return Ok(()),
    };
    send_execution_response(client, tag).await
}
