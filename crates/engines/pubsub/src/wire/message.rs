//! Verbs, and the messages that carry them.

use bytes::Bytes;

use super::{Body, Fields, WireError};

/// Set in the flags of an answer.
pub const ANSWER: u8 = 1;

/// What a frame asks for, or answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    /// The first request of a connection, in which the client introduces itself.
    Hello = 1,
    /// Where the partitions of a topic are.
    Metadata = 2,
    /// An id for an idempotent producer.
    NewProducer = 3,
    /// Appends records to a partition.
    Produce = 4,
    /// Reads rows of a partition, or waits for them.
    Fetch = 5,
    /// The offset of the earliest, the latest, or the first record from a time on.
    ListOffsets = 6,
    /// Joins a group, which is made if it does not exist.
    JoinGroup = 7,
    /// Renews a member's lease, and says what it owns.
    Heartbeat = 8,
    /// Stores how far a member has read.
    Commit = 9,
    /// Leaves a group, whose other members take over.
    LeaveGroup = 10,
    /// Creates a topic; its partitions find a broker within a moment.
    CreateTopic = 11,
    /// The counters of the broker.
    Status = 12,
    /// Moves a member over records that retention has removed.
    SkipLost = 13,
    /// All topics, with their settings and sizes.
    ListTopics = 14,
    /// Changes the settings of a topic.
    AlterTopic = 15,
    /// Drops a topic with its records and groups.
    DropTopic = 16,
    /// All groups of a topic, with their cursors.
    DescribeGroups = 17,
    /// Where the partitions of a topic are that lies on several clusters.
    Placement = 18,
    /// All queues, with what is in them.
    ListQueues = 19,
    /// How far back the records of each partition go.
    ListKept = 20,
    /// All groups of all topics.
    ListGroups = 21,
    /// Resets a group to another position.
    ResetGroup = 22,
    /// Drops a group with its cursors.
    DropGroup = 23,
    /// Deletes the records of a partition before an offset.
    DeleteRecords = 24,
    /// Only in answers: why a request was refused.
    Error = 127,
}

impl Verb {
    /// The verb with this number.
    pub fn from_number(number: u8) -> Option<Verb> {
        use Verb::*;
        [
            Hello,
            Metadata,
            NewProducer,
            Produce,
            Fetch,
            ListOffsets,
            JoinGroup,
            Heartbeat,
            Commit,
            LeaveGroup,
            CreateTopic,
            Status,
            SkipLost,
            ListTopics,
            AlterTopic,
            DropTopic,
            DescribeGroups,
            Placement,
            ListQueues,
            ListKept,
            ListGroups,
            ResetGroup,
            DropGroup,
            DeleteRecords,
            Error,
        ]
        .into_iter()
        .find(|verb| *verb as u8 == number)
    }
}

/// The body of a frame with a known verb.
pub trait Message: Sized {
    /// The verb of its frame.
    const VERB: Verb;

    /// Writes the message, as the parts of a frame's body.
    fn parts(&self) -> Vec<Bytes>;

    /// Reads a message from all bytes of a body.
    fn decode(body: Bytes) -> Result<Self, WireError>;
}

/// A request, with the type of its answer.
pub trait Ask: Message {
    /// The message that comes back, unless the request is refused with [`super::Failed`].
    type Answer: Message;
}

/// Declares a structure whose fields stand in the body in this order.
macro_rules! fields {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $kind,)*
        }

        impl $crate::wire::Field for $name {
            const LEAST_BYTES: usize = 0 $(+ <$kind as $crate::wire::Field>::LEAST_BYTES)*;

            #[allow(unused_variables, reason = "a message may have no fields")]
            fn write(&self, body: &mut $crate::wire::Body) {
                $($crate::wire::Field::write(&self.$field, body);)*
            }

            #[allow(unused_variables, reason = "a message may have no fields")]
            fn read(
                fields: &mut $crate::wire::Fields,
                field: &'static str,
            ) -> Result<Self, $crate::wire::WireError> {
                Ok($name {
                    $($field: $crate::wire::Field::read(fields, stringify!($field))?,)*
                })
            }
        }
    };
}

/// Declares a structure of [`fields`] that is the whole body of a verb.
macro_rules! message {
    ($verb:ident, $(#[$meta:meta])* $name:ident $fields:tt) => {
        $crate::wire::message::fields! { $(#[$meta])* $name $fields }

        impl $crate::wire::Message for $name {
            const VERB: $crate::wire::Verb = $crate::wire::Verb::$verb;

            fn parts(&self) -> Vec<bytes::Bytes> {
                $crate::wire::message::parts(self)
            }

            fn decode(body: bytes::Bytes) -> Result<Self, $crate::wire::WireError> {
                $crate::wire::message::decode(stringify!($name), body)
            }
        }
    };
}

pub(super) use {fields, message};

pub(super) fn parts(message: &impl super::Field) -> Vec<Bytes> {
    let mut body = Body::default();
    message.write(&mut body);
    body.into_parts()
}

pub(super) fn decode<T: super::Field>(name: &'static str, body: Bytes) -> Result<T, WireError> {
    let mut fields = Fields::new(name, body);
    let message = T::read(&mut fields, name)?;
    fields.end()?;
    Ok(message)
}
