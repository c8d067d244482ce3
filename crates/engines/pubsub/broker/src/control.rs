//! Infrequent requests: topics, offsets, groups. Each is a call of the SQL functions that any other
//! client would use.

use std::sync::Arc;

use dyno_net::Charge;
use dyno_pubsub::record::Codec;
use dyno_pubsub::wire::{
    Added, AllGroups, AllKept, AlterTopic, Altered, Assigned, Assignments, Commit, Committed,
    CreateTopic, Created, DeleteRecords, DescribeGroups, DropGroup, DropTopic, Dropped,
    GroupDropped, GroupReset, Groups, Heartbeat, JoinGroup, Joined, LeaveGroup, Left, ListGroups,
    ListKept, ListOffsets, ListQueues, ListTopics, Metadata, NewProducer, Offset, PartitionIs,
    PlacementIs, PlacementOf, ProducerId, Queues, RecordsDeleted, ResetGroup, ShareIs, SkipLost,
    Skipped, TopicIs, Topics,
};
use dyno_pubsub::{Code, Connection, Error, Membership, Result, TopicOptions, WhenLost};

use crate::batch::Ack;
use crate::commits::store;
use crate::error::{bad, stopping};
use crate::fair::Fair;
use crate::link::Link;
use crate::partition::Partition;

/// A request that waits, and where its answer goes.
pub struct PendingRequest {
    pub ack: Ack,
    pub request: Request,
    /// For the memory of a long request, until it is answered.
    pub charge: Option<Charge>,
}

/// A request to the control plane.
pub enum Request {
    Metadata(Metadata),
    NewProducer(NewProducer),
    CreateTopic(CreateTopic),
    ListOffsets(ListOffsets),
    JoinGroup(JoinGroup),
    Heartbeat(Heartbeat),
    /// Cursors that have to be on disk when they are answered.
    Commit(Commit),
    LeaveGroup(LeaveGroup),
    SkipLost(SkipLost),
    ListTopics(ListTopics),
    AlterTopic(AlterTopic),
    DropTopic(DropTopic),
    /// The partition is hosted by this broker.
    DeleteRecords(DeleteRecords, Arc<Partition>),
    DescribeGroups(DescribeGroups),
    Placement(PlacementOf),
    ListQueues(ListQueues),
    ListKept(ListKept),
    ListGroups(ListGroups),
    ResetGroup(ResetGroup),
    DropGroup(DropGroup),
}

/// The most requests of one connection and kind that wait. A further one holds its connection back.
const MOST_EACH: usize = 64;

/// Kinds of requests that must not wait for each other. Each has threads of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What keeps a group together. A heartbeat that comes late costs its member the partitions.
    Groups,
    /// What only reads topics, partitions, offsets, groups and queues.
    Topics,
    /// What creates, changes or drops a topic or a whole group, and may wait for locks that readers
    /// hold.
    Changes,
}

impl Kind {
    /// All kinds, with the number of their threads.
    pub const THREADS: [(Kind, usize); 3] =
        [(Kind::Groups, 2), (Kind::Topics, 2), (Kind::Changes, 1)];
}

impl Request {
    fn kind(&self) -> Kind {
        match self {
            Request::JoinGroup(_)
            | Request::Heartbeat(_)
            | Request::Commit(_)
            | Request::LeaveGroup(_)
            | Request::SkipLost(_) => Kind::Groups,
            Request::CreateTopic(_)
            | Request::AlterTopic(_)
            | Request::DropTopic(_)
            | Request::DeleteRecords(..)
            | Request::ResetGroup(_)
            | Request::DropGroup(_) => Kind::Changes,
            Request::Metadata(_)
            | Request::NewProducer(_)
            | Request::ListOffsets(_)
            | Request::ListTopics(_)
            | Request::DescribeGroups(_)
            | Request::Placement(_)
            | Request::ListQueues(_)
            | Request::ListKept(_)
            | Request::ListGroups(_) => Kind::Topics,
        }
    }
}

/// The requests that wait, by kind.
pub struct Requests {
    groups: Fair<PendingRequest>,
    topics: Fair<PendingRequest>,
    changes: Fair<PendingRequest>,
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            groups: Fair::new(MOST_EACH),
            topics: Fair::new(MOST_EACH),
            changes: Fair::new(MOST_EACH),
        }
    }
}

impl Requests {
    /// The requests of one kind.
    pub fn queue(&self, kind: Kind) -> &Fair<PendingRequest> {
        match kind {
            Kind::Groups => &self.groups,
            Kind::Topics => &self.topics,
            Kind::Changes => &self.changes,
        }
    }

