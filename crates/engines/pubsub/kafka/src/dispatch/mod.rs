//! What each request does. A request begins when it is read, on the connection's reading thread;
//! what has to wait is left to the answer, on its writing thread.

mod configs;
mod deletion;
mod fetch;
mod groups;
mod interrupted;
mod metadata;
mod offsets;
mod produce;
mod sasl;
mod topics;
mod transactions;

use std::sync::Arc;

use bytes::Bytes;
use dyno_pubsub::wire::Client;
use parking_lot::Mutex;
use tracing::debug;

use crate::connection::{Answer, Pending};
use crate::error::ErrorCode;
use crate::shared::Shared;
use crate::wire::{
    APIS, AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, AlterConfigsRequest, ApiVersion,
    ApiVersionsRequest, ApiVersionsResponse, CreatePartitionsRequest, CreateTopicsRequest,
    DeleteGroupsRequest, DeleteRecordsRequest, DeleteTopicsRequest, DescribeClusterRequest,
    DescribeConfigsRequest, DescribeGroupsRequest, EndTxnRequest, FindCoordinatorRequest, Header,
    HeartbeatRequest, IncrementalAlterConfigsRequest, InitProducerIdRequest, LeaveGroupRequest,
    ListGroupsRequest, ListOffsetsRequest, MetadataRequest, OffsetCommitRequest,
    OffsetFetchRequest, Request, SaslAuthenticateRequest, SaslHandshakeRequest,
    TxnOffsetCommitRequest,
};
use fetch::Fetches;
use interrupted::Interrupted;
use produce::OwnProducers;

/// The state of one connection.
pub struct Session {
    shared: Arc<Shared>,
    peer: String,
    sasl: sasl::State,
    broker: Arc<BrokerLink>,
    own_producers: Arc<Mutex<OwnProducers>>,
    interrupted: Arc<Mutex<Interrupted>>,
    fetches: Arc<Mutex<Fetches>>,
}

/// The connection to the broker, opened when it is needed and again when it was lost.
#[derive(Default)]
struct BrokerLink(Mutex<Option<Client>>);

impl BrokerLink {
    fn client(&self, shared: &Shared) -> dyno_pubsub::Result<Client> {
        let mut link = self.0.lock();
        if let Some(client) = &*link
            && !client.is_closed()
        {
            return Ok(client.clone());
        }
        let client = shared.connect()?;
        *link = Some(client.clone());
        Ok(client)
    }
}

impl Drop for BrokerLink {
    fn drop(&mut self) {
        // Clones of the client may wait for answers still; without this the broker would keep the
        // connection until they come.
        if let Some(client) = self.0.get_mut() {
            client.close();
        }
    }
}

impl Session {
    pub fn new(shared: Arc<Shared>, peer: String) -> Session {
        let sasl = match shared.token {
            Some(_) => sasl::State::Handshake,
            None => sasl::State::Admitted,
        };
        Session {
            shared,
            peer,
            sasl,
            broker: Arc::default(),
            own_producers: Arc::default(),
            interrupted: Arc::default(),
            fetches: Arc::default(),
        }
    }

    /// Whether the client may ask for everything.
    pub fn is_admitted(&self) -> bool {
        self.sasl == sasl::State::Admitted
    }

    /// Begins a request; `None` if it cannot be answered, which ends the connection.
    pub fn begin(&mut self, frame: Bytes) -> Option<Pending> {
        // After a handshake of version 0 the next frame is the password alone. Read as a request it
        // would be one with a number that the password happens to begin with.
        if self.is_bare() {
            return self.authenticate_bare(&frame);
        }
        let (header, body) = Header::read(frame).ok()?;
        if header.api().is_none() {
            return unsupported(&header);
        }
        let is_for_strangers = [
            ApiVersionsRequest::API.key,
            SaslHandshakeRequest::API.key,
            SaslAuthenticateRequest::API.key,
        ];
        // Decided by the number alone: the body of a request that may not be made is never parsed.
        if !self.is_admitted() && !is_for_strangers.contains(&header.key) {
            debug!(
                "{} asks for API {} before it shows the token",
                self.peer, header.key
            );
            return None;
        }
        self.dispatch(header, body)
    }

