//! Commands that need no engine: about the connection, and about the server.

use std::fmt::Write;
use std::time::Instant;

use dyno_serve::Token;

use crate::commands::{COMMANDS, Command, is_arity, wrong_arity};
use crate::figures::Figures;
use crate::glob::{self, matches};
use crate::reply::{Protocol, Reply};
use crate::session::Session;
use crate::wire::{BULK_BYTES_MAX, integer};

/// The version of Redis whose commands and errors are spoken here. Clients look at it to know what
/// they may send.
const REDIS_VERSION: &str = "7.0.15";

/// What replies about the server say, and what connections are judged by.
pub struct Facts {
    /// The secret that clients must show with `AUTH` or `HELLO`.
    pub token: Option<Token>,
    /// When a commit is answered, in the engine's words.
    pub durability: String,
    /// Partitions of the database.
    pub partitions: u32,
    /// The port at which clients connect.
    pub port: u16,
    /// The most connections.
    pub most_connections: usize,
    /// When the server started.
    pub started: Instant,
    /// What is counted.
    pub figures: Figures,
}

/// A command that needs no engine. `Watch` and `Exec` only begin here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Local {
    Auth,
    Client,
    Command,
    Config,
    Discard,
    Echo,
    Exec,
    Hello,
    Info,
    Multi,
    Ping,
    Quit,
    Reset,
    Select,
    Unwatch,
    Watch,
}

/// Names, and numbers of arguments with the name: at least as many if negative.
const LOCALS: &[(&str, i32, Local)] = &[
    ("auth", -2, Local::Auth),
    ("client", -2, Local::Client),
    ("command", -1, Local::Command),
    ("config", -2, Local::Config),
    ("discard", 1, Local::Discard),
    ("echo", 2, Local::Echo),
    ("exec", 1, Local::Exec),
    ("hello", -1, Local::Hello),
    ("info", -1, Local::Info),
    ("multi", 1, Local::Multi),
    ("ping", -1, Local::Ping),
    ("quit", -1, Local::Quit),
    ("reset", 1, Local::Reset),
    ("select", 2, Local::Select),
    ("unwatch", 1, Local::Unwatch),
    ("watch", -2, Local::Watch),
];

/// Subcommands, with the number of arguments of each.
const SUBCOMMANDS: &[(Local, &str, i32)] = &[
    (Local::Client, "getname", 2),
    (Local::Client, "id", 2),
    (Local::Client, "info", 2),
    (Local::Client, "setinfo", 4),
    (Local::Client, "setname", 3),
    (Local::Command, "count", 2),
    (Local::Command, "docs", -2),
    (Local::Command, "info", -2),
    (Local::Config, "get", -3),
];

impl Local {
    /// Whether a client may send it before it has shown the token.
    pub fn is_free(self) -> bool {
        matches!(
            self,
            Local::Auth | Local::Hello | Local::Quit | Local::Reset
        )
    }

    /// Whether it is carried out between `MULTI` and `EXEC` instead of being queued.
    pub fn is_control(self) -> bool {
        matches!(
            self,
            Local::Multi | Local::Exec | Local::Discard | Local::Watch | Local::Quit | Local::Reset
        )
    }
}

/// The command with this name, in any case of letters.
pub fn find(name: &[u8]) -> Option<Local> {
    let is = |(known, ..): &&(&str, i32, Local)| name.eq_ignore_ascii_case(known.as_bytes());
    LOCALS.iter().find(is).map(|(.., local)| *local)
}

