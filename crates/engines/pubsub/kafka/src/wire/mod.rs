//! Kafka's messages as far as they are offered here, by the message definitions of Apache Kafka
//! (`clients/src/main/resources/common/message`).
//!
//! The crate `kafka-protocol` has all of them, but reserves memory by the lengths that a peer
//! states: four hostile bytes would end the process. So what this server reads is declared here,
//! and tests compare it with that crate in both directions.

mod admin;
mod configs;
mod fetch;
mod field;
mod group;
mod group_admin;
mod metadata;
mod offsets;
mod produce;
mod session;
mod transactions;

use bytes::{BufMut, Bytes, BytesMut};

pub use admin::*;
pub use configs::*;
pub use fetch::*;
pub use field::{Field, Reader, WireError, Writer};
pub use group::*;
pub use group_admin::*;
pub use metadata::*;
pub use offsets::*;
pub use produce::*;
pub use session::*;
pub use transactions::*;

/// An API that is offered, and its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    /// The number of the API in a request's header.
    pub key: i16,
    /// The first version that is offered.
    pub first: i16,
    /// The last version that is offered.
    pub last: i16,
    /// The first version in the flexible encoding, which may be later than the last one offered.
    pub flexible_since: i16,
}

/// A request, with the type of its response.
pub trait Request: Field {
    /// Its API.
    const API: Api;
    /// What answers it.
    type Response: Field;
}

macro_rules! offer {
    ($($request:ident)*) => {
        /// Everything that is offered, as ApiVersions lists it.
        pub const APIS: &[Api] = &[$($request::API),*];

        /// Reads a frame as whatever request it says it is; false if it is not one. For fuzz
        /// targets, which need no server.
        pub fn is_request(frame: Bytes) -> bool {
            let Ok((header, body)) = Header::read(frame) else {
                return false;
            };
            if header.api().is_none() {
                return false;
            }
            match header.key {
                $(key if key == $request::API.key => header.body::<$request>(body).is_ok(),)*
                _ => false,
            }
        }
    };
}

offer! {
    ProduceRequest
    FetchRequest
    ListOffsetsRequest
    MetadataRequest
    OffsetCommitRequest
    OffsetFetchRequest
    FindCoordinatorRequest
    JoinGroupRequest
    HeartbeatRequest
    LeaveGroupRequest
    SyncGroupRequest
    DescribeGroupsRequest
    ListGroupsRequest
    SaslHandshakeRequest
    ApiVersionsRequest
    CreateTopicsRequest
    DeleteTopicsRequest
    DeleteRecordsRequest
    InitProducerIdRequest
    AddPartitionsToTxnRequest
    AddOffsetsToTxnRequest
    EndTxnRequest
    TxnOffsetCommitRequest
    DescribeConfigsRequest
    AlterConfigsRequest
    SaslAuthenticateRequest
    CreatePartitionsRequest
    DeleteGroupsRequest
    IncrementalAlterConfigsRequest
    DescribeClusterRequest
}

/// What precedes the body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The number of the API.
    pub key: i16,
    /// The version of the request, and of its response.
    pub version: i16,
    /// The client's number for the request, which the response repeats.
    pub correlation_id: i32,
    /// What the client calls itself.
    pub client_id: Option<String>,
}

impl Header {
    /// Splits a frame into its header and the body of the request.
    ///
    /// # Errors
    /// If the frame ends early or its client id is not a text.
    pub fn read(frame: Bytes) -> Result<(Header, Bytes), WireError> {
        // The client id keeps its old encoding in every version of the header.
        let mut reader = Reader::new(frame, 0, false);
        let header = Header {
            key: Field::read(&mut reader)?,
            version: Field::read(&mut reader)?,
            correlation_id: Field::read(&mut reader)?,
            client_id: Field::read(&mut reader)?,
        };
        let body = reader.into_rest();
        if !header.is_flexible() {
            return Ok((header, body));
        }
        let mut tags = Reader::new(body, 0, true);
        tags.skip_tags()?;
        Ok((header, tags.into_rest()))
    }

