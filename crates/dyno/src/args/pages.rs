//! The flags of `dyno pages ...`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{BenchArgs, LogArgs, PagesPagerArgs};
use crate::units::{bytes, count, duration, share};

/// Parses a pause of at least a second; a shorter one would keep a processor busy without need.
fn second_or_more(text: &str) -> Result<Duration, String> {
    at_least(Duration::from_secs(1), text)
}

/// Parses a pause of at least a tenth of a second.
pub fn tenth_or_more(text: &str) -> Result<Duration, String> {
    at_least(Duration::from_millis(100), text)
}

fn at_least(least: Duration, text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time < least => Err(format!("it is less than {least:?}")),
        time => Ok(time),
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pages serve --size 8GiB --limit 4GiB --nbd 127.0.0.1:10809
  dyno pages attach --size 8GiB --mkfs ext4
  dyno pages pager --socket /run/uffd.sock --snapshot memory
  dyno pages list
  dyno pages status
  dyno pages detach
  dyno pages bench --peers
  dyno pages check --kills 20

Stores are found by name below /run/dyno-pages (root) or $XDG_RUNTIME_DIR/dyno-pages (other \
users); set DYNO_PAGES_DIR to use another directory.")]
pub struct PagesArgs {
    #[command(subcommand)]
    pub command: PagesCommand,
}

#[derive(Debug, Subcommand)]
pub enum PagesCommand {
    /// Serve a store to NBD clients, until Ctrl-C
    Serve(PagesServeArgs),
    /// Attach a store to this machine as a block device
    Attach(PagesAttachArgs),
    /// Serve the memory of microVMs that are restored from one snapshot, until Ctrl-C
    Pager(PagesPagerArgs),
    /// Remove a block device and drop its pages, or give up the microVMs of a dead pager
    Detach(PagesNameArgs),
    /// Show what a served or attached store holds
    Status(PagesStatusArgs),
    /// List the stores that are served or attached on this machine
    List(PagesListArgs),
    /// Compact a store and return free memory to the system
    #[command(after_help = "Examples:
  dyno pages compact
  dyno pages compact --name scratch --json")]
    Compact(PagesAskArgs),
    /// Drop every page of a store; refused while it has clients or its device is in use
    #[command(after_help = "Examples:
  dyno pages reset
  dyno pages reset --name scratch --json")]
    Reset(PagesAskArgs),
    /// Mark every page as idle until it is accessed again
    #[command(after_help = "Examples:
  dyno pages idle
  dyno pages idle --name scratch --json")]
    Idle(PagesAskArgs),
    /// Move idle or incompressible pages to the store's file now
    Writeback(PagesWritebackArgs),
    /// Measure the store on pages of one class, beside the kernel's zram and tmpfs
    Bench(PagesBenchArgs),
    /// Check the store against a model, and kill processes in the middle of writes
    Check(PagesCheckArgs),
    /// Write to a store until a check kills this process
    #[command(hide = true)]
    CheckJob,
    /// Hold the memory of an attached store
    #[command(hide = true)]
    Hold(PagesHoldArgs),
    /// Serve the block device of an attached store
    #[command(hide = true)]
    Device(PagesDeviceArgs),
}

/// The store behind an NBD server or a block device.
#[derive(Debug, Clone, ClapArgs)]
pub struct PagesStoreArgs {
    /// Make a store of SIZE; its index takes 8 bytes of memory, beside --limit, for each page that
    /// was ever used
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub size: u64,
    /// Keep at most SIZE of compressed pages in memory. From 94% of it, less 256KiB, on, pages move
    /// to --backing; without that, writes can fail with ENOSPC [default: --size and 32MiB, at most
    /// three quarters of the memory of the machine or control group]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub limit: Option<u64>,
    /// Store pages of equal content once
    #[arg(long)]
    pub share: bool,
    /// Compress pages with CODEC
    #[arg(long, value_enum, value_name = "CODEC", default_value = "auto")]
    pub codec: CodecArg,
    /// Compress at level N of zstd
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(i32).range(1..=19))]
    pub level: i32,
    /// Write pages that leave memory to the new file FILE. Pages leave by --writeback, by `dyno
    /// pages writeback`, or when --limit is reached. The file is unlinked at once and ends with the
    /// store
    #[arg(long, value_name = "FILE")]
    pub backing: Option<PathBuf>,
    /// Let the backing file grow to SIZE [default: --size]
    #[arg(long, value_name = "SIZE", value_parser = bytes, requires = "backing")]
    pub backing_size: Option<u64>,
    /// Write pages of KIND back automatically
    #[arg(long, value_enum, value_name = "KIND", requires = "backing")]
    pub writeback: Option<WriteBackArg>,
    /// Recompress pages that were not accessed for TIME, with a dictionary or zstd; free memory is
    /// returned to the system every half of TIME
    #[arg(long, value_name = "TIME", value_parser = second_or_more, default_value = "1m")]
    pub idle: Duration,
    /// Let recompression use at most SHARE of one processor; 0 turns it off
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%")]
    pub cpu: f64,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pages serve --size 8GiB --nbd unix:/run/pages.sock
  dyno pages serve --size 8GiB --limit 4GiB --nbd 127.0.0.1:10809 --metrics 127.0.0.1:9809
  dyno pages serve --size 8GiB --nbd 10.0.0.5:10809 --tls-cert c.pem --tls-key k.pem \\
    --tls-clients roots.pem

