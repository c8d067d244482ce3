//! The parameters of `txn-k2`.

use std::time::Duration;

use dyno_txn_node::Durability;

use crate::peers::unknown;
use crate::zipf::Zipf;
use crate::{Params, RigError};

/// The parsed parameters of a run.
#[derive(Debug, Clone)]
pub(super) struct K2Params {
    pub system: Name,
    pub transport: Transport,
    pub durability: Durability,
    /// The server's cores, as `--cores` takes them; `None` for one thread that is not pinned.
    pub cores: Option<String>,
    /// At least one for each thread of the servers: a new database of fewer is refused.
    pub partitions: u64,
    /// Server processes that share the database; with several there is an oracle beside them.
    pub servers: usize,
    /// Threads of each of several processes, pinned if there is more than one.
    pub server_cores: usize,
    pub form: Form,
    /// Client threads, and how many transactions each has in flight.
    pub clients: usize,
    pub depth: usize,
    pub writes: usize,
    pub reads: usize,
    /// If set, a transaction does either its writes or its reads, half of them each.
    pub either: bool,
    pub value_bytes: usize,
    pub keys: Keys,
    pub duration: Duration,
    /// Transactions a second of an open loop; `None` for a closed loop.
    pub rate: Option<f64>,
    /// Transactions run before anything is timed, whose answers are compared between systems.
    pub verified: u64,
    pub seed: u64,
    /// Checkpoint a partition of ours after its log has grown by this much; 0 for the server's
    /// default.
    pub checkpoint_bytes: u64,
}

/// The system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Dyno,
    Postgres,
    Etcd,
}

/// The transport between clients and a server of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Ring,
    Unix,
    Tcp,
}

/// How a transaction is sent to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All writes and reads in one request.
    OneShot,
    /// Begin, all writes together, all reads together, commit.
    Batched,
    /// Like `Batched`, with a message for each operation.
    Interactive,
}

/// How keys are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Keys {
    /// K2's keys: uniform over 2^31 and absent at first; a transaction reads what it wrote.
    Fresh,
    /// Rows that exist, drawn by Zipf's law or, without one, uniformly.
    Rows { rows: u64, zipf: Option<Zipf> },
}

impl Transport {
    pub fn read(params: &mut Params<'_>) -> Result<Transport, RigError> {
        match params.text("carrier")? {
            "ring" => Ok(Transport::Ring),
            "unix" => Ok(Transport::Unix),
            "tcp" => Ok(Transport::Tcp),
            other => {
                let reason = format!("`{other}` is not one of ring, unix, tcp");
                Err(params.wrong("carrier", reason))
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Transport::Ring => "ring",
            Transport::Unix => "unix",
            Transport::Tcp => "tcp",
        }
    }
}

impl K2Params {
    pub fn read(params: &mut Params<'_>, peer: Option<&str>) -> Result<K2Params, RigError> {
        let rate = params.number("rate")?;
        let duration = params.seconds("seconds")?;
        K2Params::with_load(params, peer, duration, (rate > 0.0).then_some(rate))
    }

    /// Reads all parameters but those of the load.
    pub fn with_load(
        params: &mut Params<'_>,
        peer: Option<&str>,
        duration: Duration,
        rate: Option<f64>,
    ) -> Result<K2Params, RigError> {
        let system = match peer {
            None => Name::Dyno,
            Some("postgres-serializable") => Name::Postgres,
            Some("etcd") => Name::Etcd,
            Some(other) => return Err(unknown(other)),
        };
        let durability = params.text("durability")?;
        let durability = durability
            .parse()
            .map_err(|error: dyno_txn_api::Error| params.wrong("durability", error.to_string()))?;
        let form = match params.text("form")? {
            "one-shot" => Form::OneShot,
            "batched" => Form::Batched,
            "interactive" => Form::Interactive,
            other => {
                let reason = format!("`{other}` is not one of one-shot, batched, interactive");
                return Err(params.wrong("form", reason));
            }
        };
        let servers = params.count_or("servers", 1)?;
        let server_cores = params.count_or("server-cores", 1)?;
        let partitions = params.count_or("partitions", 1)?;
        let parsed = K2Params {
            system,
            transport: Transport::read(params)?,
            durability,
            cores: params.text_or_none("cores")?.map(str::to_owned),
            partitions: partitions.max(servers.saturating_mul(server_cores)),
            servers: size(servers),
            server_cores: size(server_cores),
            form,
            clients: size(params.count("clients")?),
            depth: size(params.count("depth")?),
            writes: size(params.count("writes")?),
            reads: size(params.count("reads")?),
            either: params.count_or("either", 0)? == 1,
            value_bytes: size(params.count("value")?),
            keys: read_keys(params)?,
            duration,
            rate,
            verified: params.count_or("verified", 200)?,
            seed: params.count_or("seed", 1)?,
            checkpoint_bytes: params.count_or("checkpoint", 0)?,
        };
        parsed.check(params)?;
        Ok(parsed)
    }