    fn dispatch(&mut self, header: Header, body: Bytes) -> Option<Pending> {
        match header.key {
            0 => self.produce(header, body),
            1 => self.fetch(header, body),
            2 => self.now::<ListOffsetsRequest>(header, body, Session::list_offsets),
            3 => self.now::<MetadataRequest>(header, body, Session::metadata),
            8 => self.now::<OffsetCommitRequest>(header, body, Session::offset_commit),
            9 => self.now::<OffsetFetchRequest>(header, body, Session::offset_fetch),
            10 => self.now::<FindCoordinatorRequest>(header, body, Session::find_coordinator),
            11 => self.join_group(header, body),
            12 => self.now::<HeartbeatRequest>(header, body, Session::heartbeat),
            13 => self.now::<LeaveGroupRequest>(header, body, Session::leave_group),
            14 => self.sync_group(header, body),
            15 => self.now::<DescribeGroupsRequest>(header, body, Session::describe_groups),
            16 => self.now::<ListGroupsRequest>(header, body, Session::list_groups),
            17 => self.now::<SaslHandshakeRequest>(header, body, Session::sasl_handshake),
            18 => self
                .now::<ApiVersionsRequest>(header, body, |_, _, _| api_versions(ErrorCode::NONE)),
            19 => self.now::<CreateTopicsRequest>(header, body, Session::create_topics),
            20 => self.now::<DeleteTopicsRequest>(header, body, Session::delete_topics),
            21 => self.now::<DeleteRecordsRequest>(header, body, Session::delete_records),
            22 => self.now::<InitProducerIdRequest>(header, body, Session::init_producer_id),
            24 => self.now::<AddPartitionsToTxnRequest>(header, body, Session::add_partitions),
            25 => self.now::<AddOffsetsToTxnRequest>(header, body, Session::add_offsets),
            26 => self.now::<EndTxnRequest>(header, body, Session::end_transaction),
            28 => self.now::<TxnOffsetCommitRequest>(header, body, Session::stage_offsets),
            32 => self.now::<DescribeConfigsRequest>(header, body, Session::describe_configs),
            33 => self.now::<AlterConfigsRequest>(header, body, Session::replace_configs),
            36 => self.now::<SaslAuthenticateRequest>(header, body, Session::sasl_authenticate),
            37 => self.now::<CreatePartitionsRequest>(header, body, Session::create_partitions),
            42 => self.now::<DeleteGroupsRequest>(header, body, Session::delete_groups),
            44 => self.now::<IncrementalAlterConfigsRequest>(header, body, Session::alter_configs),
            60 => self.now::<DescribeClusterRequest>(header, body, Session::describe_cluster),
            _ => None,
        }
    }

    /// A request that is carried out before the next one is read.
    fn now<R: Request>(
        &mut self,
        header: Header,
        body: Bytes,
        act: impl FnOnce(&mut Session, &Header, R) -> R::Response,
    ) -> Option<Pending> {
        let request = self.read::<R>(&header, body)?;
        // Carried out now, and not when the answer is due: clients send the next request before
        // they have the answer, and it must find this one done.
        let response = act(self, &header, request);
        let parts = header.response::<R>(&response);
        Some(Box::new(move |_| Answer::Send(parts)))
    }

    fn read<R: Request>(&self, header: &Header, body: Bytes) -> Option<R> {
        let request = header.body::<R>(body);
        if let Err(error) = &request {
            let (key, version) = (header.key, header.version);
            debug!(
                "{} sends API {key} in version {version}: {error}",
                self.peer
            );
        }
        request.ok()
    }
}

/// A request in a version that is not offered. For ApiVersions the answer says what is, in the
/// version that every client reads; for others there is no form that the client would understand.
fn unsupported(header: &Header) -> Option<Pending> {
    if header.key != ApiVersionsRequest::API.key {
        debug!(
            "API {} in version {} is not offered",
            header.key, header.version
        );
        return None;
    }
    let first = Header {
        version: 0,
        ..header.clone()
    };
    let parts = first.response::<ApiVersionsRequest>(&api_versions(ErrorCode::UNSUPPORTED_VERSION));
    Some(Box::new(move |_| Answer::Send(parts)))
}

fn api_versions(error: ErrorCode) -> ApiVersionsResponse {
    let api_keys = APIS.iter().map(|api| ApiVersion {
        api_key: api.key,
        min_version: api.first,
        max_version: api.last,
    });
    ApiVersionsResponse {
        error_code: error.0,
        api_keys: api_keys.collect(),
        throttle_time_ms: 0,
    }
}
