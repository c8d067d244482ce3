//! The client's side of a broker: connections by address, where each partition is, and what producers and
//! consumers do over them.

mod carrier;
mod flight;
mod source;

use std::collections::HashMap;
use std::time::{Duration, Instant};

pub(super) use carrier::Carrier;
pub(super) use source::Brokered;

use crate::error::{Code, Error, Result};
use crate::wire::{Ask, Client, ClientOptions, Metadata, TopicIs};

/// The least time between two questions where partitions are.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Connections to the brokers of one topic.
pub(super) struct Brokers {
    /// The broker that was named; it knows the others.
    first: String,
    topic: String,
    options: ClientOptions,
    open: HashMap<String, Client>,
    places: Option<TopicIs>,
    asked_at: Option<Instant>,
}

impl Brokers {
    /// Connects to a broker and finds the topic.
    pub fn open(first: &str, topic: &str, options: ClientOptions) -> Result<Brokers> {
        let mut brokers = Brokers {
            first: first.to_owned(),
            topic: topic.to_owned(),
            options,
            open: HashMap::new(),
            places: None,
            asked_at: None,
        };
        brokers.places()?;
        Ok(brokers)
    }

    /// The topic, as it was when last asked for.
    pub fn places(&mut self) -> Result<&TopicIs> {
        if self.places.is_none() {
            let places = self.ask_any(&Metadata {
                topic: self.topic.clone(),
            })?;
            self.asked_at = Some(Instant::now());
            self.places = Some(places);
        }
        self.places
            .as_ref()
            .ok_or_else(|| Error::new(Code::ServerLost, "no broker has answered"))
    }

    /// Partitions have moved: where to will be asked, but not too often.
    pub fn forget_places(&mut self) {
        if self
            .asked_at
            .is_none_or(|asked| asked.elapsed() >= ASK_AGAIN)
        {
            self.places = None;
        }
    }

    /// The broker that has a partition.
    ///
    /// # Errors
    /// `server-lost` while it has none, or when its broker cannot be reached.
    pub fn of_partition(&mut self, partition: i32) -> Result<Client> {
        let places = self.places()?;
        let address = places
            .partitions
            .iter()
            .find(|is| is.partition == partition)
            .map(|is| is.address.clone())
            .filter(|address| !address.is_empty());
        let found = match address {
            Some(address) => self.at(&address),
            None => {
                let text = format_args!("partition {partition} has no broker at present");
                Err(Error::new(Code::ServerLost, text))
            }
        };
        if found.is_err() {
            self.forget_places();
        }
        found
    }

    /// Asks any broker: the one that was named, or another that is known.
    pub fn ask_any<A: Ask>(&mut self, request: &A) -> Result<A::Answer> {
        let mut addresses = vec![self.first.clone()];
        addresses.extend(
            self.open
                .keys()
                .filter(|known| **known != self.first)
                .cloned(),
        );
        let mut last = None;
        for address in addresses {
            match self.at(&address).and_then(|client| client.ask(request)) {
                Err(error) if unreachable(&error) => last = Some(error),
                answered => return answered,
            }
        }
        Err(last.unwrap_or_else(|| Error::new(Code::ServerLost, "no broker is known")))
    }

    fn at(&mut self, address: &str) -> Result<Client> {
        if let Some(client) = self.open.get(address).filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        self.open.remove(address);
        let client = Client::connect(address, &self.options)?;
        self.open.insert(address.to_owned(), client.clone());
        Ok(client)
    }
}

/// Whether another broker may have an answer.
fn unreachable(error: &Error) -> bool {
    matches!(error.kind(), Code::ServerLost | Code::OutcomeUnknown)
}
