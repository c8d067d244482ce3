//! The flags of `dyno pages pager`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::LogArgs;
use super::pages::tenth_or_more;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pages pager --socket /run/uffd.sock --snapshot memory
  dyno pages pager --socket /run/uffd.sock --snapshot memory --no-prefetch --metrics 127.0.0.1:9809

Prints its address when it is ready. Firecracker connects when it loads a snapshot whose \
`mem_backend` is of type Uffd and has the path of the socket. The snapshot is packed once, in \
memory, and all microVMs are served from there: equal pages take memory once, and zeros none.

A small process, the holder, has what microVMs sent. If the pager dies, they wait at their next \
page; run the same command again, and they continue. Ctrl-C stops the pager in the same way while \
microVMs run; `dyno pages detach --name pager` gives them up.")]
pub struct PagesPagerArgs {
    /// Listen for VMMs at the Unix socket PATH, which only this user can connect to
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
    /// Serve the memory that is in FILE
    #[arg(long, value_name = "FILE")]
    pub snapshot: PathBuf,
    /// Keep the order in which pages are touched first in FILE [default: the snapshot's name and
    /// `.working-set`]
    #[arg(long, value_name = "FILE", conflicts_with = "no_prefetch")]
    pub working_set: Option<PathBuf>,
    /// Record for TIME which pages the first restore touches; later restores get them before they
    /// ask
    #[arg(long, value_name = "TIME", value_parser = tenth_or_more, default_value = "10s")]
    pub record_for: Duration,
    /// Neither record which pages are touched nor bring pages ahead
    #[arg(long)]
    pub no_prefetch: bool,
    /// Name the store NAME
    #[arg(long, value_name = "NAME", default_value = "pager")]
    pub name: String,
    /// Serve Prometheus metrics at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub log: LogArgs,
}
