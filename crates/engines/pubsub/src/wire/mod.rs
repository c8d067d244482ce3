//! The bodies of the frames that clients and brokers exchange.
//!
//! Frames are those of `dyno_net`; this module defines what their verbs and bodies mean.
//! docs/formats/pubsub-verbs.md has the layout. All numbers are little-endian. A text or byte
//! string has its length in front, a list its count. What a peer sends is checked field by field:
//! nothing here panics, or allocates more than the bytes that are there.

mod admin;
mod client;
mod error;
mod fetch;
mod field;
mod group;
mod group_admin;
mod message;
mod placement;
mod produce;
mod queue;
mod session;
mod topic;

pub use admin::{
    AlterTopic, Altered, DeleteRecords, DescribeGroups, DropTopic, Dropped, GroupPartition,
    GroupState, Groups, ListTopics, PartitionState, RecordsDeleted, TopicState, Topics,
};
pub use client::{Client, ClientOptions};
pub use error::WireError;
pub use fetch::{Fetch, Fetched, FromWhere, ListOffsets, Offset, ROW_HEADER_BYTES, RowHead, Rows};
pub use field::{Added, Body, Field, Fields, Rest};
pub use group::{
    Assigned, Assignments, Commit, Committed, Cursor, Heartbeat, JoinGroup, Joined, LeaveGroup,
    Left, SkipLost, Skipped,
};
pub use group_admin::{
    AllGroups, AllKept, DropGroup, GroupDropped, GroupOf, GroupReset, KeptIs, ListGroups, ListKept,
    MovedTo, ResetGroup,
};
pub use message::{ANSWER, Ask, Message, Verb};
pub use placement::{PlacementIs, PlacementOf, ShareIs};
pub use produce::{NewProducer, Produce, Produced, ProducerId};
pub use queue::{ListQueues, QueueIs, Queues};
pub use session::{Counter, Failed, Hello, Status, StatusIs, Welcome};
pub use topic::{CreateTopic, Created, Metadata, PartitionIs, TopicIs};

#[cfg(test)]
mod tests;
