//! `dyno pages ...` as it is written.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::PeersFrom;
use crate::units::{bytes, count, duration, share};

/// A time that is worth a pause: a shorter one would keep a processor busy with nothing.
fn second_or_more(text: &str) -> Result<Duration, String> {
    at_least(Duration::from_secs(1), text)
}

fn tenth_or_more(text: &str) -> Result<Duration, String> {
    at_least(Duration::from_millis(100), text)
}

fn at_least(least: Duration, text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time < least => Err(format!("it is less than {least:?}")),
        time => Ok(time),
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pages serve --size 8GiB --limit 4GiB --nbd 127.0.0.1:10809\n  \
    dyno pages attach --size 8GiB --mkfs ext4\n  \
    dyno pages list\n  \
    dyno pages status\n  \
    dyno pages detach\n  \
    dyno pages bench --peers\n  \
    dyno pages check --kills 20\n\n\
    Stores are found by name below /run/dyno-pages (root) or $XDG_RUNTIME_DIR/dyno-pages (others);\n\
    DYNO_PAGES_DIR names another folder.")]
pub struct PagesArgs {
    #[command(subcommand)]
    pub command: PagesCommand,
}

#[derive(Debug, Subcommand)]
pub enum PagesCommand {
    /// Serve a store to NBD clients, until Ctrl-C
    Serve(PagesServeArgs),
    /// Make a store a block device of this machine
    Attach(PagesAttachArgs),
    /// End a block device, and forget its pages
    Detach(PagesNameArgs),
    /// Show what a store that is served or attached holds
    Status(PagesStatusArgs),
    /// List the stores that are served or attached here
    List(PagesListArgs),
    /// Move what a store holds together, and give free memory back
    Compact(PagesAskArgs),
    /// Forget every page of a store, which stays; one with clients, or a device in use, is refused
    Reset(PagesAskArgs),
    /// Take every page for idle until it is touched again
    Idle(PagesAskArgs),
    /// Move idle or incompressible pages to the store's file now
    Writeback(PagesWritebackArgs),
    /// Measure the store on pages of one class, beside the kernel's zram and tmpfs
    Bench(PagesBenchArgs),
    /// Check the store against a model of it, and kill processes in the middle of their writes
    Check(PagesCheckArgs),
    /// What a process of a check does until it is killed
    #[command(hide = true)]
    CheckJob,
    /// What holds the memory of an attached store
    #[command(hide = true)]
    Hold(PagesHoldArgs),
    /// What serves the file of an attached store
    #[command(hide = true)]
    Device(PagesDeviceArgs),
}

/// The store behind a front.
#[derive(Debug, Clone, ClapArgs)]
pub struct PagesStoreArgs {
    /// What it can hold; the index takes 8 bytes of memory for each page that was ever used, beside --limit
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub size: u64,
    /// Memory for pages; from 94% of it, less 256KiB, on pages move to --backing, or writes can get ENOSPC [default:
    /// the size and 32MiB, at most three quarters of the machine's or control group's memory]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub limit: Option<u64>,
    /// Let pages of equal content share memory
    #[arg(long)]
    pub share: bool,
    /// What packs pages
    #[arg(long, value_enum, value_name = "CODEC", default_value = "auto")]
    pub codec: CodecArg,
    /// zstd's level
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=19))]
    pub level: i32,
    /// A new file for pages that leave memory, by --writeback, by hand, or when --limit is reached; it loses
    /// its name at once, and goes with the store
    #[arg(long, value_name = "FILE")]
    pub backing: Option<PathBuf>,
    /// What that file can hold [default: the size]
    #[arg(long, value_name = "SIZE", value_parser = bytes, requires = "backing")]
    pub backing_size: Option<u64>,
    /// Pages that leave memory by themselves
    #[arg(long, value_enum, value_name = "KIND", requires = "backing")]
    pub writeback: Option<WriteBackArg>,
    /// Pages not touched for so long are packed again with zstd; free memory goes back every half of it
    #[arg(long, value_name = "TIME", value_parser = second_or_more, default_value = "1m")]
    pub idle: Duration,
    /// Most of one processor that packing again takes; 0 turns it off
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%")]
    pub cpu: f64,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pages serve --size 8GiB --nbd unix:/run/pages.sock\n  \
    dyno pages serve --size 8GiB --limit 4GiB --nbd 127.0.0.1:10809 --metrics 127.0.0.1:9809\n  \
    dyno pages serve --size 8GiB --nbd 10.0.0.5:10809 --tls-cert c.pem --tls-key k.pem --tls-clients roots.pem\n\n\
    Prints where it listens when it is ready. Any NBD client reads and writes it: qemu, nbd-client, nbdcopy, fio. Pages are in\n\
    memory and go with the process; the end of the terminal does not end it, Ctrl-C does. Addresses beyond this machine are\n\
    refused unless clients show certificates.")]
