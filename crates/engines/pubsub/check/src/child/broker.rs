//! A broker as a process of its own.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use dyno_net::Address;
use dyno_postgres::Dsn;
use dyno_pubsub::Retry;
use dyno_pubsub_broker::{Broker, BrokerError, Options};
use dyno_pubsub_kafka::{KafkaError, KafkaServer, Options as KafkaOptions};

use super::events::Events;
use super::{BrokerJob, ChildError, insist};

const POLL: Duration = Duration::from_millis(20);

/// Serves until it is told to stop.
pub fn serve(job: &BrokerJob, events: &Events) -> Result<(), ChildError> {
    let listen: Address = job.listen.parse().map_err(ChildError::refused("listen"))?;
    let mut options = Options::new(Dsn::parse(&job.dsn)?, listen);
    let advertise = job.advertise.parse();
    options.advertise = Some(advertise.map_err(ChildError::refused("advertise"))?);
    options.lease = Duration::from_millis(job.lease_ms);
    let is_passing =
        |error: &BrokerError| matches!(error, BrokerError::Log(e) if e.retry() != Retry::Never);
    let started = insist(events, "start a broker", is_passing, || {
        Broker::start(options.clone())
    })?;
    let Some(mut broker) = started else {
        return Ok(());
    };
    let mut kafka = match job.kafka {
        Some(listen) => serve_kafka(job, listen, events)?,
        None => None,
    };
    while !events.stopping() {
        thread::sleep(POLL);
    }
    // Before the broker, which it needs to answer what it has taken.
    if let Some(kafka) = &mut kafka {
        kafka.stop();
    }
    broker.stop();
    Ok(())
}

/// Serves clients of Kafka; `None` if the checker asks to stop before it can.
fn serve_kafka(
    job: &BrokerJob,
    listen: SocketAddr,
    events: &Events,
) -> Result<Option<KafkaServer>, ChildError> {
    // It reaches its own broker, too, by the proxy in front of that, so that commits are cut there.
    let broker: Address = job
        .advertise
        .parse()
        .map_err(ChildError::refused("advertise"))?;
    let mut options = KafkaOptions::new(Dsn::parse(&job.dsn)?, broker, listen);
    options.lease = Duration::from_millis(job.lease_ms);
    let is_passing =
        |error: &KafkaError| matches!(error, KafkaError::Log(e) if e.retry() != Retry::Never);
    insist(events, "serve clients of Kafka", is_passing, || {
        KafkaServer::start(options.clone())
    })
}