/// Checks the number of arguments, and the subcommand if the command has some.
pub fn check(local: Local, list: &[&[u8]]) -> Result<(), String> {
    let named = LOCALS.iter().find(|(.., known)| *known == local);
    let (name, arity) = named.map_or(("", 0), |(name, arity, _)| (*name, *arity));
    let mut subcommands = SUBCOMMANDS
        .iter()
        .filter(|(of, ..)| *of == local)
        .peekable();
    if let (Some(_), Some(sub)) = (subcommands.peek(), list.get(1)) {
        let is = |(_, known, _): &&(Local, &str, i32)| sub.eq_ignore_ascii_case(known.as_bytes());
        return match subcommands.find(is) {
            Some((_, _, arity)) if is_arity(*arity, list.len()) => Ok(()),
            Some((_, known, _)) => Err(wrong_arity(&format!("{name}|{known}"))),
            None => {
                let (sub, upper) = (String::from_utf8_lossy(sub), name.to_ascii_uppercase());
                Err(format!("ERR unknown subcommand '{sub}'. Try {upper} HELP."))
            }
        };
    }
    if is_arity(arity, list.len()) {
        Ok(())
    } else {
        Err(wrong_arity(name))
    }
}

/// Carries out a command that has been checked. Returns its reply.
pub fn run(local: Local, session: &mut Session, list: &[&[u8]], facts: &Facts) -> Vec<u8> {
    // The reply to HELLO is in the version that it chooses.
    let chosen = match local {
        Local::Hello => hello(session, list, facts),
        _ => Ok(()),
    };
    let mut reply = Reply::new(session.protocol);
    let done = chosen.and_then(|()| match local {
        Local::Auth => auth(session, list, facts, &mut reply),
        Local::Client => client(session, list, &mut reply),
        Local::Command => command(list, &mut reply),
        Local::Config => config(list, facts, &mut reply),
        Local::Echo => {
            reply.bulk(list[1]);
            Ok(())
        }
        Local::Hello => {
            greeting(session, &mut reply);
            Ok(())
        }
        Local::Info => {
            reply.text(&info(&list[1..], facts));
            Ok(())
        }
        Local::Ping => ping(list, &mut reply),
        Local::Select => select(list, &mut reply),
        // The session carries these out itself.
        _ => Ok(()),
    });
    if let Err(text) = done {
        reply.error(&text);
    }
    reply.finish()
}

fn ping(list: &[&[u8]], reply: &mut Reply) -> Result<(), String> {
    match list {
        [_] => reply.simple("PONG"),
        [_, message] => reply.bulk(message),
        _ => return Err(wrong_arity("ping")),
    }
    Ok(())
}

fn select(list: &[&[u8]], reply: &mut Reply) -> Result<(), String> {
    match integer(list[1]) {
        Some(0) => reply.simple("OK"),
        Some(_) => return Err("ERR DB index is out of range".to_owned()),
        None => return Err("ERR value is not an integer or out of range".to_owned()),
    }
    Ok(())
}

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// Admits a client that shows the token as the password of the user `default`, which is the only
/// one.
fn admit(session: &mut Session, user: &[u8], password: &[u8], facts: &Facts) -> Result<(), String> {
    // Without a token every password is right, as for a user of Redis without a password.
    let is_right = facts.token.as_ref().is_none_or(|token| token.is(password));
    if user != b"default" || !is_right {
        return Err(WRONG_PASSWORD.to_owned());
    }
    session.is_admitted = true;
    Ok(())
}

fn auth(
    session: &mut Session,
    list: &[&[u8]],
    facts: &Facts,
    reply: &mut Reply,
) -> Result<(), String> {
    match *list {
        [_, _] if facts.token.is_none() => {
            let text = "ERR AUTH <password> called without any password configured for the default \
                        user. Are you sure your configuration is correct?";
            return Err(text.to_owned());
        }
        [_, password] => admit(session, b"default", password, facts)?,
        [_, user, password] => admit(session, user, password, facts)?,
        _ => return Err("ERR syntax error".to_owned()),
    }
    reply.simple("OK");
    Ok(())
}

