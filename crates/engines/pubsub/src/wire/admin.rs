//! Messages about whole topics and groups, for their administrators.

use super::message::{fields, message};
use super::{Added, Ask};
use crate::group::Lag;
use crate::key::Partitioner;
use crate::overview;
use crate::record::Codec;
use crate::topic::{Partition, Topic, TopicChanges, TopicOptions};

message! {
    ListTopics,
    /// Asks for all topics of the broker's database.
    ListTopics {}
}

fields! {
    /// A partition with its size.
    PartitionState {
        /// The number of the partition.
        partition: i32,
        /// The epoch of its broker.
        epoch: i64,
        /// The first offset that is still there.
        first_offset: i64,
        /// The offset that the next record will get.
        next_offset: i64,
        /// Bytes on the server's disk, indexes included.
        bytes: i64,
        /// The address of its broker; empty if it has none at present.
        address: String,
    }
}

fields! {
    /// A topic with its settings.
    TopicState {
        /// The number of the topic, by which frequent requests name it.
        topic_id: i32,
        /// The name of the topic.
        topic: String,
        /// How its rows are compressed: `none`, `lz4` or `zstd`.
        compression: String,
        /// How long records are kept, in milliseconds; -1 keeps them for ever.
        retention_ms: i64,
        /// How many bytes of each partition are kept; -1 keeps all.
        retention_bytes: i64,
        /// Offsets in a range, the unit in which records are dropped.
        range_records: i64,
        /// Whether nothing is dropped that a group has not committed.
        retain_for_groups: bool,
        /// The partitions, ordered by number.
        partitions: Vec<PartitionState>,
    }
}

message! {
    ListTopics,
    /// The answer to [`ListTopics`].
    Topics {
        /// The topics, ordered by name.
        topics: Vec<TopicState>,
        /// How keys find their partitions, for each topic in the same order; empty if all topics
        /// have the default.
        partitioners: Added<Vec<Partitioner>>,
    }
}

impl Ask for ListTopics {
    type Answer = Topics;
}

message! {
    AlterTopic,
    /// Asks to change the settings of a topic.
    AlterTopic {
        /// The name of the topic.
        topic: String,
        /// The new number of partitions, more than now; 0 leaves it as it is.
        partitions: i32,
        /// `none`, `lz4` or `zstd`; an empty text leaves it as it is.
        compression: String,
        /// The new limit in milliseconds; -1 keeps records for ever, 0 leaves it as it is.
        retention_ms: i64,
        /// The new limit in bytes; -1 keeps all, 0 leaves it as it is.
        retention_bytes: i64,
        /// Offsets in a range; 0 leaves it as it is.
        range_records: i64,
        /// 0 stands for no, 1 for yes, and 2 leaves it as it is.
        retain_for_groups: u8,
    }
}

message! {
    AlterTopic,
    /// The answer to [`AlterTopic`]: the topic is changed.
    Altered {}
}

impl Ask for AlterTopic {
    type Answer = Altered;
}

message! {
    DropTopic,
    /// Drops a topic with its records and groups.
    DropTopic {
        /// The name of the topic.
        topic: String,
    }
}

message! {
    DropTopic,
    /// The answer to [`DropTopic`]: the topic is gone.
    Dropped {}
}

impl Ask for DropTopic {
    type Answer = Dropped;
}

message! {
    DeleteRecords,
    /// Deletes the records of a partition before an offset. Only the partition's broker does that.
    DeleteRecords {
        /// The number of the topic.
        topic_id: i32,
        /// The number of the partition.
        partition: i32,
        /// The first offset that stays; -1 deletes all records that are there.
        before: i64,
    }
}

message! {
    DeleteRecords,
    /// The answer to [`DeleteRecords`].
    RecordsDeleted {
        /// The first offset that is left.
        first_offset: i64,
    }
}

impl Ask for DeleteRecords {
    type Answer = RecordsDeleted;
}

message! {
    DescribeGroups,
    /// Asks for all groups of a topic.
    DescribeGroups {
        /// The name of the topic.
        topic: String,
    }
}

fields! {
    /// One partition of a group.
    GroupPartition {
        /// The number of the partition.
        partition: i32,
        /// The member that owns it; empty if it has no owner.
        member: String,
        /// Changes of ownership so far.
        generation: i64,
        /// The first offset that is not committed.
        committed: i64,
        /// The end of the log.
        next_offset: i64,
        /// Records that are there and not committed.
        lag: i64,
        /// How many records may have been handed out twice because of changes of ownership.
        redelivered: i64,
        /// How many records retention removed before they were committed.
        lost: i64,
    }
}

fields! {
    /// A group with its cursors.
    GroupState {
        /// The name of the group.
        group: String,
        /// The cursors, ordered by the number of the partition.
        partitions: Vec<GroupPartition>,
    }
}

message! {
    DescribeGroups,
    /// All groups of the topic.
    Groups {
        /// The groups, ordered by name.
        groups: Vec<GroupState>,
    }
}

impl Ask for DescribeGroups {
    type Answer = Groups;
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

impl AlterTopic {
    /// Changes to the topic of this name.
    pub fn new(topic: &str, changes: &TopicChanges) -> AlterTopic {
        let partitions = changes.partitions.unwrap_or(0);
        AlterTopic {
            topic: topic.to_owned(),
            partitions: i32::try_from(partitions).unwrap_or(i32::MAX),
            compression: changes.compression.map_or("", Codec::name).to_owned(),
            retention_ms: changes.retention_ms.unwrap_or(0),
            retention_bytes: changes.retention_bytes.unwrap_or(0),
            range_records: changes.range_records.unwrap_or(0),
            retain_for_groups: changes.retain_for_groups.map_or(2, u8::from),
        }
    }

