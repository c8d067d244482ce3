//! The extended protocol: statements that are prepared, given parameters, and read in portions.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{Sink, SinkExt};
use pgwire::api::portal::{Portal, PortalExecutionState};
use pgwire::api::query::{ExtendedQueryHandler, send_partial_query_response};
use pgwire::api::results::{Response, Tag};
use pgwire::api::store::{Entry, PortalStore};
use pgwire::api::{ClientInfo, ClientPortalStore, DEFAULT_NAME, PgWireConnectionState};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::extendedquery::Execute;
use pgwire::messages::response::EmptyQueryResponse;

use super::simple::send_end;
use super::statements::{Prepared, StatementParser};
use super::{Connection, error, parameters, rows, settings};
use crate::serve::engine::Question;
use crate::serve::refusal::{Kind, Refusal};

#[async_trait]
impl ExtendedQueryHandler for Connection {
    type Statement = Prepared;
    type QueryParser = StatementParser;

    fn query_parser(&self) -> Arc<StatementParser> {
        Arc::clone(&self.shared.parser)
    }

    /// Sends rows as the statement yields them. The default collects all of them first, which for a
    /// client that asks for all rows is the whole answer in memory.
    async fn on_execute<C>(&self, client: &mut C, message: Execute) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if !matches!(client.state(), PgWireConnectionState::ReadyForQuery) {
            return Err(PgWireError::NotReadyForQuery);
        }
        client.set_state(PgWireConnectionState::QueryInProgress);
        let name = message.name.as_deref().unwrap_or(DEFAULT_NAME);
        // A negative number means all rows, as zero does.
        let most = usize::try_from(message.max_rows).unwrap_or(0);
        match client.portal_store().get_portal(name) {
            Some(Entry::Value(portal)) => self.execute(client, &portal, most).await?,
            Some(Entry::Empty) => {
                let empty = PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new());
                client.feed(empty).await?;
            }
            None => return Err(PgWireError::PortalNotFound(name.to_owned())),
        }
        client.set_state(PgWireConnectionState::ReadyForQuery);
        Ok(())
    }

    async fn do_query<C>(
        &self,
        client: &mut C,
        portal: &Portal<Prepared>,
        _max_rows: usize,
    ) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let prepared = &portal.statement.statement;
        if let Some(response) = settings::respond(client, &prepared.statement).await? {
            return Ok(response);
        }
        let question = Question {
            statement: (*prepared.statement).clone(),
            parameters: parameters::values(portal)?,
            time: settings::statement_timeout(client),
            cancelled: Some(self.cancellation()),
        };
        let started = self.shared.engine.start(question).await;
        let (columns, running) = started.map_err(error)?;
        // The client decodes rows by the columns that it was told when it prepared the statement.
        // A load may have brought other ones since.
        let same = columns.fields().len() == prepared.columns.fields().len()
            && columns
                .fields()
                .iter()
                .zip(prepared.columns.fields())
                .all(|(now, then)| now.data_type() == then.data_type());
        if !same {
            return Err(error(Refusal::new(
                Kind::NotSupported,
                "cached plan must not change result type: prepare the statement again",
            )));
        }
        let format = &portal.result_column_format;
        let answer = rows::answer(client, &prepared.columns, running, format)?;
        Ok(Response::Query(answer))
    }
}

impl Connection {
    async fn execute<C>(
        &self,
        client: &mut C,
        portal: &Arc<Portal<Prepared>>,
        most: usize,
    ) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let shared = portal.state();
        let mut state = shared.lock().await;
        if matches!(*state, PortalExecutionState::Initial) {
            match ExtendedQueryHandler::do_query(self, client, portal, most).await? {
                Response::Query(answer) => *state = PortalExecutionState::Suspended(answer),
                other => return send_end(client, other).await,
            }
        }
        match &mut *state {
            PortalExecutionState::Suspended(answer) => {
                let sent = send_partial_query_response(client, answer, most).await;
                // A portal that failed is finished: its statement does not run any more.
                if !matches!(sent, Ok(true)) {
                    *state = PortalExecutionState::Finished;
                }
                sent.map(|_| ())
            }
            _ => {
                let end = Tag::new("SELECT").with_rows(0);
                let end = PgWireBackendMessage::CommandComplete(end.into());
                Ok(client.feed(end).await?)
            }
        }
    }
}
