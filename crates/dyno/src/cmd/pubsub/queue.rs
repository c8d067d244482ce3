//! `dyno pubsub queue`: what a worker does with a queue, by lines of text and of JSON.

use std::io::{self, BufRead};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow, bail};
use dyno_pubsub::{Claimed, Connection, Dsn, Queue, QueueOptions};
use dyno_report::counted;
use dyno_suite::Stop;
use serde::Deserialize;
use serde_json::{Value, json};

use super::lines;
use super::message_json::shown;
use crate::args::{
    PubsubQueueArgs, PubsubQueueCommand, PubsubQueueCreateArgs, PubsubQueueDeadArgs,
    PubsubQueueNameArgs, PubsubQueueSendArgs,
};
use crate::exit::Exit;
use crate::terminal;

/// The most lines that are sent in one transaction. A failure leaves those before in the queue, and
/// names the first line that is not known to be there.
const SENT_TOGETHER: usize = 1_000;

pub fn run(args: &PubsubQueueArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        PubsubQueueCommand::Create(args) => create(args)?,
        PubsubQueueCommand::Drop(args) => {
            Queue::drop(&mut Connection::open(&dsn(args)?)?, &args.name)?;
            terminal::print(&format!("queue {} is gone", args.name))?;
        }
        PubsubQueueCommand::Send(args) => send(args, stop)?,
        PubsubQueueCommand::Claim(args) => {
            let claimed = open(&args.queue)?.claim(args.count, args.visibility)?;
            for message in &claimed {
                terminal::print(&printed(message).to_string())?;
            }
        }
        PubsubQueueCommand::Ack(args) => {
            let claimed = named(io::stdin().lock())?;
            let late = open(args)?.acknowledge(&claimed)?;
            return print_settled("acknowledged", &claimed, &late);
        }
        PubsubQueueCommand::Nack(args) => {
            let claimed = named(io::stdin().lock())?;
            let late = open(&args.queue)?.give_back(&claimed, args.delay, &args.reason)?;
            return print_settled("given back", &claimed, &late);
        }
        PubsubQueueCommand::Extend(args) => {
            let claimed = named(io::stdin().lock())?;
            let late = open(&args.queue)?.extend(&claimed, args.visibility)?;
            return print_settled("extended", &claimed, &late);
        }
        PubsubQueueCommand::Purge(args) => {
            let purged = open(args)?.purge()?;
            terminal::print(&format!("{} deleted", messages(purged as u64)))?;
        }
        PubsubQueueCommand::Dead(args) => dead(args)?,
    }
    Ok(Exit::Done)
}

fn dsn(args: &PubsubQueueNameArgs) -> anyhow::Result<Dsn> {
    Ok(Dsn::parse(&args.dsn)?)
}

fn open(args: &PubsubQueueNameArgs) -> anyhow::Result<Queue> {
    Ok(Queue::open(&dsn(args)?, &args.name)?)
}

fn create(args: &PubsubQueueCreateArgs) -> anyhow::Result<()> {
    let options = QueueOptions {
        visibility: args.visibility,
        max_attempts: args.max_attempts,
        keep_done: args.keep_done,
    };
    let mut connection = Connection::open(&dsn(&args.queue)?)?;
    connection.check_schema()?;
    Queue::create(&mut connection, &args.queue.name, &options)?;
    terminal::print(&format!("queue {} is there", args.queue.name))
}

/// Sends lines as they come: a program that writes them slowly does not wait for others to follow.
fn send(args: &PubsubQueueSendArgs, stop: &Stop) -> anyhow::Result<()> {
    let mut queue = open(&args.queue)?;
    let blocks = lines::blocks(io::stdin()).context("cannot read standard input")?;
    let mut sent = 0;
    loop {
        if stop.asked() {
            bail!("stopped: lines after {sent} were not sent");
        }
        let block = match blocks.recv_timeout(lines::TICK) {
            Ok(block) => block.with_context(|| {
                format!(
                    "line {}: this line and those after it were not sent",
                    sent + 1
                )
            })?,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let payloads: Vec<&[u8]> = lines::lines(&block).collect();
        for together in payloads.chunks(SENT_TOGETHER) {
            // Sending is not idempotent, so nothing is sent again: the user is told how far it
            // came.
            queue.send(together, args.delay).map_err(|error| {
                let first = sent + 1;
                let message =
                    format!("lines before {first} are sent; of the others nothing is known");
                anyhow::Error::new(error).context(message)
            })?;
            sent += together.len();
        }
    }
    terminal::print(&format!("{} sent", messages(sent as u64)))
}

fn messages(number: u64) -> String {
    counted(number, "message")
}

fn printed(message: &Claimed) -> Value {
    json!({
        "id": message.message_id,
        "claim": message.claim,
        "attempts": message.attempts,
        "sent_at_us": microseconds(message.sent_at),
        "payload": shown(&message.payload),
    })
}

fn microseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

/// A claimed message as a line of input names it; what else `claim` prints is passed over.
#[derive(Deserialize)]
struct Named {
    id: i64,
    claim: i64,
}

fn named(input: impl BufRead) -> anyhow::Result<Vec<Claimed>> {
    let mut claimed = Vec::new();
    // All are read before the first is settled, so that a line that is wrong settles none.
    for (number, line) in (1..).zip(input.lines()) {
        let line = line.context("cannot read standard input")?;
        let named: Named = serde_json::from_str(&line).map_err(|error| {
            anyhow!("line {number} is not what `dyno pubsub queue claim` prints: {error}")
        })?;
        claimed.push(Claimed {
            message_id: named.id,
            claim: named.claim,
            attempts: 0,
            sent_at: UNIX_EPOCH,
            payload: Vec::new(),
        });
    }
    Ok(claimed)
}

/// Says how many messages were settled, and which were not: their claims had run out.
fn print_settled(what: &str, claimed: &[Claimed], late: &[i64]) -> anyhow::Result<Exit> {
    // Settling a message twice is not an error, but another worker may have it by now.
    let settled = claimed.len() - late.len();
    terminal::print(&format!("{} {what}", messages(settled as u64)))?;
    if late.is_empty() {
        return Ok(Exit::Done);
    }
    let late: Vec<String> = late.iter().map(ToString::to_string).collect();
    let late = late.join(", ");
    eprintln!("too late for {late}: their claims had run out, and they are delivered again");
    Ok(Exit::No)
}

fn dead(args: &PubsubQueueDeadArgs) -> anyhow::Result<()> {
    let mut queue = open(&args.queue)?;
    // A dead letter that is a message again begins with no claims, as if it had just been sent.
    if args.redrive {
        let risen = counted(queue.redrive(args.count)? as u64, "dead letter");
        return terminal::print(&format!("{risen} back in the queue"));
    }
    if args.delete {
        let deleted = counted(queue.forget_dead()? as u64, "dead letter");
        return terminal::print(&format!("{deleted} deleted"));
    }
    for letter in queue.dead_letters(args.count)? {
        let line = json!({
            "id": letter.message_id,
            "attempts": letter.attempts,
            "reason": letter.reason,
            "sent_at_us": microseconds(letter.sent_at),
            "died_at_us": microseconds(letter.died_at),
            "payload": shown(&letter.payload),
        });
        terminal::print(&line.to_string())?;
    }
    Ok(())
}
