//! PostgreSQL as a part: finds the server's programs, makes and owns private clusters, and says
//! what the server's errors mean for a retry.
//!
//! What it is: [`Installation`] (which programs), [`Cluster`] (a directory with a server that is
//! ours), [`advice`] (settings with reasons), [`Dsn`] and [`connect`] (any server), [`class`]
//! (errors), [`standby`] (streaming replication). It blocks: a thread owns its connection. What it
//! is not: a pool, an upgrader, a backup. It knows nothing of what is stored.
//!
//! ```no_run
//! use std::path::Path;
//! use dyno_postgres::{Cluster, Options, Session};
//!
//! let cluster = Cluster::open(Path::new("my-data"), Options::default())?;
//! let mut client = dyno_postgres::connect(&cluster.dsn(), &Session::named("example"))?;
//! let row = client.query_one("SELECT 1 + 1", &[])?;
//! assert_eq!(row.get::<_, i32>(0), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod advice;
pub mod class;
mod cluster;
mod connect;
mod dsn;
mod error;
mod installation;
mod machine_size;
mod os;
mod pipelined;
pub mod standby;
mod tls;

pub use advice::{Advice, Difference};
pub use class::{Class, Retry};
pub use cluster::{Cluster, Listen, Options, Pids, attach};
pub use connect::{Notices, Session, connect};
pub use dsn::{Dsn, SslMode};
pub use error::PgError;
pub use installation::{Installation, Places, Version};
pub use machine_size::MachineSize;
pub use os::spawn_guarded;
pub use pipelined::{Driver, connect_pipelined};
pub use standby::Synchronous;

pub use postgres;
pub use tokio_postgres;
