//! Topics whose partitions lie on several clusters.

use super::message::{fields, message};
use super::{Added, Ask, PartitionIs};
use crate::key::Partitioner;

message! {
    Placement,
    /// Asks where the partitions of a topic are that lies on several clusters; Metadata is refused
    /// for it.
    PlacementOf {
        /// The name of the topic.
        topic: String,
    }
}

fields! {
    /// The partitions that another cluster has.
    ShareIs {
        /// The name under which the home knows the cluster.
        cluster: String,
        /// The numbers of these partitions.
        partitions: Vec<i32>,
        /// The addresses of its brokers, as far as they are known at present.
        addresses: Vec<String>,
    }
}

message! {
    Placement,
    /// A topic as the broker's own cluster has it.
    PlacementIs {
        /// 0 at home, which knows of the others; a share's number elsewhere.
        share: i32,
        /// Its number on this cluster, for the requests that come often.
        topic_id: i32,
        /// How its rows are to be compressed: `none`, `lz4` or `zstd`.
        compression: String,
        /// How many partitions it has on all clusters.
        all_partitions: i32,
        /// The partitions of this cluster, by number.
        partitions: Vec<PartitionIs>,
        /// The partitions of other clusters; only the home fills this in.
        elsewhere: Vec<ShareIs>,
        /// How keys find their partitions.
        partitioner: Added<Partitioner>,
    }
}

impl Ask for PlacementOf {
    type Answer = PlacementIs;
}
