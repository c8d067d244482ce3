//! Topics whose partitions lie on several clusters, so that a topic can be larger and faster than
//! one server.
//!
//! Each cluster has a topic of the same name with its share of the partitions. Everything that has
//! to change together lies together on one server: a partition's records, offsets, epoch and
//! producers, and each group's owners, generations and cursors of that partition. So an append and
//! a commit of a cursor are what they are without placement: one transaction on one server,
//! conditional on the epoch or the generation that it has. No transaction reaches over two
//! clusters, and a cluster that is dead stops its own partitions alone.
//!
//! The topic's home knows which partition is where. Clients ask it when they open, and a consumer
//! is a member of the group on each cluster.

mod create;
mod dsn;

use crate::connection::Connection;
use crate::error::{Code, Error, Result};
use crate::topic::{Topic, TopicChanges};
use dyno_postgres::Dsn;
use dyno_postgres::postgres::Row;

pub use create::NamedCluster;

/// The name of the home's share.
pub const HOME: &str = "home";

/// Where the partitions of a topic are.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The identity of the home's schema, which shares are known by.
    pub home: String,
    /// The shares on other clusters. The home has the partitions that are in none of them.
    pub elsewhere: Vec<Share>,
}

/// The partitions of a topic that one other cluster has.
#[derive(Debug, Clone)]
pub struct Share {
    /// The name under which the home remembers the cluster.
    pub cluster: String,
    /// How to connect to it.
    pub dsn: Dsn,
    /// The numbers of its partitions, in ascending order.
    pub partitions: Vec<i32>,
}

impl Placement {
    /// The partitions at home, of this many in all.
    pub fn at_home(&self, partitions: u32) -> Vec<i32> {
        let all = 0..i32::try_from(partitions).unwrap_or(i32::MAX);
        let away = |partition: &i32| {
            self.elsewhere
                .iter()
                .any(|s| s.partitions.contains(partition))
        };
        all.filter(|partition| !away(partition)).collect()
    }
}

impl Share {
    /// The addresses of the brokers that hold partitions of this share at present.
    ///
    /// # Errors
    /// `server-lost` and the like when the cluster cannot be reached.
    pub fn brokers(&self, topic: &str, home: &str) -> Result<Vec<String>> {
        let asked = Connection::open(&self.dsn).and_then(|mut connection| {
            let topic_id = connection.share_of(topic, home)?;
            connection.partitions(topic_id)
        });
        let partitions = asked.map_err(|error| at_cluster(&self.cluster, &error))?;
        let addresses = partitions.into_iter().filter_map(|is| is.broker_address);
        let mut addresses: Vec<String> = addresses.collect();
        addresses.sort_unstable();
        addresses.dedup();
        Ok(addresses)
    }
}

impl Connection {
    /// Where the partitions of a topic are; `None` if all of them are on this server.
    ///
    /// # Errors
    /// `placed-elsewhere` when this server is not the topic's home.
    pub fn placement(&mut self, topic: &Topic) -> Result<Option<Placement>> {
        match topic.share {
            None => return Ok(None),
            Some(0) => {}
            Some(_) => {
                let name = &topic.name;
                let text = format_args!(
                    "this server has only a share of topic {name:?}: connect to the topic's home"
                );
                return Err(Error::new(Code::PlacedElsewhere, text));
            }
        }
        let mut placement = Placement {
            home: self.identity()?,
            elsewhere: Vec::new(),
        };
        let rows = self
            .client()
            .query(
                "SELECT p.partition, c.name, c.dsn FROM pubsub.placements AS p JOIN pubsub.clusters AS c \
                 ON c.name = p.cluster WHERE p.topic_id = $1 ORDER BY c.name, p.partition",
                &[&topic.topic_id],
            )
            .map_err(Error::statement(format_args!("find the clusters of topic {:?}", topic.name)))?;
        for row in rows {
            placement.add(&row)?;
        }
        Ok(Some(placement))
    }

