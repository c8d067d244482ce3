//! The commands that read or write keys. They run inside the engine, in a transaction.
//!
//! A command answers its client with an error by returning [`Failure::Reply`] before it has changed
//! anything. An error of the engine ends the whole transaction, which then has no effect or is run
//! again.

mod expiry;
mod hashes;
mod keys;
mod numbers;
mod scans;
mod strings;
mod values;

pub use scans::rows_from;

use std::borrow::Cow;

use dyno_txn_api::Error;

use crate::arguments::arguments;
use crate::keyspace::Keyspace;
use crate::reply::Reply;
use crate::row::{CONTENT_MAX, KEY_MAX};
use crate::wire::integer;

/// Why a command was not carried out.
#[derive(Debug)]
pub enum Failure {
    /// What the client is told.
    Reply(Cow<'static, str>),
    /// An error of the engine, or one that has it run the transaction again.
    Engine(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Engine(error)
    }
}

impl From<&'static str> for Failure {
    fn from(text: &'static str) -> Self {
        Failure::Reply(text.into())
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Failure::Reply(text.into())
    }
}

/// The result of a command, whose reply is written on the way.
pub type Done = Result<(), Failure>;

/// A command and all it needs, once it runs.
pub struct Call<'a, 'k> {
    /// The name and the arguments of the command, as the client sent them.
    pub arguments: &'a [&'a [u8]],
    /// The keys as this batch sees them.
    pub keys: &'a mut Keyspace<'k>,
    /// Where the reply goes, unless the command fails.
    pub reply: &'a mut Reply,
    /// The name in lower case, for errors.
    pub name: &'static str,
}

/// The function that carries a command out.
pub type Run = fn(&mut Call<'_, '_>) -> Done;

/// Which arguments of a command are keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyArguments {
    /// The first of them, counted from the command's name; 0 if it takes no keys.
    pub first: usize,
    /// The last of them; -1 for the last argument.
    pub last: i32,
    /// The distance from each of them to the next.
    pub step: usize,
}

/// A command that runs in the engine.
pub struct Command {
    /// The name in lower case.
    pub name: &'static str,
    /// The number of arguments with the name; at least as many if negative.
    pub arity: i32,
    /// Whether it may write.
    pub writes: bool,
    /// Which arguments are keys.
    pub keys: KeyArguments,
    /// The function that carries it out.
    pub run: Run,
}

const NONE: KeyArguments = keys(0, 0, 0);
const ONE: KeyArguments = keys(1, 1, 1);
const ALL: KeyArguments = keys(1, -1, 1);
const PAIRS: KeyArguments = keys(1, -1, 2);

const fn keys(first: usize, last: i32, step: usize) -> KeyArguments {
    KeyArguments { first, last, step }
}

const fn read(name: &'static str, arity: i32, keys: KeyArguments, run: Run) -> Command {
    Command {
        name,
        arity,
        writes: false,
        keys,
        run,
    }
}

const fn write(name: &'static str, arity: i32, keys: KeyArguments, run: Run) -> Command {
    Command {
        name,
        arity,
        writes: true,
        keys,
        run,
    }
}

/// All commands that run in the engine, in alphabetical order.
pub const COMMANDS: &[Command] = &[
    write("append", 3, ONE, strings::append),
    read("dbsize", 1, NONE, scans::dbsize),
    write("decr", 2, ONE, numbers::decr),
    write("decrby", 3, ONE, numbers::decrby),
    write("del", -2, ALL, keys::del),
    read("exists", -2, ALL, keys::exists),
    write("expire", -3, ONE, expiry::expire),
    write("expireat", -3, ONE, expiry::expireat),
    read("expiretime", 2, ONE, expiry::expiretime),
    write("flushall", -1, NONE, scans::flush),
    write("flushdb", -1, NONE, scans::flush),
    read("get", 2, ONE, strings::get),
    write("getdel", 2, ONE, values::getdel),
    write("getex", -2, ONE, values::getex),
    read("getrange", 4, ONE, strings::getrange),
    write("getset", 3, ONE, values::getset),
    write("hdel", -3, ONE, hashes::hdel),
    read("hexists", 3, ONE, hashes::hexists),
    read("hget", 3, ONE, hashes::hget),
    read("hgetall", 2, ONE, hashes::hgetall),
    write("hincrby", 4, ONE, numbers::hincrby),
    read("hkeys", 2, ONE, hashes::hkeys),
    read("hlen", 2, ONE, hashes::hlen),
    read("hmget", -3, ONE, hashes::hmget),
    write("hmset", -4, ONE, hashes::hmset),
    write("hset", -4, ONE, hashes::hset),
    write("hsetnx", 4, ONE, hashes::hsetnx),
    read("hstrlen", 3, ONE, hashes::hstrlen),
    read("hvals", 2, ONE, hashes::hvals),
    write("incr", 2, ONE, numbers::incr),
    write("incrby", 3, ONE, numbers::incrby),
    read("keys", 2, NONE, scans::keys),
    read("mget", -2, ALL, strings::mget),
    write("mset", -3, PAIRS, values::mset),
    write("msetnx", -3, PAIRS, values::msetnx),
    write("persist", 2, ONE, expiry::persist),
    write("pexpire", -3, ONE, expiry::pexpire),
    write("pexpireat", -3, ONE, expiry::pexpireat),
    read("pexpiretime", 2, ONE, expiry::pexpiretime),
    write("psetex", 4, ONE, values::psetex),
    read("pttl", 2, ONE, expiry::pttl),
    read("scan", -2, NONE, scans::scan),
    write("set", -3, ONE, values::set),
    write("setex", 4, ONE, values::setex),
    write("setnx", 3, ONE, values::setnx),
    write("setrange", 4, ONE, strings::setrange),
    read("strlen", 2, ONE, strings::strlen),
    read("ttl", 2, ONE, expiry::ttl),
    read("type", 2, ONE, keys::type_of),
    write("unlink", -2, ALL, keys::del),
];