    /// What is to be changed.
    ///
    /// # Errors
    /// `bad-argument` for a compression that there is not.
    pub fn changes(&self) -> crate::error::Result<TopicChanges> {
        let set = |value: i64| (value != 0).then_some(value);
        let compression = match self.compression.as_str() {
            "" => None,
            name => Some(Codec::named(name)?),
        };
        Ok(TopicChanges {
            partitions: (self.partitions != 0).then(|| self.partitions.max(0).cast_unsigned()),
            compression,
            retention_ms: set(self.retention_ms),
            retention_bytes: set(self.retention_bytes),
            range_records: set(self.range_records),
            retain_for_groups: match self.retain_for_groups {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
        })
    }
}

impl Topics {
    /// The answer with these topics.
    pub fn new(topics: Vec<overview::TopicState>) -> Topics {
        let of_topic = |state: &overview::TopicState| state.topic.options.partitioner;
        let mut partitioners: Vec<Partitioner> = topics.iter().map(of_topic).collect();
        if partitioners.iter().all(|is| *is == Partitioner::default()) {
            partitioners.clear();
        }
        let topics = topics.into_iter().map(|state| TopicState {
            topic_id: state.topic.topic_id,
            topic: state.topic.name,
            compression: state.topic.options.compression.name().to_owned(),
            retention_ms: state.topic.options.retention_ms.unwrap_or(-1),
            retention_bytes: state.topic.options.retention_bytes.unwrap_or(-1),
            range_records: state.topic.options.range_records,
            retain_for_groups: state.topic.options.retain_for_groups,
            partitions: state
                .partitions
                .into_iter()
                .map(PartitionState::from_state)
                .collect(),
        });
        Topics {
            topics: topics.collect(),
            partitioners: Added(partitioners),
        }
    }

    /// The topics as the library has them.
    ///
    /// # Errors
    /// `bad-argument` for a compression that this version does not know.
    pub fn read(self) -> crate::error::Result<Vec<overview::TopicState>> {
        let kept = |value: i64| (value >= 0).then_some(value);
        let partitioners = self.partitioners.0.into_iter();
        let partitioners = partitioners.chain(std::iter::repeat(Partitioner::default()));
        let topics = self.topics.into_iter().zip(partitioners);
        let topics = topics.map(|(state, partitioner)| {
            let options = TopicOptions {
                partitions: u32::try_from(state.partitions.len()).unwrap_or(u32::MAX),
                compression: Codec::named(&state.compression)?,
                retention_ms: kept(state.retention_ms),
                retention_bytes: kept(state.retention_bytes),
                range_records: state.range_records,
                retain_for_groups: state.retain_for_groups,
                partitioner,
            };
            Ok(overview::TopicState {
                topic: Topic {
                    topic_id: state.topic_id,
                    name: state.topic,
                    options,
                    share: None,
                },
                partitions: state
                    .partitions
                    .into_iter()
                    .map(PartitionState::read)
                    .collect(),
                elsewhere: Vec::new(),
            })
        });
        topics.collect()
    }
}

impl PartitionState {
    fn from_state(state: overview::PartitionState) -> PartitionState {
        PartitionState {
            partition: state.partition.partition,
            epoch: state.partition.epoch,
            first_offset: state.partition.first_offset,
            next_offset: state.partition.next_offset,
            bytes: state.bytes,
            address: state.partition.broker_address.unwrap_or_default(),
        }
    }

    fn read(self) -> overview::PartitionState {
        overview::PartitionState {
            partition: Partition {
                partition: self.partition,
                first_offset: self.first_offset,
                next_offset: self.next_offset,
                epoch: self.epoch,
                broker_address: some(self.address),
            },
            bytes: self.bytes,
        }
    }
}

impl GroupState {
    pub(super) fn from_state(state: overview::GroupState) -> GroupState {
        let partition = |lag: Lag| GroupPartition {
            partition: lag.partition,
            member: lag.member.unwrap_or_default(),
            generation: lag.generation,
            committed: lag.committed,
            next_offset: lag.next_offset,
            lag: lag.lag,
            redelivered: lag.redelivered,
            lost: lag.lost,
        };
        GroupState {
            group: state.group,
            partitions: state.partitions.into_iter().map(partition).collect(),
        }
    }

    pub(super) fn read(self) -> overview::GroupState {
        let lag = |is: GroupPartition| Lag {
            partition: is.partition,
            member: some(is.member),
            generation: is.generation,
            committed: is.committed,
            next_offset: is.next_offset,
            lag: is.lag,
            redelivered: is.redelivered,
            lost: is.lost,
        };
        overview::GroupState {
            group: self.group,
            partitions: self.partitions.into_iter().map(lag).collect(),
        }
    }
}

impl Groups {
    /// The answer with these groups.
    pub fn new(groups: Vec<overview::GroupState>) -> Groups {
        Groups {
            groups: groups.into_iter().map(GroupState::from_state).collect(),
        }
    }

    /// The groups as the library has them.
    pub fn read(self) -> Vec<overview::GroupState> {
        self.groups.into_iter().map(GroupState::read).collect()
    }
}
