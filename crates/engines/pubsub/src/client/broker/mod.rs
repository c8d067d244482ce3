//! The client's side of brokers: connections by address, where each partition is served, and what
//! producers and consumers do over them.

mod fetches;
mod flight;
mod source;
mod transport;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use source::Brokered;
pub(super) use transport::Transport;

use super::placed;
use super::source::Source;

use crate::error::{Code, Error, Result};
use crate::key::Partitioner;
use crate::placement::{HOME, at_cluster};
use crate::wire::{Ask, Client, ClientOptions, Metadata, PlacementIs, PlacementOf, TopicIs};

/// The least time between two requests for where partitions are served.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// What a client needs for one topic: the clusters that have partitions of it, each with the
/// numbers of these partitions and its brokers. Most topics have one cluster.
pub(super) struct Everywhere {
    pub partitions: u32,
    pub partitioner: Partitioner,
    pub clusters: Vec<(Vec<i32>, Brokers)>,
}

/// Connections to the brokers of one topic on one cluster.
pub(super) struct Brokers {
    /// The addresses that the caller named. Any broker knows the others of its cluster.
    first: Vec<String>,
    topic: String,
    options: ClientOptions,
    scope: Scope,
    open: HashMap<String, Client>,
    places: Option<TopicIs>,
    asked_at: Option<Instant>,
}

/// Which partitions of the topic these brokers serve.
enum Scope {
    /// All partitions of the topic.
    Whole,
    /// The partitions on the topic's home cluster.
    Home,
    /// The partitions on another cluster. The brokers of the home know that cluster's brokers.
    Elsewhere { cluster: String, home: Vec<String> },
}

impl Everywhere {
    /// Connects to a broker and finds the topic.
    pub fn open(first: &str, topic: &str, options: ClientOptions) -> Result<Everywhere> {
        let mut home = Brokers::new(vec![first.to_owned()], topic, &options, Scope::Whole);
        match home.places() {
            Ok(places) => {
                let partitioner = places.partitioner.0;
                let partitions = places.partitions.iter().map(|is| is.partition);
                return Ok(Everywhere {
                    partitions: u32::try_from(partitions.len()).unwrap_or(u32::MAX),
                    partitioner,
                    clusters: vec![(partitions.collect(), home)],
                });
            }
            // A broker refuses plain metadata of such a topic, because a client that knows nothing
            // of placement would take this cluster's partitions for all of them.
            Err(error) if error.kind() == Code::PlacedElsewhere => home.scope = Scope::Home,
            Err(error) => return Err(error),
        }
        let placement = home.ask_placement()?;
        if placement.share != 0 {
            let text = format_args!(
                "the broker at {first} has only a share of topic {topic:?}: name one of the topic's home"
            );
            return Err(Error::new(Code::PlacedElsewhere, text));
        }
        let partitions = u32::try_from(placement.all_partitions).unwrap_or(0);
        let at_home = placement.partitions.iter().map(|is| is.partition);
        let mut clusters = vec![(at_home.collect(), home)];
        for share in placement.elsewhere {
            let part = Scope::Elsewhere {
                cluster: share.cluster,
                home: vec![first.to_owned()],
            };
            let brokers = Brokers::new(share.addresses, topic, &options, part);
            clusters.push((share.partitions, brokers));
        }
        Ok(Everywhere {
            partitions,
            partitioner: placement.partitioner.0,
            clusters,
        })
    }
}

impl Brokers {
    fn new(first: Vec<String>, topic: &str, options: &ClientOptions, part: Scope) -> Brokers {
        Brokers {
            first,
            topic: topic.to_owned(),
            options: options.clone(),
            scope: part,
            open: HashMap::new(),
            places: None,
            asked_at: None,
        }
    }

    /// The name of the cluster that these brokers serve.
    pub fn cluster(&self) -> &str {
        match &self.scope {
            Scope::Elsewhere { cluster, .. } => cluster,
            Scope::Whole | Scope::Home => HOME,
        }
    }

    /// Adds the cluster's name to an error, unless it is the cluster that the caller named.
    pub fn named(&self, error: Error) -> Error {
        match &self.scope {
            Scope::Elsewhere { cluster, .. } => at_cluster(cluster, &error),
            Scope::Whole | Scope::Home => error,
        }
    }

