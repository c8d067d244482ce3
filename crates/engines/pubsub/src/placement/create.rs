//! Creating a topic whose partitions lie on several clusters.

use super::{HOME, at_cluster, dsn};
use crate::connection::Connection;
use crate::error::{Code, Error, Result};
use crate::topic::{TopicOptions, partitions_number};
use dyno_postgres::postgres::Transaction;

/// A cluster that gets partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCluster {
    /// Its name, by the rule for topics. The name `home` stands for the server that is asked.
    pub name: String,
    /// How to connect to it, without a password. See `docs/pubsub.md` for the ways to give one.
    pub dsn: String,
}

/// A cluster that answered, and the partitions that it gets.
struct Reached<'a> {
    cluster: &'a NamedCluster,
    id: String,
    connection: Connection,
    partitions: Vec<i32>,
}

impl Connection {
    /// Creates a topic whose partitions go round robin to this server, its home, and to these
    /// clusters: partition 0 to the home, 1 to the first cluster, and so on. The clusters must have
    /// the schema. The home remembers them by name.
    ///
    /// # Errors
    /// `name-taken`, `bad-argument`; `server-lost` and the like when a cluster cannot be reached.
    /// Nothing is made then, or what was made is empty and is made anew by the next attempt.
    pub fn create_placed_topic(
        &mut self,
        name: &str,
        options: &TopicOptions,
        clusters: &[NamedCluster],
    ) -> Result<i32> {
        let partitions = partitions_number(options.partitions)?;
        if clusters.is_empty() || options.partitions as usize <= clusters.len() {
            let text = format_args!(
                "{partitions} partitions cannot be spread over the home and {} other clusters",
                clusters.len()
            );
            return Err(Error::bad_argument(text));
        }
        let home = self.identity()?;
        // All clusters are reached before anything is stored, so that a typing error in the last
        // connection string leaves nothing behind.
        let mut reached: Vec<Reached<'_>> = Vec::new();
        for cluster in clusters {
            let new = reach(cluster).map_err(|error| at_cluster(&cluster.name, &error))?;
            // Two connection strings can lead to the same server, where two shares of the topic
            // would need the same name.
            if new.id == home || reached.iter().any(|r| r.id == new.id) {
                let text = format_args!("cluster {} is named twice, or is the home", cluster.name);
                return Err(Error::bad_argument(text));
            }
            reached.push(new);
        }
        let mut placed: Vec<Option<String>> = Vec::new();
        for partition in 0..partitions {
            match partition.unsigned_abs() as usize % (reached.len() + 1) {
                0 => placed.push(None),
                at => {
                    placed.push(Some(clusters[at - 1].name.clone()));
                    reached[at - 1].partitions.push(partition);
                }
            }
        }
        let failed = || Error::statement(format!("create topic {name:?}"));
        let mut transaction = self.client().transaction().map_err(failed())?;
        for cluster in &reached {
            remember(&mut transaction, cluster)?;
        }
        let topic_id = transaction
            .query_one(
                "SELECT pubsub.create_home($1, $2, $3, $4, $5, $6, $7, $8)",
                &[
                    &name,
                    &options.compression.name(),
                    &options.retention_ms,
                    &options.retention_bytes,
                    &options.range_records,
                    &options.retain_for_groups,
                    &options.partitioner.name(),
                    &placed,
                ],
            )
            .map_err(failed())?
            .get(0);
        // The name is ours at home now, so no other client makes or uses these shares.
        for (share, cluster) in (1_i32..).zip(&mut reached) {
            let made = make_share(cluster, name, options, share, &home);
            made.map_err(|error| at_cluster(&cluster.cluster.name, &error))?;
        }
        transaction.commit().map_err(failed())?;
        Ok(topic_id)
    }
}

fn reach(cluster: &NamedCluster) -> Result<Reached<'_>> {
    if cluster.name == HOME {
        let text = "the name 'home' is that of the server that is asked";
        return Err(Error::bad_argument(text));
    }
    dsn::check(&cluster.name, &cluster.dsn)?;
    let dsn = dsn::resolve(&cluster.name, &cluster.dsn, |name| std::env::var(name).ok())?;
    let mut connection = Connection::open(&dsn)?;
    connection.check_schema()?;
    Ok(Reached {
        id: connection.identity()?,
        cluster,
        connection,
        partitions: Vec::new(),
    })
}

/// Stores a cluster. A name always stands for the same cluster, whose address may change.
fn remember(transaction: &mut Transaction<'_>, reached: &Reached<'_>) -> Result<()> {
    let NamedCluster { name, dsn } = reached.cluster;
    let stored = transaction
        .query_opt(
            "INSERT INTO pubsub.clusters AS c (name, id, dsn) VALUES ($1, $2::text::uuid, $3) \
             ON CONFLICT (name) DO UPDATE SET dsn = excluded.dsn WHERE c.id = excluded.id RETURNING name",
            &[name, &reached.id, dsn],
        )
        .map_err(Error::statement(format_args!("remember cluster {name:?}")))?;
    match stored {
        Some(_) => Ok(()),
        None => {
            let text = format_args!("the name {name:?} is that of another cluster");
            Err(Error::new(Code::NameTaken, text))
        }
    }
}

fn make_share(
    reached: &mut Reached<'_>,
    name: &str,
    options: &TopicOptions,
    share: i32,
    home: &str,
) -> Result<()> {
    let partitions = partitions_number(options.partitions)?;
    let parts = &reached.partitions;
    reached
        .connection
        .client()
        .execute(
            "SELECT pubsub.create_share($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::uuid, $11)",
            &[
                &name,
                &partitions,
                &options.compression.name(),
                &options.retention_ms,
                &options.retention_bytes,
                &options.range_records,
                &options.retain_for_groups,
                &options.partitioner.name(),
                &share,
                &home,
                parts,
            ],
        )
        .map(|_| ())
        .map_err(Error::statement(format_args!(
            "create the share of topic {name:?}"
        )))
}
