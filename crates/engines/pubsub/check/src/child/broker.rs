//! A broker as a process of its own.

use std::thread;
use std::time::Duration;

use dyno_net::Address;
use dyno_postgres::Dsn;
use dyno_pubsub::Retry;
use dyno_pubsub_broker::{Broker, BrokerError, Options};

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
                while !events.stopping() {
                    thread::sleep(POLL);
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