    /// The identity of this server's schema, as text. Its standbys have the same.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn identity(&mut self) -> Result<String> {
        self.client()
            .query_one("SELECT id::text FROM pubsub.identity", &[])
            .map(|row| row.get(0))
            .map_err(Error::statement("read the identity of the schema pubsub"))
    }

    /// The number of a topic of which this server has a share and another one is the home.
    pub(crate) fn share_of(&mut self, name: &str, home: &str) -> Result<i32> {
        self.check_schema()?;
        let row = self
            .client()
            .query_opt(
                "SELECT topic_id FROM pubsub.topics WHERE name = $1 AND home = $2::text::uuid",
                &[&name, &home],
            )
            .map_err(Error::statement(format_args!(
                "find the share of topic {name:?}"
            )))?;
        row.map(|row| row.get(0)).ok_or_else(|| {
            let text = format_args!("this cluster has no share of that topic {name:?}");
            Error::new(Code::UnknownTopic, text)
        })
    }

    /// Changes the shares on other clusters, before the home's settings change.
    pub(crate) fn alter_shares(&mut self, name: &str, changes: &TopicChanges) -> Result<()> {
        self.not_a_share(name)?;
        self.at_each_share(name, |share, _| {
            crate::topic::alter(share.client(), name, changes)
        })
    }

    /// Drops the shares on other clusters. The home's own is dropped last, so that an interrupted
    /// drop can be called again.
    pub(crate) fn drop_shares(&mut self, name: &str) -> Result<()> {
        self.not_a_share(name)?;
        self.at_each_share(name, |share, home| share.drop_share(name, home))
    }

    fn drop_share(&mut self, name: &str, home: &str) -> Result<()> {
        loop {
            let done = self
                .client()
                .query_one(
                    "SELECT pubsub.drop_share($1, $2::text::uuid)",
                    &[&name, &home],
                )
                .map_err(Error::statement(format_args!(
                    "drop the share of topic {name:?}"
                )))?;
            if done.get(0) {
                return Ok(());
            }
        }
    }

    /// Fails if this server has only a share of the topic, because only the home may do what is
    /// about to be done.
    fn not_a_share(&mut self, name: &str) -> Result<()> {
        let topic = self.topic(name)?;
        self.placement(&topic).map(|_| ())
    }

    /// Runs `act` at every other cluster that a topic lies on, if this server is its home.
    pub(crate) fn at_each_share(
        &mut self,
        name: &str,
        mut act: impl FnMut(&mut Connection, &str) -> Result<()>,
    ) -> Result<()> {
        let topic = self.topic(name)?;
        if topic.share != Some(0) {
            return Ok(());
        }
        let Some(placement) = self.placement(&topic)? else {
            return Ok(());
        };
        for share in &placement.elsewhere {
            // The clusters are visited one after the other, and the first failure ends the visit.
            // What was done stays done, so callers have to be repeatable.
            let done = Connection::open(&share.dsn)
                .and_then(|mut connection| act(&mut connection, &placement.home));
            done.map_err(|error| at_cluster(&share.cluster, &error))?;
        }
        Ok(())
    }
}

impl Placement {
    /// Adds one row of the table. Rows are ordered by cluster.
    fn add(&mut self, row: &Row) -> Result<()> {
        let (partition, cluster): (i32, String) = (row.get(0), row.get(1));
        match self.elsewhere.last_mut() {
            Some(last) if last.cluster == cluster => last.partitions.push(partition),
            _ => {
                let dsn = dsn::resolve(&cluster, row.get(2), |name| std::env::var(name).ok());
                self.elsewhere.push(Share {
                    dsn: dsn.map_err(|error| at_cluster(&cluster, &error))?,
                    cluster,
                    partitions: vec![partition],
                });
            }
        }
        Ok(())
    }
}

/// Adds the cluster's name to an error, unless it has it already.
pub(crate) fn at_cluster(cluster: &str, error: &Error) -> Error {
    let name = format!("cluster {cluster}: ");
    if error.text().starts_with(&name) {
        return error.clone();
    }
    let text = format_args!("{name}{}", error.text());
    Error::with_retry(error.kind(), error.retry(), text)
}