Prints its address when it is ready. Any NBD client can use it: qemu, nbd-client, nbdcopy, fio. \
Pages are in memory and are lost with the process. It keeps running when the terminal closes; \
Ctrl-C stops it. Addresses beyond this machine are refused unless clients show certificates.")]
pub struct PagesServeArgs {
    #[command(flatten)]
    pub store: PagesStoreArgs,
    /// Listen for NBD clients on ADDRESS: HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub nbd: String,
    /// Name the store and its NBD export NAME
    #[arg(long, value_name = "NAME", default_value = "pages")]
    pub name: String,
    /// Serve Prometheus metrics at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Show clients the certificate chain in PEM
    #[arg(long, value_name = "PEM", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Use the private key in PEM, which belongs to --tls-cert
    #[arg(long, value_name = "PEM", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Require client certificates that lead to the roots in PEM
    #[arg(long, value_name = "PEM", requires = "tls_cert")]
    pub tls_clients: Option<PathBuf>,
    /// Listen beyond this machine without authenticating clients
    #[arg(long)]
    pub open_to_all: bool,
    /// Accept N connections at once; one that never sent a request is closed to make room
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = connections)]
    pub connections: usize,
    /// Disconnect clients that send nothing for TIME [default: never]
    #[arg(long, value_name = "TIME", value_parser = second_or_more)]
    pub client_idle: Option<Duration>,
    #[command(flatten)]
    pub log: LogArgs,
}

fn connections(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=4096) => Ok(count),
        _ => Err("it must be 1 to 4096".to_string()),
    }
}

/// The codecs of a store, of which one may be for fresh and one for idle pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CodecArg {
    /// LZ4 at first; for idle pages LZ4 with a dictionary, or zstd where that saves much
    Auto,
    /// Only LZ4
    Lz4,
    /// zstd at once, when pages are written
    Zstd,
}

/// Which pages leave memory for a store's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WriteBackArg {
    /// Pages not accessed for one and a half times --idle
    Idle,
    /// Pages that no codec makes smaller, after half of --idle
    Incompressible,
    /// Both
    Both,
}

/// How a block device is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FrontArg {
    /// Use ublk where the kernel has it, else FUSE; the choice is printed
    Auto,
    /// Use the kernel's user-space block driver (Linux 6.0 or later, module ublk_drv)
    Ublk,
    /// Use a FUSE file system of one file, and a loop device on it
    Fuse,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pages attach --size 8GiB --limit 4GiB --mkfs ext4
  mount $(dyno pages attach --size 8GiB --mkfs ext4) /mnt
  dyno pages attach --size 8GiB --limit 3GiB --swap
  dyno pages attach --size 64GiB --limit 8GiB --backing /var/tmp/pages --writeback both

Needs root. Prints the path of the device.

A small process, the holder, owns the memory. When the process that serves the device dies, the \
holder restarts it with every page, and requests that wait on the device continue. A restart that \
fails is tried again. After five restarts in ten minutes the holder gives up; then run the same \
command again. Pages are lost when the holder or the machine stops, even those written back to a \
file.

--swap needs ublk, and takes the memory of --limit at once. A page that does not fit the limit \
fails to be swapped out and stays in memory.")]
pub struct PagesAttachArgs {
    #[command(flatten)]
    pub store: PagesStoreArgs,
    /// Name the store NAME
    #[arg(long, value_name = "NAME", default_value = "pages")]
    pub name: String,
    /// Make the device with DRIVER
    #[arg(long, value_enum, value_name = "DRIVER", default_value = "auto")]
    pub front: FrontArg,
    /// Serve the device with N threads, each with a queue of its own if the driver is ublk
    #[arg(long, value_name = "N", default_value_t = 2,
        value_parser = clap::value_parser!(u16).range(1..=64))]
    pub queues: u16,
    /// Serve Prometheus metrics at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Make a file system of KIND on the device, such as ext4
    #[arg(long, value_name = "KIND", conflicts_with = "swap")]
    pub mkfs: Option<String>,
    /// Store nothing and answer reads with any bytes, to measure what the device costs without the
    /// store
    #[arg(long, conflicts_with_all = ["swap", "mkfs"])]
    pub null: bool,
    /// Let the system swap to the device until `dyno pages detach`; needs ublk
    #[arg(long, requires = "limit")]
    pub swap: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pages detach
  dyno pages detach --name scratch")]
