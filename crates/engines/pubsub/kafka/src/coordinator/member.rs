//! One member of a group, and what it asks and is told.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::reply::Reply;
use crate::error::ErrorCode;

/// A request to enter the group, or to enter it again.
#[derive(Debug)]
pub struct Join {
    /// The member; empty for one that is new.
    pub member: String,
    /// A name of the member that outlives its process.
    pub instance: Option<String>,
    /// What its client calls itself, and its address, for people.
    pub client: Client,
    pub session: Duration,
    pub rebalance: Duration,
    pub protocol_type: String,
    /// Ways to share partitions that the member knows, best first.
    pub protocols: Vec<(String, Bytes)>,
    /// Whether the client knows that a new member is told its name first and joins with it, so that
    /// a client whose answer got lost does not leave a member behind.
    pub joins_twice: bool,
}

impl Join {
    /// About how many bytes of it the group would keep.
    pub(super) fn bytes(&self) -> usize {
        let instance = self.instance.as_ref().map_or(0, String::len);
        let names = self.member.len() + instance + self.protocol_type.len();
        self.client.bytes() + names + named_bytes(&self.protocols)
    }
}

/// How a request names the member that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The name that the group gave.
    pub member: &'a str,
    /// The name that outlives the process, if the member has one.
    pub instance: Option<&'a str>,
}

/// Who a member is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Client {
    pub id: String,
    pub host: String,
}

impl Client {
    fn bytes(&self) -> usize {
        self.id.len() + self.host.len()
    }
}

/// What a member is told when a generation begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    pub generation: i32,
    pub protocol: String,
    pub leader: String,
    pub member: String,
    /// All members; for the leader only.
    pub members: Vec<JoinedMember>,
}

/// A member as its leader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedMember {
    pub name: String,
    pub instance: Option<String>,
    /// What it says of itself.
    pub metadata: Bytes,
}

/// A refusal, with the name that a new member has to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotJoined {
    pub error: ErrorCode,
    pub member: String,
}

pub type JoinAnswer = Result<Joined, NotJoined>;
pub type SyncAnswer = Result<Bytes, ErrorCode>;

/// A member as its group knows it.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) client: Client,
    /// A name that outlives the process. Such a member keeps its partitions until its session has
    /// run out, so that a process which is restarted meanwhile causes no rebalance.
    pub(super) instance: Option<String>,
    pub(super) session: Duration,
    pub(super) rebalance: Duration,
    pub(super) protocols: Vec<(String, Bytes)>,
    /// Without a word of the member until then it is removed.
    pub(super) silent_until: Instant,
    pub(super) joining: Option<Reply<JoinAnswer>>,
    pub(super) syncing: Option<Reply<SyncAnswer>>,
    pub(super) assignment: Bytes,
}

/// About how many bytes names take with what is said under them. A client may send many that are
/// empty.
pub(super) fn named_bytes(named: &[(String, Bytes)]) -> usize {
    let bytes = |(name, said): &(String, Bytes)| name.len() + said.len();
    size_of_val(named) + named.iter().map(bytes).sum::<usize>()
}

impl Member {
    /// About how many bytes it holds, without its name.
    pub(super) fn bytes(&self) -> usize {
        let texts = self.client.bytes() + self.instance.as_ref().map_or(0, String::len);
        size_of::<Member>() + texts + named_bytes(&self.protocols) + self.assignment.len()
    }

    pub(super) fn knows(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|(name, _)| name == protocol)
    }

    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|(name, _)| name == protocol);
        found.map_or_else(Bytes::new, |(_, metadata)| metadata.clone())
    }

    pub(super) fn refuse(&mut self, error: ErrorCode, name: &str) {
        if let Some(joining) = self.joining.take() {
            joining.send(Err(NotJoined {
                error,
                member: name.to_owned(),
            }));
        }
        if let Some(syncing) = self.syncing.take() {
            syncing.send(Err(error));
        }
    }
}