pub struct PagesServeArgs {
    #[command(flatten)]
    pub store: PagesStoreArgs,
    /// Where to listen: HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub nbd: String,
    /// The export's name, under which `status` finds it too
    #[arg(long, value_name = "NAME", default_value = "pages")]
    pub name: String,
    /// Metrics for Prometheus at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Certificate chain
    #[arg(long, value_name = "PEM", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key to it
    #[arg(long, value_name = "PEM", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Roots that clients' certificates must lead to
    #[arg(long, value_name = "PEM", requires = "tls_cert")]
    pub tls_clients: Option<PathBuf>,
    /// Listen beyond this machine though nothing asks who comes
    #[arg(long)]
    pub open_to_all: bool,
    /// Connections at once; one that never sent a request makes room for another
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = connections)]
    pub connections: usize,
    /// Hang up on clients that send nothing for so long [default: never]
    #[arg(long, value_name = "TIME", value_parser = second_or_more)]
    pub client_idle: Option<Duration>,
}

fn connections(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=4096) => Ok(count),
        _ => Err("1 to 4096 can be".to_string()),
    }
}

/// What packs pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CodecArg {
    /// LZ4, and what is idle again with zstd
    Auto,
    /// LZ4 alone
    Lz4,
    /// zstd, when pages are written
    Zstd,
}

/// Which pages leave memory for a store's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WriteBackArg {
    /// Those not touched for one and a half times --idle
    Idle,
    /// Those that nothing packs, after half of --idle
    Incompressible,
    /// Both
    Both,
}

/// How a block device is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FrontArg {
    /// By ublk where there is one, else by FUSE; says which
    Auto,
    /// The kernel's driver for devices in user space (Linux 6.0 or later, module ublk_drv)
    Ublk,
    /// A file system of one file, and a loop device on it
    Fuse,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pages attach --size 8GiB --limit 4GiB --mkfs ext4\n  \
    mount $(dyno pages attach --size 8GiB --mkfs ext4) /mnt\n  \
    dyno pages attach --size 8GiB --limit 3GiB --swap\n  \
    dyno pages attach --size 64GiB --limit 8GiB --backing /var/tmp/pages --writeback both\n\n\
    Needs root. Prints the device. A small process holds the memory: when the one that serves it dies, the holder starts it\n\
    again with every page, and those who wait on the device go on; after five deaths in ten minutes the same command does. Pages survive that and nothing more: with the\n\
    machine, or the holder, they go, those in the file too. --swap takes the memory of --limit at once, and needs ublk; what the limit has no room for fails\n\
    to be written, and stays where it was.")]
pub struct PagesAttachArgs {
    #[command(flatten)]
    pub store: PagesStoreArgs,
    /// Its name, for the other commands
    #[arg(long, value_name = "NAME", default_value = "pages")]
    pub name: String,
    /// How the device is made
    #[arg(long, value_enum, default_value = "auto")]
    pub front: FrontArg,
    /// Threads that serve it; by ublk each has a queue of its own
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub queues: u16,
    /// Metrics for Prometheus at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Make a file system of this kind on it, such as ext4
    #[arg(long, value_name = "KIND", conflicts_with = "swap")]
    pub mkfs: Option<String>,
    /// Keep nothing, and read anything: what the way to a device costs without the store
    #[arg(long, conflicts_with_all = ["swap", "mkfs"])]
    pub null: bool,
    /// Have the system swap to it, until `detach`; needs ublk
    #[arg(long, requires = "limit")]
    pub swap: bool,
}