    /// The partitions and their brokers, as they were when last asked for.
    pub fn places(&mut self) -> Result<&TopicIs> {
        if self.places.is_none() {
            let places = match &self.scope {
                Scope::Whole => self.ask_any(&Metadata {
                    topic: self.topic.clone(),
                })?,
                _ => {
                    let is = self.ask_placement()?;
                    if (is.share == 0) != matches!(self.scope, Scope::Home) {
                        let text = format_args!(
                            "the brokers of cluster {} have another share of topic {:?}",
                            self.cluster(),
                            self.topic
                        );
                        return Err(Error::new(Code::UnknownTopic, text));
                    }
                    TopicIs {
                        topic_id: is.topic_id,
                        compression: is.compression,
                        partitions: is.partitions,
                        partitioner: is.partitioner,
                    }
                }
            };
            self.asked_at = Some(Instant::now());
            self.places = Some(places);
        }
        self.places
            .as_ref()
            .ok_or_else(|| Error::new(Code::ServerLost, "no broker has answered"))
    }

    /// The partitions and their brokers, asked for now.
    pub fn places_now(&mut self) -> Result<&TopicIs> {
        self.places = None;
        self.places()
    }

    /// The topic as the cluster of these brokers has it.
    fn ask_placement(&mut self) -> Result<PlacementIs> {
        let topic = self.topic.clone();
        self.ask_any(&PlacementOf { topic })
    }

    /// Asks the home's brokers which brokers this cluster has now, if it is another cluster.
    /// Returns whether there are any.
    fn find_others(&mut self) -> Result<bool> {
        let Scope::Elsewhere { cluster, home } = &self.scope else {
            return Ok(false);
        };
        let mut at_home = Brokers::new(home.clone(), &self.topic, &self.options, Scope::Home);
        let mut shares = at_home.ask_placement()?.elsewhere.into_iter();
        let its = shares.find(|share| share.cluster == *cluster);
        let addresses = its.map(|share| share.addresses).unwrap_or_default();
        let found = !addresses.is_empty();
        if found {
            self.first = addresses;
        }
        Ok(found)
    }

    /// Notes that partitions have moved. The next request asks where to, unless that was asked a
    /// moment ago.
    pub fn forget_places(&mut self) {
        if self
            .asked_at
            .is_none_or(|asked| asked.elapsed() >= ASK_AGAIN)
        {
            self.places = None;
        }
    }

    /// A connection to the broker that serves a partition.
    ///
    /// # Errors
    /// `server-lost` while no broker serves it, or when its broker cannot be reached.
    pub fn client_for(&mut self, partition: i32) -> Result<Client> {
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
        // A broker that cannot be reached may be dead, and its partitions with another one by now.
        if found.is_err() {
            self.forget_places();
        }
        found
    }

    /// Asks any broker: one of those that were named, or another that is known. If no broker of
    /// another cluster can be reached, the home's brokers say which ones there are now.
    pub fn ask_any<A: Ask>(&mut self, request: &A) -> Result<A::Answer> {
        match self.ask_known(request) {
            Err(error) if unreachable(&error) && self.find_others().unwrap_or(false) => {
                self.ask_known(request)
            }
            answered => answered,
        }
    }

    fn ask_known<A: Ask>(&mut self, request: &A) -> Result<A::Answer> {
        let mut addresses = self.first.clone();
        let known = self.open.keys();
        addresses.extend(known.filter(|known| !self.first.contains(*known)).cloned());
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

/// The source of a topic: its brokers, or those of all clusters that it lies on.
pub(super) fn source(
    first: &str,
    topic: &str,
    options: ClientOptions,
    idle_pause: Duration,
) -> Result<Box<dyn Source>> {
    let mut all = Everywhere::open(first, topic, options)?.clusters;
    if all.len() == 1
        && let Some((_, brokers)) = all.pop()
    {
        return Ok(Box::new(Brokered::open(brokers)));
    }
    let parts = all.into_iter().map(|(partitions, brokers)| {
        let cluster = brokers.cluster().to_owned();
        placed::Share::new(&cluster, partitions, Box::new(Brokered::open(brokers)))
    });
    Ok(Box::new(placed::Placed::new(parts.collect(), idle_pause)))
}

/// Whether another broker may have an answer.
fn unreachable(error: &Error) -> bool {
    matches!(error.kind(), Code::ServerLost | Code::OutcomeUnknown)
}
