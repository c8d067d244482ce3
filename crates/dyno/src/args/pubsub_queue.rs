//! The flags of `dyno pubsub queue ...`.

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use crate::units::duration;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub queue create mails --dsn \"$DSN\" --visibility 30s --max-attempts 3
  seq 100 | dyno pubsub queue send mails --dsn \"$DSN\"
  dyno pubsub queue claim mails --dsn \"$DSN\" --count 10 > claimed
  dyno pubsub queue ack mails --dsn \"$DSN\" < claimed

A message belongs to the worker that claimed it until its time is up; then it is claimed again, and \
after --max-attempts it is a dead letter. Queues are reached by SQL alone, so each command needs --dsn.")]
pub struct PubsubQueueArgs {
    #[command(subcommand)]
    pub command: PubsubQueueCommand,
}

#[derive(Debug, Subcommand)]
pub enum PubsubQueueCommand {
    /// Create a queue
    Create(PubsubQueueCreateArgs),
    /// Drop a queue with its messages
    #[command(after_help = "Examples:
  dyno pubsub queue drop mails --dsn \"$DSN\"
  dyno pubsub queue drop mails --dsn postgres://log@db/log")]
    Drop(PubsubQueueNameArgs),
    /// Send each line of standard input as a message
    Send(PubsubQueueSendArgs),
    /// Claim messages, and print each as a line of JSON
    Claim(PubsubQueueClaimArgs),
    /// Acknowledge the messages that standard input names, as claim prints them
    #[command(after_help = "Examples:
  dyno pubsub queue ack mails --dsn \"$DSN\" < claimed
  dyno pubsub queue ack mails --dsn postgres://log@db/log < claimed")]
    Ack(PubsubQueueNameArgs),
    /// Give back the messages that standard input names, as claim prints them
    Nack(PubsubQueueNackArgs),
    /// Extend the claim on the messages that standard input names, as claim prints them
    Extend(PubsubQueueExtendArgs),
    /// Delete the messages that no worker has claimed
    #[command(after_help = "Examples:
  dyno pubsub queue purge mails --dsn \"$DSN\"
  dyno pubsub queue purge mails --dsn postgres://log@db/log

A message that a worker has claimed stays; it comes back if that worker does not acknowledge it. \
Dead letters stay too: `dyno pubsub queue dead --delete` deletes them.")]
    Purge(PubsubQueueNameArgs),
    /// Print the dead letters, make them messages again, or delete them
    Dead(PubsubQueueDeadArgs),
}

/// One queue, and the server that it is on.
#[derive(Debug, ClapArgs)]
pub struct PubsubQueueNameArgs {
    /// Queue to use
    pub name: String,
    /// Use the PostgreSQL server at DSN: postgres://... or key=value
    #[arg(long, value_name = "DSN")]
    pub dsn: String,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub queue create mails --dsn \"$DSN\"
  dyno pubsub queue create mails --dsn \"$DSN\" --visibility 5m --max-attempts 3 --keep-done")]
pub struct PubsubQueueCreateArgs {
    #[command(flatten)]
    pub queue: PubsubQueueNameArgs,
    /// Hide a claimed message from other workers for TIME
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub visibility: Duration,
    /// Make a message a dead letter after N claims
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(i32).range(1..))]
    pub max_attempts: i32,
    /// Keep acknowledged messages, which pubsub.queue_done returns
    #[arg(long)]
    pub keep_done: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub queue send mails --dsn \"$DSN\" < lines
  dyno pubsub queue send mails --dsn \"$DSN\" --delay 1h < lines")]
pub struct PubsubQueueSendArgs {
    #[command(flatten)]
    pub queue: PubsubQueueNameArgs,
    /// Let messages be claimed only after TIME
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub delay: Duration,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub queue claim mails --dsn \"$DSN\"
  dyno pubsub queue claim mails --dsn \"$DSN\" --count 10 --visibility 5m > claimed")]
pub struct PubsubQueueClaimArgs {
    #[command(flatten)]
    pub queue: PubsubQueueNameArgs,
    /// Claim at most N messages
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub count: u32,
    /// Hide them from other workers for TIME [default: the queue's own]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub visibility: Option<Duration>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub queue nack mails --dsn \"$DSN\" < claimed
  dyno pubsub queue nack mails --dsn \"$DSN\" --delay 1m --reason 'mailbox full' < claimed")]
pub struct PubsubQueueNackArgs {
    #[command(flatten)]
    pub queue: PubsubQueueNameArgs,
    /// Let them be claimed again only after TIME
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub delay: Duration,
    /// Keep TEXT with them, for the case that they become dead letters
    #[arg(long, value_name = "TEXT", default_value = "given back")]
    pub reason: String,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub queue extend mails --dsn \"$DSN\" --visibility 1m < claimed
  dyno pubsub queue extend mails --dsn postgres://log@db/log --visibility 1h < claimed")]
pub struct PubsubQueueExtendArgs {
    #[command(flatten)]
    pub queue: PubsubQueueNameArgs,
    /// Hide them from other workers until TIME from now
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub visibility: Duration,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub queue dead mails --dsn \"$DSN\"
  dyno pubsub queue dead mails --dsn \"$DSN\" --redrive --count 10
  dyno pubsub queue dead mails --dsn \"$DSN\" --delete")]
pub struct PubsubQueueDeadArgs {
    #[command(flatten)]
    pub queue: PubsubQueueNameArgs,
    /// Show or redrive at most N, the oldest first
    #[arg(long, value_name = "N", default_value_t = 1_000,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Make them messages again instead of printing them
    #[arg(long)]
    pub redrive: bool,
    /// Delete all of them instead of printing them
    #[arg(long, conflicts_with_all = ["redrive", "count"])]
    pub delete: bool,
}