pub struct PagesNameArgs {
    /// Name of the store
    #[arg(long, value_name = "NAME", default_value = "pages")]
    pub name: String,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pages status
  dyno pages status --watch 2s --json")]
pub struct PagesStatusArgs {
    /// Name of the store
    #[arg(long, value_name = "NAME", default_value = "pages")]
    pub name: String,
    /// Print again every TIME, until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = tenth_or_more)]
    pub watch: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pages list
  dyno pages list --json")]
pub struct PagesListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct PagesAskArgs {
    /// Name of the store
    #[arg(long, value_name = "NAME", default_value = "pages")]
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pages writeback incompressible --most 1GiB
  dyno pages idle && dyno pages writeback idle")]
pub struct PagesWritebackArgs {
    /// Pages to write back
    #[arg(value_enum, value_name = "KIND", default_value = "both")]
    pub kind: WriteBackArg,
    /// Write back at most SIZE
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub most: Option<u64>,
    #[command(flatten)]
    pub ask: PagesAskArgs,
}

#[derive(Debug, ClapArgs)]
pub struct PagesHoldArgs {
    /// Socket of the holder
    pub socket: PathBuf,
    /// Do not start a daemon again that has died
    #[arg(long)]
    pub alone: bool,
}

#[derive(Debug, ClapArgs)]
pub struct PagesDeviceArgs {
    /// Name of the store
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Take over from a process that died
    #[arg(long)]
    pub again: bool,
}

/// Pages to measure with; the names of the seed document are aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkloadArg {
    /// All real classes, mixed
    Real,
    /// Zeros
    #[value(alias = "W1", alias = "w1")]
    Zeros,
    /// A counter over the printable characters
    #[value(alias = "W2", alias = "w2")]
    Text,
    /// Half a counter, half random
    #[value(alias = "W3", alias = "w3")]
    Mixed,
    /// Random bytes
    #[value(alias = "W4", alias = "w4")]
    Random,
    /// Machine code of libraries
    ElfText,
    /// Constants and tables of libraries
    ElfData,
    /// Source text
    Source,
    /// Documentation
    Documents,
    /// The heap of a live interpreter
    Heap,
    /// Tables and indexes of PostgreSQL
    Postgres,
    /// Parquet files
    Parquet,
}

/// The order of reads and writes; P1 to P6 are the seed document's patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PatternArg {
    /// Read in order, 256 pages a call
    #[value(alias = "P1")]
    P1,
    /// Written in order, 256 pages a call
    #[value(alias = "P2")]
    P2,
    /// Random reads
    #[value(alias = "P3")]
    P3,
    /// Random writes
    #[value(alias = "P4")]
    P4,
    /// Random, 70% reads
    #[value(alias = "P5")]
    P5,
    /// Random, 70% reads, 64 pages a call
    #[value(alias = "P6")]
    P6,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pages bench --peers
  dyno pages bench --workload heap --pattern p3 --pages 100k --threads 2 --peers
  dyno pages bench --workload w2 --pattern p4 --batch 64

Workloads w1 to w4 and patterns p1 to p6 are those of the original benchmark. Its pages were all \
equal; these are distinct. --peers adds zram (needs root) and a tmpfs, which get the same pages by \
direct reads and writes, one call at a time. `dyno run pages` measures all cases. A verdict about \
a rate needs 20 s of measured time in each invocation: --passes 1000 gives it where a pass takes \
20 ms or more.")]
pub struct PagesBenchArgs {
    /// Measure with pages of CLASS
    #[arg(long, value_enum, default_value = "real", value_name = "CLASS")]
    pub workload: WorkloadArg,
    /// Read and write pages in the order of PATTERN
    #[arg(long, value_enum, value_name = "PATTERN", default_value = "p3")]
    pub pattern: PatternArg,
    /// Compress pages with CODEC
    #[arg(long, value_enum, value_name = "CODEC", default_value = "auto")]
    pub codec: CodecArg,
    /// Keep N pages in the store
    #[arg(long, value_name = "N", value_parser = count, default_value = "24k")]
    pub pages: u64,
    /// Use N threads
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=64))]
    pub threads: u64,
    /// Read or write N pages a call [default: the pattern's own number]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub batch: Option<u64>,
    /// Go over all pages N times in one invocation
    #[arg(long, value_name = "N", default_value_t = 2,
        value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub passes: u64,
    #[command(flatten)]
    pub bench: BenchArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pages check
  dyno pages check --kills 100 --steps 1M --share
  dyno pages check --soak 30m
  dyno pages check --seed 42 --json

Exits 1 when a rule is broken. The steps follow from the seed; the moments of kills do not.")]
pub struct PagesCheckArgs {
    /// Take N random steps and compare each with the model
    #[arg(long, value_name = "N", value_parser = count, default_value = "50k")]
    pub steps: u64,
    /// Kill N processes, in the middle of their writes
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub kills: u32,
    /// Kill the first process after TIME
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "200ms")]
    pub life: Duration,
    /// Store pages of equal content once
    #[arg(long)]
    pub share: bool,
    /// Then run for TIME, and judge whether memory and latency stay flat
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub soak: Option<Duration>,
    /// Derive the steps from SEED [default: drawn, and printed]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
