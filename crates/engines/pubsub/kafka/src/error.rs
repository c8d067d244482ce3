//! Errors as Kafka's clients know them.

use dyno_pubsub::{Code, Error, Retry};

/// A number of Kafka's protocol ("Error codes" in its documentation).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub i16);

impl ErrorCode {
    pub const NONE: ErrorCode = ErrorCode(0);
    pub const UNKNOWN_SERVER_ERROR: ErrorCode = ErrorCode(-1);
    pub const OFFSET_OUT_OF_RANGE: ErrorCode = ErrorCode(1);
    pub const CORRUPT_MESSAGE: ErrorCode = ErrorCode(2);
    pub const UNKNOWN_TOPIC_OR_PARTITION: ErrorCode = ErrorCode(3);
    pub const LEADER_NOT_AVAILABLE: ErrorCode = ErrorCode(5);
    pub const NOT_LEADER_OR_FOLLOWER: ErrorCode = ErrorCode(6);
    pub const REQUEST_TIMED_OUT: ErrorCode = ErrorCode(7);
    pub const MESSAGE_TOO_LARGE: ErrorCode = ErrorCode(10);
    pub const OFFSET_METADATA_TOO_LARGE: ErrorCode = ErrorCode(12);
    pub const COORDINATOR_NOT_AVAILABLE: ErrorCode = ErrorCode(15);
    pub const NOT_COORDINATOR: ErrorCode = ErrorCode(16);
    pub const INVALID_TOPIC_EXCEPTION: ErrorCode = ErrorCode(17);
    pub const INVALID_REQUIRED_ACKS: ErrorCode = ErrorCode(21);
    pub const ILLEGAL_GENERATION: ErrorCode = ErrorCode(22);
    pub const INCONSISTENT_GROUP_PROTOCOL: ErrorCode = ErrorCode(23);
    pub const INVALID_GROUP_ID: ErrorCode = ErrorCode(24);
    pub const UNKNOWN_MEMBER_ID: ErrorCode = ErrorCode(25);
    pub const INVALID_SESSION_TIMEOUT: ErrorCode = ErrorCode(26);
    pub const REBALANCE_IN_PROGRESS: ErrorCode = ErrorCode(27);
    pub const UNSUPPORTED_SASL_MECHANISM: ErrorCode = ErrorCode(33);
    pub const ILLEGAL_SASL_STATE: ErrorCode = ErrorCode(34);
    pub const UNSUPPORTED_VERSION: ErrorCode = ErrorCode(35);
    pub const TOPIC_ALREADY_EXISTS: ErrorCode = ErrorCode(36);
    pub const INVALID_PARTITIONS: ErrorCode = ErrorCode(37);
    pub const INVALID_REPLICATION_FACTOR: ErrorCode = ErrorCode(38);
    pub const INVALID_REPLICA_ASSIGNMENT: ErrorCode = ErrorCode(39);
    pub const INVALID_CONFIG: ErrorCode = ErrorCode(40);
    pub const INVALID_REQUEST: ErrorCode = ErrorCode(42);
    pub const UNSUPPORTED_FOR_MESSAGE_FORMAT: ErrorCode = ErrorCode(43);
    pub const OUT_OF_ORDER_SEQUENCE_NUMBER: ErrorCode = ErrorCode(45);
    pub const DUPLICATE_SEQUENCE_NUMBER: ErrorCode = ErrorCode(46);
    pub const INVALID_PRODUCER_EPOCH: ErrorCode = ErrorCode(47);
    pub const INVALID_TXN_STATE: ErrorCode = ErrorCode(48);
    pub const INVALID_TRANSACTION_TIMEOUT: ErrorCode = ErrorCode(50);
    pub const KAFKA_STORAGE_ERROR: ErrorCode = ErrorCode(56);
    pub const SASL_AUTHENTICATION_FAILED: ErrorCode = ErrorCode(58);
    pub const NON_EMPTY_GROUP: ErrorCode = ErrorCode(68);
    pub const GROUP_ID_NOT_FOUND: ErrorCode = ErrorCode(69);
    pub const MEMBER_ID_REQUIRED: ErrorCode = ErrorCode(79);
    pub const GROUP_MAX_SIZE_REACHED: ErrorCode = ErrorCode(81);
    pub const FENCED_INSTANCE_ID: ErrorCode = ErrorCode(82);
    pub const INVALID_RECORD: ErrorCode = ErrorCode(87);
    pub const UNSTABLE_OFFSET_COMMIT: ErrorCode = ErrorCode(88);
    pub const PRODUCER_FENCED: ErrorCode = ErrorCode(90);

    /// What a failed append or read of a partition is to a client. Errors after which the same
    /// request may succeed become those that clients retry by themselves.
    pub fn for_partition(error: &Error) -> ErrorCode {
        match error.kind() {
            Code::UnknownTopic => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            Code::Fenced | Code::PlacedElsewhere => ErrorCode::NOT_LEADER_OR_FOLLOWER,
            Code::SequenceGap => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
            Code::OffsetOutOfRange => ErrorCode::OFFSET_OUT_OF_RANGE,
            Code::RecordTooLarge => ErrorCode::MESSAGE_TOO_LARGE,
            Code::Damaged => ErrorCode::CORRUPT_MESSAGE,
            Code::BadArgument => ErrorCode::INVALID_RECORD,
            Code::DiskFull | Code::ServerIo | Code::DataDamaged => ErrorCode::KAFKA_STORAGE_ERROR,
            _ => ErrorCode::otherwise(error),
        }
    }

    /// What a failed request about groups is to a client.
    pub fn for_group(error: &Error) -> ErrorCode {
        match error.kind() {
            Code::WrongGeneration => ErrorCode::NOT_COORDINATOR,
            Code::NameTaken => ErrorCode::INVALID_GROUP_ID,
            Code::UnknownTopic => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            _ if error.retry() == Retry::Never => ErrorCode::UNKNOWN_SERVER_ERROR,
            _ => ErrorCode::COORDINATOR_NOT_AVAILABLE,
        }
    }

    /// What a failed request about topics is to a client.
    pub fn for_topic(error: &Error) -> ErrorCode {
        match error.kind() {
            Code::UnknownTopic => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            Code::NameTaken => ErrorCode::TOPIC_ALREADY_EXISTS,
            Code::BadArgument => ErrorCode::INVALID_REQUEST,
            _ => ErrorCode::otherwise(error),
        }
    }

    fn otherwise(error: &Error) -> ErrorCode {
        match error.retry() {
            Retry::Never => ErrorCode::UNKNOWN_SERVER_ERROR,
            // Clients take this for a request that may have been carried out, and send it again.
            Retry::Safe | Retry::Unknown => ErrorCode::REQUEST_TIMED_OUT,
        }
    }
}