    /// Puts a request into its connection's line, and blocks while the line is full.
    ///
    /// # Errors
    /// When the connection has ended or the broker stops.
    pub fn push(&self, connection: u64, pending: PendingRequest) -> Result<()> {
        let outbox = Arc::clone(&pending.ack.outbox);
        let fair = self.queue(pending.request.kind());
        fair.push(connection, pending, || !outbox.is_closed())
            .map_err(|_| stopping())
    }

    /// Refuses everything that waits and everything that comes later.
    pub fn stop(&self) {
        for (kind, _) in Kind::THREADS {
            for pending in self.queue(kind).stop() {
                pending.ack.refused(&stopping());
            }
        }
    }
}

/// Answers requests until they are stopped. `made` is called when a topic was created, changed or
/// dropped.
pub fn run(requests: &Fair<PendingRequest>, mut link: Link, made: impl Fn()) {
    while let Some(pending) = requests.next() {
        let PendingRequest {
            ack,
            request,
            charge: _charge,
        } = pending;
        if ack.outbox.is_closed() {
            // The client has gone, so nothing would read the answer. What it asked for is not done
            // either, because it cannot know whether it was.
            continue;
        }
        if let Err(error) = answer(&ack, request, &mut link, &made) {
            ack.refused(&error);
        }
    }
}

fn answer(ack: &Ack, request: Request, link: &mut Link, made: &impl Fn()) -> Result<()> {
    match request {
        Request::Metadata(ask) => ack.answer(&link.run_again(|c| metadata(c, &ask))?),
        Request::NewProducer(_) => ack.answer(&ProducerId {
            producer_id: link.run_again(Connection::new_producer)?,
        }),
        Request::CreateTopic(ask) => {
            // Not asked a second time: if the first attempt was committed, the second would say
            // that the name is taken.
            ack.answer(&link.run(|c| create_topic(c, &ask))?);
            made();
        }
        Request::ListOffsets(ask) => ack.answer(&Offset {
            offset: link.run_again(|c| c.offset_of(&ask.topic, ask.partition, ask.from.into()))?,
        }),
        Request::JoinGroup(ask) => ack.answer(&link.run_again(|c| join(c, ask.clone()))?),
        Request::Heartbeat(ask) => ack.answer(&link.run_again(|c| heartbeat(c, &ask))?),
        Request::Commit(ask) => ack.answer(&Committed {
            refused: link.run_again(|c| store(c, &ask))?,
        }),
        Request::LeaveGroup(ask) => {
            link.run(|c| c.group_leave(ask.group_id, &ask.member))?;
            ack.answer(&Left {});
        }
        Request::SkipLost(ask) => ack.answer(&Skipped {
            committed: link.run(|c| {
                c.group_skip_lost(ask.group_id, &ask.member, ask.partition, ask.generation)
            })?,
        }),
        Request::ListTopics(_) => {
            ack.answer(&Topics::new(link.run_again(Connection::topic_states_here)?));
        }
        Request::AlterTopic(ask) => {
            let changes = ask.changes()?;
            link.run(|c| c.alter_topic(&ask.topic, &changes))?;
            ack.answer(&Altered {});
            made();
        }
        Request::DropTopic(ask) => {
            link.run(|c| c.drop_topic(&ask.topic))?;
            ack.answer(&Dropped {});
            made();
        }
        Request::DeleteRecords(ask, partition) => {
            ack.answer(&delete_records(link, &ask, &partition)?);
        }
        Request::Placement(ask) => ack.answer(&link.run_again(|c| placement(c, &ask))?),
        Request::DescribeGroups(ask) => {
            ack.answer(&Groups::new(
                link.run_again(|c| c.group_states(&ask.topic))?,
            ));
        }
        Request::ListQueues(_) => {
            ack.answer(&Queues::new(link.run_again(Connection::queue_states)?));
        }
        Request::ListKept(_) => ack.answer(&AllKept::new(link.run_again(Connection::retention)?)),
        Request::ListGroups(_) => {
            ack.answer(&AllGroups::new(link.run_again(Connection::group_lags)?));
        }
        Request::ResetGroup(ask) => ack.answer(&GroupReset::from_moved(
            link.run(|c| c.reset_group(&ask.topic, &ask.group, &ask.reset()))?,
        )),
        Request::DropGroup(ask) => {
            link.run(|c| c.drop_group(&ask.topic, &ask.group, ask.force))?;
            ack.answer(&GroupDropped {});
        }
    }
    Ok(())
}