#[derive(Debug, ClapArgs)]
pub struct PagesNameArgs {
    /// Which
    #[arg(long, value_name = "NAME", default_value = "pages")]
    pub name: String,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  dyno pages status\n  dyno pages status --watch 2s --json")]
pub struct PagesStatusArgs {
    /// Which
    #[arg(long, value_name = "NAME", default_value = "pages")]
    pub name: String,
    /// Again and again, this often
    #[arg(long, value_name = "TIME", value_parser = tenth_or_more)]
    pub watch: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct PagesListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct PagesAskArgs {
    /// Which
    #[arg(long, value_name = "NAME", default_value = "pages")]
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pages writeback incompressible --most 1GiB\n  \
    dyno pages idle && dyno pages writeback idle")]
pub struct PagesWritebackArgs {
    /// Which pages
    #[arg(value_enum, value_name = "KIND", default_value = "both")]
    pub kind: WriteBackArg,
    /// No more than this
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub most: Option<u64>,
    #[command(flatten)]
    pub ask: PagesAskArgs,
}

#[derive(Debug, ClapArgs)]
pub struct PagesHoldArgs {
    /// Its socket
    pub socket: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub struct PagesDeviceArgs {
    #[arg(long)]
    pub name: String,
    /// After another one that died
    #[arg(long)]
    pub again: bool,
}

/// Pages to measure with; the seed document's names are there too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkloadArg {
    /// All real classes together
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

/// How pages are met; the seed document's patterns.
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
#[command(after_help = "Examples:\n  \
    dyno pages bench --peers\n  \
    dyno pages bench --workload heap --pattern p3 --pages 100k --threads 2 --peers\n  \
    dyno pages bench --workload w2 --pattern p4 --batch 64\n\n\
    Workloads w1 to w4 and patterns p1 to p6 are those of the original benchmark; its pages were all equal, these are\n\
    distinct. --peers adds zram (root) and a tmpfs, which get the same pages by direct reads and writes, one call at a time.\n\
    All tables: `dyno run pages`.")]
pub struct PagesBenchArgs {
    /// Which pages
    #[arg(long, value_enum, default_value = "real", value_name = "CLASS")]
    pub workload: WorkloadArg,
    /// Order in which pages are read and written
    #[arg(long, value_enum, default_value = "p3")]
    pub pattern: PatternArg,
    /// What packs pages
    #[arg(long, value_enum, value_name = "CODEC", default_value = "auto")]
    pub codec: CodecArg,
    /// Pages in the store
    #[arg(long, value_name = "N", value_parser = count, default_value = "24k")]
    pub pages: u64,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub threads: u64,
    /// Pages a call, instead of the pattern's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub batch: Option<u64>,
    /// Times over all pages in one invocation
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub passes: u64,
    /// Timed invocations of each system
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Measure zram and a tmpfs too, where they can be had
    #[arg(long)]
    pub peers: bool,
    #[command(flatten)]
    pub peers_from: PeersFrom,
    /// Keep pages and scratch files here [default: ~/.cache/dynolab]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Write the run below this directory
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Print the report as JSON instead of the headline
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pages check\n  \
    dyno pages check --kills 100 --steps 1M --share\n  \
    dyno pages check --soak 30m\n  \
    dyno pages check --seed 42 --json\n\n\
    Exits 1 when a rule is broken. The steps follow from the seed; the moments of kills do not.")]
pub struct PagesCheckArgs {
    /// Random steps beside the model
    #[arg(long, value_name = "N", value_parser = count, default_value = "50k")]
    pub steps: u64,
    /// Processes to kill in the middle of their writes
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub kills: u32,
    /// How long the first process lives
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "200ms")]
    pub life: Duration,
    /// Let pages of equal content share slots
    #[arg(long)]
    pub share: bool,
    /// Go on with one store for so long afterwards: its memory and its slowest calls must not grow
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub soak: Option<Duration>,
    /// From which the steps follow [default: drawn]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