    /// The API, if it is offered in the version that was asked for.
    pub fn api(&self) -> Option<Api> {
        let offered = APIS.iter().copied().find(|api| api.key == self.key)?;
        (offered.first..=offered.last)
            .contains(&self.version)
            .then_some(offered)
    }

    fn is_flexible(&self) -> bool {
        let api = APIS.iter().copied().find(|api| api.key == self.key);
        api.is_some_and(|api| self.version >= api.flexible_since)
    }

    /// Reads the body of the request. Bytes behind it are ignored, as Apache Kafka does: librdkafka
    /// leaves some behind a request for the metadata of all topics.
    ///
    /// # Errors
    /// If the bytes are not such a request.
    pub fn body<R: Request>(&self, body: Bytes) -> Result<R, WireError> {
        let flexible = self.version >= R::API.flexible_since;
        let mut reader = Reader::new(body, self.version, flexible);
        R::read(&mut reader)
    }

    /// A whole response, its length in front, in parts that follow each other.
    pub fn response<R: Request>(&self, response: &R::Response) -> Vec<Bytes> {
        let flexible = self.version >= R::API.flexible_since;
        let mut writer = Writer::new(self.version, flexible);
        response.write(&mut writer);
        let mut parts = writer.into_parts();
        // The response of ApiVersions has the old header in every version, because the client does
        // not know yet what the server speaks.
        let tagged = flexible && R::API.key != ApiVersionsRequest::API.key;
        let body_bytes: usize = parts.iter().map(Bytes::len).sum();
        let mut head = BytesMut::with_capacity(9);
        head.put_i32((4 + usize::from(tagged) + body_bytes) as i32);
        head.put_i32(self.correlation_id);
        if tagged {
            head.put_u8(0);
        }
        parts.insert(0, head.freeze());
        parts
    }
}

/// Declares a structure whose fields stand in this order. `since` and `until` are the versions
/// between which a field exists; outside of them it has its default.
macro_rules! structure {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$field_meta:meta])* $field:ident: $kind:ty
            $(, since $since:literal)? $(, until $until:literal)?;)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $kind,)*
        }

        impl $crate::wire::Field for $name {
            fn read(reader: &mut $crate::wire::Reader) -> Result<Self, $crate::wire::WireError> {
                let read = $name {
                    $($field: if reader.has(
                        $crate::wire::or!($($since)?; 0),
                        $crate::wire::or!($($until)?; i16::MAX),
                    ) {
                        $crate::wire::Field::read(reader)?
                    } else {
                        Default::default()
                    },)*
                };
                reader.skip_tags()?;
                Ok(read)
            }

            fn write(&self, writer: &mut $crate::wire::Writer) {
                $(if writer.has(
                    $crate::wire::or!($($since)?; 0),
                    $crate::wire::or!($($until)?; i16::MAX),
                ) {
                    $crate::wire::Field::write(&self.$field, writer);
                })*
                writer.end_tags();
            }
        }

        #[cfg(test)]
        impl $crate::wire::tests::Sample for $name {
            fn sample(random: &mut dyno_random::Random) -> Self {
                $name {
                    $($field: $crate::wire::tests::Sample::sample(random),)*
                }
            }
        }
    };
}

/// The first value if there is one, else the second.
macro_rules! or {
    ($given:literal; $default:expr) => {
        $given
    };
    (; $default:expr) => {
        $default
    };
}

/// Declares the API of a request: its number, the versions offered, the first flexible version.
macro_rules! api {
    ($request:ident -> $response:ident, $key:literal, $first:literal..=$last:literal, flexible $flexible:literal) => {
        impl $crate::wire::Request for $request {
            const API: $crate::wire::Api = $crate::wire::Api {
                key: $key,
                first: $first,
                last: $last,
                flexible_since: $flexible,
            };
            type Response = $response;
        }
    };
}

pub(crate) use {api, or, structure};

#[cfg(test)]
mod tests;
