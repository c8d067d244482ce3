//! What holds for the body of any verb, for an ordinary test and for the fuzzer.

use bytes::Bytes;
use dyno_pubsub::wire::{self, Message, Rows};

/// Bytes are the message of this verb, and then they are what it encodes to, or they are an error.
pub fn check(verb: u8, answer: bool, bytes: &[u8]) {
    let body = Bytes::copy_from_slice(bytes);
    match (verb, answer) {
        (1, false) => same::<wire::Hello>(body),
        (1, true) => same::<wire::Welcome>(body),
        (2, false) => same::<wire::Metadata>(body),
        (2, true) => same::<wire::TopicIs>(body),
        (3, false) => same::<wire::NewProducer>(body),
        (3, true) => same::<wire::ProducerId>(body),
        (4, false) => same::<wire::Produce>(body),
        (4, true) => same::<wire::Produced>(body),
        (5, false) => same::<wire::Fetch>(body),
        (5, true) => {
            if let Ok(fetched) = wire::Fetched::decode(body.clone()) {
                // Rows end, whatever they are made of.
                assert!(Rows::new(fetched.rows.bytes()).count() <= bytes.len());
            }
            same::<wire::Fetched>(body);
        }
        (6, false) => same::<wire::ListOffsets>(body),
        (6, true) => same::<wire::Offset>(body),
        (7, false) => same::<wire::JoinGroup>(body),
        (7, true) => same::<wire::Joined>(body),
        (8, false) => same::<wire::Heartbeat>(body),
        (8, true) => same::<wire::Assignments>(body),
        (9, false) => same::<wire::Commit>(body),
        (9, true) => same::<wire::Committed>(body),
        (10, false) => same::<wire::LeaveGroup>(body),
        (10, true) => same::<wire::Left>(body),
        (11, false) => same::<wire::CreateTopic>(body),
        (11, true) => same::<wire::Created>(body),
        (12, false) => same::<wire::Status>(body),
        (12, true) => same::<wire::StatusIs>(body),
        (13, false) => same::<wire::SkipLost>(body),
        (13, true) => same::<wire::Skipped>(body),
        (14, false) => same::<wire::ListTopics>(body),
        (14, true) => same::<wire::Topics>(body),
        (15, false) => same::<wire::AlterTopic>(body),
        (15, true) => same::<wire::Altered>(body),
        (16, false) => same::<wire::DropTopic>(body),
        (16, true) => same::<wire::Dropped>(body),
        (17, false) => same::<wire::DescribeGroups>(body),
        (17, true) => same::<wire::Groups>(body),
        (18, false) => same::<wire::PlacementOf>(body),
        (18, true) => same::<wire::PlacementIs>(body),
        (19, false) => same::<wire::ListQueues>(body),
        (19, true) => same::<wire::Queues>(body),
        (20, false) => same::<wire::ListKept>(body),
        (20, true) => same::<wire::AllKept>(body),
        (21, false) => same::<wire::ListGroups>(body),
        (21, true) => same::<wire::AllGroups>(body),
        (22, false) => same::<wire::ResetGroup>(body),
        (22, true) => same::<wire::GroupReset>(body),
        (23, false) => same::<wire::DropGroup>(body),
        (23, true) => same::<wire::GroupDropped>(body),
        (24, false) => same::<wire::DeleteRecords>(body),
        (24, true) => same::<wire::RecordsDeleted>(body),
        _ => same::<wire::Failed>(body),
    }
}

/// The value of an unused number of a place is let go, so the comparison is of messages, not of
/// bytes.
fn same<M: Message + PartialEq + std::fmt::Debug>(body: Bytes) {
    if let Ok(message) = M::decode(body) {
        let again = Bytes::from(message.parts().concat());
        assert_eq!(M::decode(again).as_ref(), Ok(&message));
    }
}
