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
use super::{BrokerJob, ChildError};

const POLL: Duration = Duration::from_millis(20);

/// Serves until it is told to stop.
pub fn serve(job: &BrokerJob, events: &Events) -> Result<(), ChildError> {
    let listen: Address = job.listen.parse().map_err(ChildError::refused("listen"))?;
    let mut options = Options::new(Dsn::parse(&job.dsn)?, listen);
    let advertise = job.advertise.parse();
    options.advertise = Some(advertise.map_err(ChildError::refused("advertise"))?);
    options.lease = Duration::from_millis(job.lease_ms);
    while !events.stopping() {
        match Broker::start(options.clone()) {
            Ok(mut broker) => {
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
            }
            // The server is away for a moment.
            Err(BrokerError::Log(error)) if error.retry() != Retry::Never => thread::sleep(POLL),
            Err(error) => return Err(ChildError::refused("start a broker")(error)),
        }
    }
    Ok(())
}

/// Serves clients of Kafka, however long the server is away; `None` if the checker asks to stop
/// before.
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
    while !events.stopping() {
        match KafkaServer::start(options.clone()) {
            Ok(server) => return Ok(Some(server)),
            Err(KafkaError::Log(error)) if error.retry() != Retry::Never => thread::sleep(POLL),
            Err(error) => return Err(ChildError::refused("serve clients of Kafka")(error)),
        }
    }
    Ok(None)
}