fn delete_records(
    link: &mut Link,
    ask: &DeleteRecords,
    partition: &Partition,
) -> Result<RecordsDeleted> {
    let before = Some(ask.before).filter(|before| *before != -1);
    // Not asked a second time: records that came meanwhile would be among "all" then.
    let first_offset = link.run(|c| c.delete_records(ask.topic_id, ask.partition, before))?;
    // The rows may be in memory still, from where fetches would be answered without asking the
    // database.
    partition.tail.lock().update_first_offset(first_offset);
    Ok(RecordsDeleted { first_offset })
}

fn metadata(connection: &mut Connection, ask: &Metadata) -> Result<TopicIs> {
    let topic = connection.topic(&ask.topic)?;
    if topic.share.is_some() {
        // A client that knows nothing of placement would take the partitions of this cluster for
        // all of them.
        let text = format_args!(
            "topic {:?} lies on several clusters: ask for its placement",
            topic.name
        );
        return Err(Error::new(Code::PlacedElsewhere, text));
    }
    Ok(TopicIs {
        topic_id: topic.topic_id,
        compression: topic.options.compression.name().to_owned(),
        partitions: partitions(connection, topic.topic_id)?,
        partitioner: Added(topic.options.partitioner),
    })
}

fn partitions(connection: &mut Connection, topic_id: i32) -> Result<Vec<PartitionIs>> {
    let partitions = connection.partitions(topic_id)?.into_iter();
    let partitions = partitions.map(|is| PartitionIs {
        partition: is.partition,
        epoch: is.epoch,
        first_offset: is.first_offset,
        next_offset: is.next_offset,
        address: is.broker_address.unwrap_or_default(),
    });
    Ok(partitions.collect())
}

fn placement(connection: &mut Connection, ask: &PlacementOf) -> Result<PlacementIs> {
    let topic = connection.topic(&ask.topic)?;
    let mut elsewhere = Vec::new();
    if topic.share.unwrap_or(0) == 0
        && let Some(placement) = connection.placement(&topic)?
    {
        for share in placement.elsewhere {
            elsewhere.push(ShareIs {
                // The brokers of a cluster that cannot be reached could not do anything either.
                addresses: share
                    .brokers(&topic.name, &placement.home)
                    .unwrap_or_default(),
                cluster: share.cluster,
                partitions: share.partitions,
            });
        }
    }
    Ok(PlacementIs {
        share: topic.share.unwrap_or(0),
        topic_id: topic.topic_id,
        compression: topic.options.compression.name().to_owned(),
        all_partitions: i32::try_from(topic.options.partitions).unwrap_or(i32::MAX),
        partitions: partitions(connection, topic.topic_id)?,
        elsewhere,
        partitioner: Added(topic.options.partitioner),
    })
}

fn create_topic(connection: &mut Connection, ask: &CreateTopic) -> Result<Created> {
    let kept = |value: i64| (value != -1).then_some(value);
    let options = TopicOptions {
        partitions: ask.partitions.max(0).cast_unsigned(),
        compression: Codec::named(&ask.compression)?,
        retention_ms: kept(ask.retention_ms),
        retention_bytes: kept(ask.retention_bytes),
        partitioner: ask.partitioner.0,
        ..TopicOptions::default()
    };
    let topic_id = connection.create_topic(&ask.topic, &options)?;
    Ok(Created { topic_id })
}

fn join(connection: &mut Connection, ask: JoinGroup) -> Result<Joined> {
    let membership = Membership {
        topic: ask.topic,
        group: ask.group,
        member: ask.member,
        lease_ms: i64::from(ask.lease_ms),
        start: ask.start.into(),
        when_lost: match ask.when_lost.as_str() {
            "skip" => WhenLost::Skip,
            "fail" => WhenLost::Fail,
            other => return Err(bad(format_args!("{other:?} is neither skip nor fail"))),
        },
    };
    let group_id = connection.join_group(&membership)?;
    Ok(Joined { group_id })
}

fn heartbeat(connection: &mut Connection, ask: &Heartbeat) -> Result<Assignments> {
    let owned = connection.group_heartbeat(ask.group_id, &ask.member, &ask.released)?;
    let assigned = owned.into_iter().map(|owned| Assigned {
        partition: owned.partition,
        generation: owned.generation,
        committed: owned.committed,
        wanted: owned.wanted,
    });
    Ok(Assignments {
        assigned: assigned.collect(),
    })
}