/// Does what a `HELLO` asks for; [`greeting`] is its reply.
fn hello(session: &mut Session, list: &[&[u8]], facts: &Facts) -> Result<(), String> {
    let protocol = match list.get(1).map(|version| integer(version)) {
        None => session.protocol,
        Some(Some(2)) => Protocol::Resp2,
        Some(Some(3)) => Protocol::Resp3,
        Some(Some(_)) => return Err("NOPROTO unsupported protocol version".to_owned()),
        Some(None) => {
            return Err("ERR Protocol version is not an integer or out of range".to_owned());
        }
    };
    let mut rest = list.get(2..).unwrap_or(&[]);
    let mut name = None;
    while let Some((option, after)) = rest.split_first() {
        let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
        rest = match after {
            [user, password, after @ ..] if is("auth") => {
                admit(session, user, password, facts)?;
                after
            }
            [value, after @ ..] if is("setname") => {
                check_name(value)?;
                name = Some(value.to_vec());
                after
            }
            _ => {
                let option = String::from_utf8_lossy(option);
                return Err(format!("ERR Syntax error in HELLO option '{option}'"));
            }
        };
    }
    if !session.is_admitted {
        let text = "NOAUTH HELLO must be called with the client already authenticated, otherwise \
                    the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the \
                    client and select the RESP protocol version at the same time";
        return Err(text.to_owned());
    }
    session.name = name.unwrap_or(std::mem::take(&mut session.name));
    session.protocol = protocol;
    Ok(())
}

fn greeting(session: &Session, reply: &mut Reply) {
    reply.map(7);
    for (key, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(match session.protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    });
    reply.bulk(b"id");
    reply.integer(session.id as i64);
    for (key, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
}

/// Refuses a name that would break the lines in which connections are listed.
fn check_name(name: &[u8]) -> Result<(), String> {
    if name.iter().all(u8::is_ascii_graphic) {
        Ok(())
    } else {
        let text = "ERR Client names cannot contain spaces, newlines or special characters.";
        Err(text.to_owned())
    }
}

fn client(session: &mut Session, list: &[&[u8]], reply: &mut Reply) -> Result<(), String> {
    match list[1].to_ascii_lowercase().as_slice() {
        b"id" => reply.integer(session.id as i64),
        b"getname" if session.name.is_empty() => reply.null(),
        b"getname" => reply.bulk(&session.name),
        b"setname" => {
            check_name(list[2])?;
            session.name = list[2].to_vec();
            reply.simple("OK");
        }
        b"setinfo" => {
            check_name(list[3])?;
            let at = match list[2].to_ascii_lowercase().as_slice() {
                b"lib-name" => 0,
                b"lib-ver" => 1,
                _ => {
                    let option = String::from_utf8_lossy(list[2]);
                    return Err(format!("ERR Unrecognized option '{option}'"));
                }
            };
            session.library[at] = list[3].to_vec();
            reply.simple("OK");
        }
        _ => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let multi = if session.is_queueing() { 0 } else { -1 };
            let line = format!(
                "id={} addr={} name={} db=0 multi={multi} resp={} lib-name={} lib-ver={}\n",
                session.id,
                session.peer,
                text(&session.name),
                match session.protocol {
                    Protocol::Resp2 => 2,
                    Protocol::Resp3 => 3,
                },
                text(&session.library[0]),
                text(&session.library[1]),
            );
            reply.text(&line);
        }
    }
    Ok(())
}

fn command(list: &[&[u8]], reply: &mut Reply) -> Result<(), String> {
    let Some(sub) = list.get(1) else {
        reply.array(COMMANDS.len() + LOCALS.len());
        COMMANDS.iter().for_each(|command| describe(command, reply));
        for (name, arity, _) in LOCALS {
            describe_local(name, *arity, reply);
        }
        return Ok(());
    };
    match sub.to_ascii_lowercase().as_slice() {
        b"count" => reply.count(COMMANDS.len() + LOCALS.len()),
        b"docs" => reply.map(0),
        _ if list.len() == 2 => return command(&list[..1], reply),
        _ => {
            reply.array(list.len() - 2);
            for name in &list[2..] {
                let local = find(name);
                let local = LOCALS.iter().find(|(.., known)| Some(*known) == local);
                match (crate::commands::find(name), local) {
                    (Some(command), _) => describe(command, reply),
                    (None, Some((name, arity, _))) => describe_local(name, *arity, reply),
                    (None, None) => reply.null_array(),
                }
            }
        }
    }
    Ok(())
}

