//! What is asked seldom: topics, places, groups. Each is a call of the SQL functions that any other
//! client would use.

use std::sync::Arc;

use dyno_pubsub::record::Codec;
use dyno_pubsub::wire::{
    Assigned, Assignments, CreateTopic, Created, FromWhere, Heartbeat, JoinGroup, Joined,
    LeaveGroup, Left, ListOffsets, Metadata, NewProducer, Offset, PartitionIs, ProducerId,
    SkipLost, Skipped, TopicIs,
};
use dyno_pubsub::{Connection, Error, Result, Start, TopicOptions};

use crate::batch::Ack;
use crate::jobs::Jobs;
use crate::link::Link;

/// A request and whom to answer.
pub struct Asked {
    pub ack: Ack,
    pub request: Request,
}

/// What is asked.
pub enum Request {
    Metadata(Metadata),
    NewProducer(NewProducer),
    CreateTopic(CreateTopic),
    ListOffsets(ListOffsets),
    JoinGroup(JoinGroup),
    Heartbeat(Heartbeat),
    LeaveGroup(LeaveGroup),
    SkipLost(SkipLost),
}

/// Answers until the list is stopped. `made` is called when a topic was made.
pub fn run(jobs: &Jobs<Asked>, mut link: Link, made: impl Fn()) {
    while let Some(Asked { ack, request }) = jobs.next() {
        if let Err(error) = answer(&ack, request, &mut link, &made) {
            ack.refused(&error);
        }
    }
}

fn answer(ack: &Ack, request: Request, link: &mut Link, made: &impl Fn()) -> Result<()> {
    match request {
        Request::Metadata(ask) => ack.answer(&link.run(|c| metadata(c, &ask))?),
        Request::NewProducer(_) => ack.answer(&ProducerId {
            producer_id: link.run(Connection::new_producer)?,
        }),
        Request::CreateTopic(ask) => {
            ack.answer(&link.run(|c| create_topic(c, &ask))?);
            made();
        }
        Request::ListOffsets(ask) => ack.answer(&Offset {
            offset: link.run(|c| c.offset_of(&ask.topic, ask.partition, start(ask.from)))?,
        }),
        Request::JoinGroup(ask) => ack.answer(&link.run(|c| join(c, &ask))?),
        Request::Heartbeat(ask) => ack.answer(&link.run(|c| heartbeat(c, &ask))?),
        Request::LeaveGroup(ask) => {
            link.run(|c| leave(c, &ask))?;
            ack.answer(&Left {});
        }
        Request::SkipLost(ask) => ack.answer(&link.run(|c| skip_lost(c, &ask))?),
    }
    Ok(())
}

/// The place in the words of the library.
fn start(from: FromWhere) -> Start {
    match from {
        FromWhere::Earliest => Start::Earliest,
        FromWhere::Latest => Start::Latest,
        FromWhere::Offset(offset) => Start::Offset(offset),
        FromWhere::TimeUs(time_us) => Start::TimeUs(time_us),
    }
}

fn metadata(connection: &mut Connection, ask: &Metadata) -> Result<TopicIs> {
    let topic = connection.topic(&ask.topic)?;
    let partitions = connection.partitions(topic.topic_id)?;
    Ok(TopicIs {
        topic_id: topic.topic_id,
        compression: topic.options.compression.name().to_owned(),
        partitions: partitions
            .into_iter()
            .map(|is| PartitionIs {
                partition: is.partition,
                epoch: is.epoch,
                first_offset: is.first_offset,
                next_offset: is.next_offset,
                address: is.broker_address.unwrap_or_default(),
            })
            .collect(),
    })
}

fn create_topic(connection: &mut Connection, ask: &CreateTopic) -> Result<Created> {
    let kept = |value: i64| (value != -1).then_some(value);
    let options = TopicOptions {
        partitions: ask.partitions.max(0).cast_unsigned(),
        compression: Codec::named(&ask.compression)?,
        retention_ms: kept(ask.retention_ms),
        retention_bytes: kept(ask.retention_bytes),
        ..TopicOptions::default()
    };
    let topic_id = connection.create_topic(&ask.topic, &options)?;
    Ok(Created { topic_id })
}

fn join(connection: &mut Connection, ask: &JoinGroup) -> Result<Joined> {
    connection
        .client()
        .query_one(
            "SELECT pubsub.join_group($1, $2, $3, $4, $5, $6)",
            &[
                &ask.topic,
                &ask.group,
                &ask.member,
                &i64::from(ask.lease_ms),
                &start(ask.start).text(),
                &ask.when_lost,
            ],
        )
        .map(|row| Joined {
            group_id: row.get(0),
        })
        .map_err(Error::statement(format_args!("join group {:?}", ask.group)))
}

fn heartbeat(connection: &mut Connection, ask: &Heartbeat) -> Result<Assignments> {
    let rows = connection
        .client()
        .query(
            "SELECT partition, generation, committed, wanted FROM pubsub.group_heartbeat($1, $2, $3)",
            &[&ask.group_id, &ask.member, &ask.released],
        )
        .map_err(Error::statement("renew a member's lease"))?;
    let assigned = rows.iter().map(|row| Assigned {
        partition: row.get(0),
        generation: row.get(1),
        committed: row.get(2),
        wanted: row.get(3),
    });
    Ok(Assignments {
        assigned: assigned.collect(),
    })
}

fn leave(connection: &mut Connection, ask: &LeaveGroup) -> Result<()> {
    connection
        .client()
        .execute(
            "SELECT pubsub.group_leave($1, $2)",
            &[&ask.group_id, &ask.member],
        )
        .map(|_| ())
        .map_err(Error::statement("leave a group"))
}

fn skip_lost(connection: &mut Connection, ask: &SkipLost) -> Result<Skipped> {
    connection
        .client()
        .query_one(
            "SELECT pubsub.group_skip_lost($1, $2, $3, $4)",
            &[&ask.group_id, &ask.member, &ask.partition, &ask.generation],
        )
        .map(|row| Skipped {
            committed: row.get(0),
        })
        .map_err(Error::statement("skip what retention took"))
}

/// The list that requests wait on, with room for a burst of every client.
pub fn list() -> Arc<Jobs<Asked>> {
    Arc::new(Jobs::new(10_000))
}