    fn check(&self, params: &Params<'_>) -> Result<(), RigError> {
        let bounds = [
            ("clients", self.clients, 1, 1_024),
            ("depth", self.depth, 1, 65_536),
            ("writes", self.writes, 0, 100),
            ("reads", self.reads, 0, 100),
            ("value", self.value_bytes, super::draw::VALUE_LEAST, 1 << 20),
            ("servers", self.servers, 1, 64),
            ("server-cores", self.server_cores, 1, 256),
            ("partitions", size(self.partitions), 1, 1_024),
        ];
        for (name, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                let reason = format!("{value} is not within {least} and {most}");
                return Err(params.wrong(name, reason));
            }
        }
        if self.keys == Keys::Fresh && (self.reads > self.writes || self.either) {
            let reason = "of fresh keys only those are read that the transaction has written";
            return Err(params.wrong("reads", reason.to_owned()));
        }
        if self.servers > 1 && (self.transport == Transport::Unix || self.cores.is_some()) {
            let reason = "several servers listen on TCP and have `server-cores`, not `cores`";
            return Err(params.wrong("servers", reason.to_owned()));
        }
        if self.servers > 1 && self.durability == Durability::RemoteMemory {
            let reason = "several servers would need a process for the log each";
            return Err(params.wrong("durability", reason.to_owned()));
        }
        if self.system != Name::Dyno && self.durability != Durability::Fsync {
            let reason = "other systems are measured as they acknowledge: on stable storage";
            return Err(params.wrong("durability", reason.to_owned()));
        }
        if !self.is_pipelined() && self.outstanding() > 1_024 {
            let reason = format!("{} threads are too many", self.outstanding());
            return Err(params.wrong("depth", reason));
        }
        Ok(())
    }

    /// Transactions in flight at once, over all clients.
    pub fn outstanding(&self) -> usize {
        self.clients * self.depth
    }

    /// Whether a client thread has many requests in flight. If not, each transaction in flight has
    /// a thread.
    pub fn is_pipelined(&self) -> bool {
        self.system == Name::Dyno && self.form == Form::OneShot
    }
}

fn read_keys(params: &mut Params<'_>) -> Result<Keys, RigError> {
    let percent = params.count("theta-percent")?;
    let theta = percent as f64 / 100.0;
    match params.count_or_all("keys")? {
        None if theta == 0.0 => Ok(Keys::Fresh),
        None => Err(params.wrong("theta-percent", "fresh keys are uniform".to_owned())),
        Some(0) => Err(params.wrong("keys", "no rows".to_owned())),
        Some(rows) if (0.0..1.0).contains(&theta) => Ok(Keys::Rows {
            rows,
            zipf: (theta > 0.0).then(|| Zipf::new(rows, theta)),
        }),
        Some(_) => Err(params.wrong("theta-percent", format!("{percent} is not within 0 and 99"))),
    }
}

pub(crate) fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn values(keys: &str, percent: u64) -> BTreeMap<String, Value> {
        let keys = keys.parse::<u64>().map_or(json!(keys), |rows| json!(rows));
        let all = json!({
            "carrier": "tcp", "durability": "fsync", "form": "one-shot", "clients": 2, "depth": 8,
            "writes": 1, "reads": 1, "value": 512, "keys": keys, "theta-percent": percent, "seconds": 0.1,
            "rate": 0,
        });
        serde_json::from_value(all).expect("a map")
    }

    pub fn params(keys: &str, percent: u64) -> K2Params {
        let values = values(keys, percent);
        K2Params::read(&mut Params::new(&values), None).expect("it makes sense")
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (name, value) in [
            ("carrier", json!("pigeon")),
            ("durability", json!("hope")),
            ("form", json!("none")),
            ("clients", json!(0)),
            ("depth", json!(1 << 20)),
            ("reads", json!(2)),
            ("value", json!(8)),
            ("theta-percent", json!(50)),
        ] {
            let mut values = values("all", 0);
            values.insert(name.to_owned(), value);
            let error = K2Params::read(&mut Params::new(&values), None).expect_err(name);
            assert!(error.to_string().contains(name), "{name}: {error}");
        }
    }

    /// A sweep of the servers' cores keeps one number of partitions, which a machine of many cores
    /// may exceed.
    #[test]
    fn servers_of_many_cores_have_a_partition_for_each_thread() {
        for (cores, expected) in [(1, 8), (4, 8), (16, 32)] {
            let mut values = values("all", 0);
            for (name, value) in [("partitions", 8), ("servers", 2), ("server-cores", cores)] {
                values.insert(name.to_owned(), json!(value));
            }
            let parsed = K2Params::read(&mut Params::new(&values), None).expect("it makes sense");
            assert_eq!(parsed.partitions, expected, "{cores} cores");
        }
    }

    #[test]
    fn others_are_measured_on_stable_storage_alone() {
        let mut values = values("all", 0);
        assert!(K2Params::read(&mut Params::new(&values), Some("etcd")).is_ok());
        values.insert("durability".to_owned(), json!("memory"));
        assert!(K2Params::read(&mut Params::new(&values), Some("etcd")).is_err());
        assert!(K2Params::read(&mut Params::new(&values), Some("oracle")).is_err());
    }
}