/// A command as `COMMAND` describes it: name, arguments, flags, and where its keys are.
fn describe(command: &Command, reply: &mut Reply) {
    reply.array(6);
    reply.bulk(command.name.as_bytes());
    reply.integer(i64::from(command.arity));
    reply.array(1);
    reply.simple(if command.writes { "write" } else { "readonly" });
    reply.count(command.keys.first);
    reply.integer(i64::from(command.keys.last));
    reply.count(command.keys.step);
}

fn describe_local(name: &str, arity: i32, reply: &mut Reply) {
    reply.array(6);
    reply.bulk(name.as_bytes());
    reply.integer(i64::from(arity));
    reply.array(1);
    reply.simple("fast");
    // No keys, except for WATCH, all of whose arguments are keys.
    let (first, last, step) = if name == "watch" {
        (1, -1, 1)
    } else {
        (0, 0, 0)
    };
    for number in [first, last, step] {
        reply.integer(number);
    }
}

/// Settings that exist here, under the names that Redis has for them.
fn settings(facts: &Facts) -> [(&'static str, String); 7] {
    let is_kept = facts.durability != "memory";
    [
        // Redis' word for what happens before a commit is answered.
        (
            "appendfsync",
            if is_kept { "always" } else { "no" }.to_owned(),
        ),
        ("appendonly", if is_kept { "yes" } else { "no" }.to_owned()),
        ("databases", "1".to_owned()),
        ("maxclients", facts.most_connections.to_string()),
        ("port", facts.port.to_string()),
        ("proto-max-bulk-len", BULK_BYTES_MAX.to_string()),
        ("save", String::new()),
    ]
}

fn config(list: &[&[u8]], facts: &Facts, reply: &mut Reply) -> Result<(), String> {
    list[2..]
        .iter()
        .try_for_each(|pattern| glob::check(pattern))?;
    let settings = settings(facts);
    let is_meant = |name: &str| {
        let mut patterns = list[2..].iter();
        patterns.any(|pattern| matches(&pattern.to_ascii_lowercase(), name.as_bytes()))
    };
    let meant = settings.iter().filter(|(name, _)| is_meant(name));
    let meant: Vec<_> = meant.collect();
    reply.map(meant.len());
    for (name, value) in meant {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// The sections of `INFO`, all of them if none is named.
fn info(sections: &[&[u8]], facts: &Facts) -> String {
    let is_meant = |name: &str| {
        let all = ["all", "default", "everything"];
        sections.is_empty()
            || sections.iter().any(|section| {
                let is = |known: &str| section.eq_ignore_ascii_case(known.as_bytes());
                is(name) || all.iter().any(|known| is(known))
            })
    };
    let figures = &facts.figures;
    let mut text = String::new();
    // Writing to a string does not fail.
    if is_meant("server") {
        let _ = write!(
            text,
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\n\
             dyno_version:{}\r\nprocess_id:{}\r\ntcp_port:{}\r\nuptime_in_seconds:{}\r\n\r\n",
            env!("CARGO_PKG_VERSION"),
            std::process::id(),
            facts.port,
            facts.started.elapsed().as_secs(),
        );
    }
    if is_meant("clients") {
        let _ = write!(
            text,
            "# Clients\r\nconnected_clients:{}\r\nmaxclients:{}\r\n\r\n",
            figures.connections.get(),
            facts.most_connections,
        );
    }
    if is_meant("persistence") {
        let _ = write!(
            text,
            "# Persistence\r\nloading:0\r\naof_enabled:{}\r\ndyno_durability:{}\r\n\
             dyno_partitions:{}\r\n\r\n",
            u8::from(facts.durability != "memory"),
            facts.durability,
            facts.partitions,
        );
    }
    if is_meant("stats") {
        let _ = write!(
            text,
            "# Stats\r\ntotal_connections_received:{}\r\ntotal_commands_processed:{}\r\n\
             expired_keys:{}\r\n\r\n",
            figures.accepted.get(),
            figures.commands.get(),
            figures.expired.get(),
        );
    }
    if is_meant("replication") {
        text += "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";
    }
    text
}
