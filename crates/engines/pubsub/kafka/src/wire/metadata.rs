//! Which servers there are, and which has which partition.

use super::{api, structure};

structure! {
    /// A topic that is asked for.
    MetadataRequestTopic {
        name: String;
    }
}

structure! {
    /// Asks for servers and topics.
    MetadataRequest {
        /// The topics; all of them if it is null, or in version 0 if it is empty.
        topics: Option<Vec<MetadataRequestTopic>>;
        /// Whether to create topics that are missing, which is never done here.
        allow_auto_topic_creation: bool, since 4;
        /// Whether to list what the client may do, which is not known here.
        include_cluster_authorized_operations: bool, since 8;
        /// Whether to list what the client may do, which is not known here.
        include_topic_authorized_operations: bool, since 8;
    }
}

structure! {
    MetadataBroker {
        /// Its number, new with every start.
        node_id: i32;
        /// The host that clients connect to.
        host: String;
        port: i32;
        /// None: racks are not known here.
        rack: Option<String>, since 1;
    }
}

structure! {
    /// A partition, and the server that has it.
    MetadataPartition {
        /// 0, or that no server has it at present.
        error_code: i16;
        /// The number of the partition.
        partition_index: i32;
        /// The server; -1 for none.
        leader_id: i32;
        /// -1: epochs are not told to clients.
        leader_epoch: i32, since 7;
        /// The same server alone: copies are PostgreSQL's.
        replica_nodes: Vec<i32>;
        isr_nodes: Vec<i32>;
        offline_replicas: Vec<i32>, since 5;
    }
}

structure! {
    MetadataTopic {
        /// 0, or why there is no more to say.
        error_code: i16;
        name: String;
        is_internal: bool, since 1;
        /// All partitions, ordered by number.
        partitions: Vec<MetadataPartition>;
        /// What the client may do; the least number where it is not known.
        topic_authorized_operations: i32, since 8;
    }
}

structure! {
    MetadataResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 3;
        brokers: Vec<MetadataBroker>;
        /// The identity of the database.
        cluster_id: Option<String>, since 2;
        /// A server for administration: any of them will do.
        controller_id: i32, since 1;
        topics: Vec<MetadataTopic>;
        /// What the client may do; the least number where it is not known.
        cluster_authorized_operations: i32, since 8;
    }
}

// From version 10 on topics have identities, which those of PostgreSQL have not.
api!(MetadataRequest -> MetadataResponse, 3, 0..=9, flexible 9);

structure! {
    DescribeClusterRequest {
        /// Whether to list what the client may do, which is not known here.
        include_cluster_authorized_operations: bool;
    }
}

structure! {
    DescribeClusterBroker {
        /// Its number, new with every start.
        broker_id: i32;
        /// The host that clients connect to.
        host: String;
        port: i32;
        /// None: racks are not known here.
        rack: Option<String>;
    }
}

structure! {
    DescribeClusterResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// 0, or why they are not known.
        error_code: i16;
        /// Why they are not known.
        error_message: Option<String>;
        /// The identity of the database.
        cluster_id: String;
        /// A server for administration: any of them will do.
        controller_id: i32;
        brokers: Vec<DescribeClusterBroker>;
        /// What the client may do; the least number where it is not known.
        cluster_authorized_operations: i32;
    }
}

api!(DescribeClusterRequest -> DescribeClusterResponse, 60, 0..=0, flexible 0);
