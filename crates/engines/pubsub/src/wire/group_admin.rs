//! What is kept, all groups, and what is done to one of them.

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
    /// One partition.
    KeptIs {
        /// Its topic's name.
        topic: String,
        /// Its number.
        partition: i32,
        /// Tables that hold it.
        ranges: i32,
        /// When its oldest record was appended, microseconds since 1970; -1: it is empty.
        oldest_at_us: i64,
    }
}

message! {
    ListKept,
    /// All partitions.
    AllKept {
        /// By topic and number.
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
        /// The topic's name.
        topic: String,
        /// The group.
        state: GroupState,
    }
}

message! {
    ListGroups,
    /// All groups.
    AllGroups {
        /// By topic and group.
        groups: Vec<GroupOf>,
    }
}

impl Ask for ListGroups {
    type Answer = AllGroups;
}

message! {
    ResetGroup,
    /// Sets a group to another place.
    ResetGroup {
        /// The topic's name.
        topic: String,
        /// The group's.
        group: String,
        /// The place.
        to: FromWhere,
        /// One partition; -1: all.
        partition: i32,
        /// Also where members live.
        force: bool,
    }
}

fields! {
    /// Where one partition was set.
    MovedTo {
        /// Its number.
        partition: i32,
        /// Where the group stood; -1: nowhere yet.
        was: i64,
        /// Where it stands now.
        committed: i64,
    }
}

message! {
    ResetGroup,
    /// It is set.
    GroupReset {
        /// By number.
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
        /// The topic's name.
        topic: String,
        /// The group's.
        group: String,
        /// Also where members live.
        force: bool,
    }
}

message! {
    DropGroup,
    /// It is gone.
    GroupDropped {}
}

impl Ask for DropGroup {
    type Answer = GroupDropped;
}

impl AllKept {
    /// The answer with these.
    pub fn of(kept: Vec<overview::Kept>) -> AllKept {
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

    /// They in the words of the library.
    pub fn read(self) -> Vec<overview::Kept> {
        let kept = self.kept.into_iter().map(|kept| overview::Kept {
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
    pub fn of(groups: Vec<(String, overview::GroupState)>) -> AllGroups {
        let groups = groups.into_iter().map(|(topic, state)| GroupOf {
            topic,
            state: GroupState::of(state),
        });
        AllGroups {
            groups: groups.collect(),
        }
    }

    /// The groups in the words of the library.
    pub fn read(self) -> Vec<(String, overview::GroupState)> {
        let groups = self.groups.into_iter();
        groups
            .map(|group| (group.topic, group.state.read()))
            .collect()
    }
}

impl ResetGroup {
    /// The request to do this to a group.
    pub fn of(topic: &str, group: &str, reset: &Reset) -> ResetGroup {
        ResetGroup {
            topic: topic.to_owned(),
            group: group.to_owned(),
            to: reset.to.into(),
            partition: reset.partition.unwrap_or(-1),
            force: reset.force,
        }
    }

    /// What is to be done.
    pub fn reset(&self) -> Reset {
        Reset {
            to: Start::from(self.to),
            partition: (self.partition >= 0).then_some(self.partition),
            force: self.force,
        }
    }
}

impl GroupReset {
    /// The answer with these places.
    pub fn of(moved: Vec<Moved>) -> GroupReset {
        let moved = moved.into_iter().map(|moved| MovedTo {
            partition: moved.partition,
            was: moved.was.unwrap_or(-1),
            committed: moved.committed,
        });
        GroupReset {
            moved: moved.collect(),
        }
    }

    /// The places in the words of the library.
    pub fn read(self) -> Vec<Moved> {
        let moved = self.moved.into_iter().map(|moved| Moved {
            partition: moved.partition,
            was: (moved.was >= 0).then_some(moved.was),
            committed: moved.committed,
        });
        moved.collect()
    }
}
