//! Requests about what retention has left, about all groups, and changes of one group.

use super::Ask;
use super::admin::GroupState;
use super::fetch::FromWhere;
use super::message::{fields, message};
use crate::group_admin::{Moved, Reset};
use crate::overview;
use crate::start::Start;

message! {
    ListKept,
    /// Asks what of each partition of this server is kept.
    ListKept {}
}

fields! {
    /// What retention has left of one partition.
    KeptIs {
        /// The name of its topic.
        topic: String,
        /// The number of the partition.
        partition: i32,
        /// How many tables hold it.
        ranges: i32,
        /// When its oldest record was appended, microseconds since 1970; -1 if it is empty.
        oldest_at_us: i64,
    }
}

message! {
    ListKept,
    /// The answer to [`ListKept`].
    AllKept {
        /// The partitions, ordered by topic and number.
        kept: Vec<KeptIs>,
    }
}

impl Ask for ListKept {
    type Answer = AllKept;
}

message! {
    ListGroups,
    /// Asks for all groups of all topics.
    ListGroups {}
}

fields! {
    /// A group of a topic.
    GroupOf {
        /// The name of the topic.
        topic: String,
        /// The group with its cursors.
        state: GroupState,
    }
}

message! {
    ListGroups,
    /// The answer to [`ListGroups`].
    AllGroups {
        /// The groups, ordered by topic and name.
        groups: Vec<GroupOf>,
    }
}

impl Ask for ListGroups {
    type Answer = AllGroups;
}

message! {
    ResetGroup,
    /// Resets a group to another position.
    ResetGroup {
        /// The name of the topic.
        topic: String,
        /// The name of the group.
        group: String,
        /// The position where the group goes on.
        to: FromWhere,
        /// The only partition to reset; -1 stands for all.
        partition: i32,
        /// Whether to reset a group with living members, too.
        force: bool,
    }
}

fields! {
    /// Where one partition was set.
    MovedTo {
        /// The number of the partition.
        partition: i32,
        /// The offset that the group had committed; -1 if it had none yet.
        was: i64,
        /// The offset at which the group goes on.
        committed: i64,
    }
}

message! {
    ResetGroup,
    /// The answer to [`ResetGroup`]: the group is reset.
    GroupReset {
        /// The partitions that were set, ordered by number.
        moved: Vec<MovedTo>,
    }
}

impl Ask for ResetGroup {
    type Answer = GroupReset;
}

message! {
    DropGroup,
    /// Drops a group with its cursors.
    DropGroup {
        /// The name of the topic.
        topic: String,
        /// The name of the group.
        group: String,
        /// Whether to drop a group with living members, too.
        force: bool,
    }
}

message! {
    DropGroup,
    /// The answer to [`DropGroup`]: the group is gone.
    GroupDropped {}
}

impl Ask for DropGroup {
    type Answer = GroupDropped;
}

impl AllKept {
    /// The answer that lists these partitions.
    pub fn new(kept: Vec<overview::RetentionState>) -> AllKept {
        let kept = kept.into_iter().map(|kept| KeptIs {
            topic: kept.topic,
            partition: kept.partition,
            ranges: kept.ranges,
            oldest_at_us: kept.oldest_at_us.unwrap_or(-1),
        });
        AllKept {
            kept: kept.collect(),
        }
    }

    /// The partitions as the library has them.
    pub fn read(self) -> Vec<overview::RetentionState> {
        let kept = self.kept.into_iter().map(|kept| overview::RetentionState {
            topic: kept.topic,
            partition: kept.partition,
            ranges: kept.ranges,
            oldest_at_us: (kept.oldest_at_us >= 0).then_some(kept.oldest_at_us),
        });
        kept.collect()
    }
}

impl AllGroups {
    /// The answer with these groups, each with its topic.
    pub fn new(groups: Vec<(String, overview::GroupState)>) -> AllGroups {
        let groups = groups.into_iter().map(|(topic, state)| GroupOf {
            topic,
            state: GroupState::from_state(state),
        });
        AllGroups {
            groups: groups.collect(),
        }
    }

    /// The groups as the library has them.
    pub fn read(self) -> Vec<(String, overview::GroupState)> {
        let groups = self.groups.into_iter();
        groups
            .map(|group| (group.topic, group.state.read()))
            .collect()
    }
}

impl ResetGroup {
    /// The request to do this to a group.
    pub fn new(topic: &str, group: &str, reset: &Reset) -> ResetGroup {
        ResetGroup {
            topic: topic.to_owned(),
            group: group.to_owned(),
            to: reset.to.into(),
            partition: reset.partition.unwrap_or(-1),
            force: reset.force,
        }
    }

    /// The request as the library has it.
    pub fn reset(&self) -> Reset {
        Reset {
            to: Start::from(self.to),
            partition: (self.partition >= 0).then_some(self.partition),
            force: self.force,
        }
    }
}

impl GroupReset {
    /// The answer with these offsets.
    pub fn from_moved(moved: Vec<Moved>) -> GroupReset {
        let moved = moved.into_iter().map(|moved| MovedTo {
            partition: moved.partition,
            was: moved.was.unwrap_or(-1),
            committed: moved.committed,
        });
        GroupReset {
            moved: moved.collect(),
        }
    }

    /// The offsets as the library has them.
    pub fn read(self) -> Vec<Moved> {
        let moved = self.moved.into_iter().map(|moved| Moved {
            partition: moved.partition,
            was: (moved.was >= 0).then_some(moved.was),
            committed: moved.committed,
        });
        moved.collect()
    }
}