/// The names of [`COMMANDS`] as numbers, which are in the same order.
static NUMBERS: [u128; COMMANDS.len()] = {
    let mut numbers = [0; COMMANDS.len()];
    let mut at = 0;
    while at < numbers.len() {
        numbers[at] = number(COMMANDS[at].name.as_bytes());
        at += 1;
    }
    numbers
};

/// The longest name that fits into a number.
const NAME_MAX: usize = size_of::<u128>();

/// A name as a number that has the place of the name in the alphabet. Each command is looked for
/// several times on its way, and numbers are compared faster than names.
const fn number(name: &[u8]) -> u128 {
    let mut lower = [0; NAME_MAX];
    let mut at = 0;
    while at < name.len() {
        lower[at] = name[at].to_ascii_lowercase();
        at += 1;
    }
    u128::from_be_bytes(lower)
}

/// The command with this name, in any case of letters.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    // A zero in a name would be taken for its end.
    if name.len() > NAME_MAX || name.contains(&0) {
        return None;
    }
    let at = NUMBERS.binary_search(&number(name));
    at.ok().map(|at| &COMMANDS[at])
}

/// Whether a command may have this many arguments, with its name.
pub fn is_arity(arity: i32, arguments: usize) -> bool {
    match arity {
        0.. => arguments == arity as usize,
        _ => arguments >= arity.unsigned_abs() as usize,
    }
}

/// The error for a number of arguments that the command does not take.
pub fn wrong_arity(name: &str) -> String {
    format!("ERR wrong number of arguments for '{name}' command")
}

impl Command {
    /// Whether it may set a key that is absent.
    pub fn may_create(&self) -> bool {
        const CHANGING: [&str; 10] = [
            "del",
            "expire",
            "expireat",
            "getdel",
            "getex",
            "hdel",
            "persist",
            "pexpire",
            "pexpireat",
            "unlink",
        ];
        self.writes && !CHANGING.contains(&self.name)
    }

    /// The keys among the arguments of a call, which are right in number.
    pub fn keys_of<'a>(
        &self,
        arguments: &'a [&'a [u8]],
    ) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let KeyArguments { first, last, step } = self.keys;
        let last = match last {
            -1 => arguments.len().saturating_sub(1),
            last => last as usize,
        };
        let range = match first {
            0 => &[][..],
            first => arguments.get(first..=last).unwrap_or(&[]),
        };
        range.iter().step_by(step.max(1)).copied()
    }
}

/// The first key of an encoded call, if it has one.
pub fn first_key(bytes: &[u8]) -> Option<&[u8]> {
    let list = arguments(bytes)?;
    // Only WATCH is not in the table and has keys.
    let at = find(list.first()?).map_or(1, |command| command.keys.first);
    let key = *list.get(at).filter(|_| at > 0)?;
    (key.len() <= KEY_MAX).then_some(key)
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
const SYNTAX: &str = "ERR syntax error";
const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

/// Runs a command whose number of arguments is right. An error for the client becomes the reply.
pub fn run(
    command: &'static Command,
    arguments: &[&[u8]],
    keys: &mut Keyspace<'_>,
    reply: &mut Reply,
) -> Result<(), Error> {
    let from = reply.len();
    // The engine refuses a longer key as well, but with an error that would end the transactions of
    // other commands of this batch.
    let is_too_long = command.keys_of(arguments).any(|key| key.len() > KEY_MAX);
    let mut call = Call {
        arguments,
        keys,
        reply,
        name: command.name,
    };
    let done = if is_too_long {
        Err(format!("ERR a key is longer than {KEY_MAX} bytes").into())
    } else {
        (command.run)(&mut call)
    };
    match done {
        Ok(()) => Ok(()),
        Err(Failure::Engine(error)) => Err(error),
        Err(Failure::Reply(text)) => {
            reply.truncate(from);
            reply.error(&text);
            Ok(())
        }
    }
}

impl Call<'_, '_> {
    /// An argument as an integer, or the error that it is not one.
    fn integer(&self, at: usize) -> Result<i64, Failure> {
        integer(self.arguments[at]).ok_or_else(|| NOT_AN_INTEGER.into())
    }
}

/// Refuses a content that does not fit into a row.
fn check_size(bytes: usize) -> Done {
    if bytes <= CONTENT_MAX {
        Ok(())
    } else {
        Err(TOO_LONG.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_their_names() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        for command in COMMANDS {
            let upper = command.name.to_ascii_uppercase();
            assert!(find(upper.as_bytes()).is_some_and(|found| found.name == command.name));
        }
        for name in [
            "",
            "nothing",
            "get\0",
            "a-name-that-is-longer-than-any-command",
        ] {
            assert!(find(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn keys_are_where_the_table_says() {
        let of = |call: &[&'static str]| -> Vec<&'static str> {
            let arguments: Vec<&[u8]> = call.iter().map(|text| text.as_bytes()).collect();
            let command = find(arguments[0]).expect("a command");
            let keys: Vec<Vec<u8>> = command.keys_of(&arguments).map(<[u8]>::to_vec).collect();
            let is_key = |text: &&&str| keys.iter().any(|key| key == text.as_bytes());
            call.iter().filter(is_key).copied().collect()
        };
        assert_eq!(of(&["mset", "a", "1", "b", "2"]), ["a", "b"]);
        assert_eq!(of(&["del", "a", "b"]), ["a", "b"]);
        assert_eq!(of(&["hset", "h", "f", "v"]), ["h"]);
        assert!(of(&["dbsize"]).is_empty());
    }
}
