//! What a connection has said about itself, and what becomes of its commands: units for the engine,
//! or replies that need no engine.

use std::collections::VecDeque;
use std::time::Instant;

use crate::arguments::arguments;
use crate::batch::Unit;
use crate::commands::{self, is_arity, wrong_arity};
use crate::local::{self, Facts, Local};
use crate::reply::{Protocol, Reply};
use crate::wire::COMMAND_BYTES_MAX;

/// Bytes of an unknown command's arguments that its error shows.
const SHOWN_BYTES: usize = 128;

/// The state of one connection.
pub struct Session {
    /// The number of the connection, which no other one has had.
    pub id: u64,
    /// The peer's address, as text.
    pub peer: String,
    /// The version of the protocol behind the last command.
    pub protocol: Protocol,
    /// From when on the client has time to show the token: when it came, or when it gave its
    /// admission up with a `RESET`.
    pub since: Instant,
    /// Whether the client has shown the token, or needs none.
    pub is_admitted: bool,
    /// Whether the connection ends once its replies are written.
    pub closes: bool,
    /// The name that the client has given its connection.
    pub name: Vec<u8>,
    /// The library that the client says it is, and its version.
    pub library: [Vec<u8>; 2],
    queued: Option<Queued>,
}

/// Commands between `MULTI` and `EXEC`.
#[derive(Default)]
struct Queued {
    commands: Vec<Vec<u8>>,
    bytes: usize,
    /// Whether one of them was refused, so that `EXEC` runs none.
    is_refused: bool,
}

/// A command that exists, with a number of arguments that it takes.
#[derive(Clone, Copy)]
enum ResolvedCommand {
    Engine,
    Local(Local),
}

impl Session {
    /// The session of a connection that has sent nothing yet.
    pub fn new(id: u64, peer: String, facts: &Facts) -> Self {
        Self {
            id,
            peer,
            protocol: Protocol::default(),
            since: Instant::now(),
            is_admitted: facts.token.is_none(),
            closes: false,
            name: Vec::new(),
            library: Default::default(),
            queued: None,
        }
    }

    /// Whether commands are queued for an `EXEC`.
    pub fn is_queueing(&self) -> bool {
        self.queued.is_some()
    }

    /// Takes a command, with its arguments encoded, and appends what is to be done.
    pub fn accept(&mut self, bytes: Vec<u8>, facts: &Facts, units: &mut VecDeque<Unit>) {
        let Some(list) = arguments(&bytes) else {
            return;
        };
        let Some(name) = list.first() else {
            return;
        };
        let resolved = resolve(&list);
        let is_free = matches!(resolved, Ok(ResolvedCommand::Local(local)) if local.is_free());
        let refusal = match &resolved {
            Err(text) => Some(text.clone()),
            Ok(_) if !self.is_admitted && !is_free => {
                Some("NOAUTH Authentication required.".to_owned())
            }
            Ok(_) => None,
        };
        if let Some(text) = refusal {
            return self.refuse(name, text, units);
        }
        let is_control =
            matches!(resolved, Ok(ResolvedCommand::Local(local)) if local.is_control());
        match (&mut self.queued, resolved) {
            (Some(queued), _) if !is_control => {
                queued.bytes += bytes.len();
                // They travel to the engine in one call, which has a limit.
                if queued.bytes > COMMAND_BYTES_MAX {
                    let text = format!("ERR a transaction of more than {COMMAND_BYTES_MAX} bytes");
                    return self.refuse(b"", text, units);
                }
                queued.commands.push(bytes);
                self.reply(units, |reply| reply.simple("QUEUED"));
            }
            (_, Ok(ResolvedCommand::Local(local))) => self.run_local(local, &list, facts, units),
            (_, Ok(ResolvedCommand::Engine)) => units.push_back(Unit::Command(bytes)),
            (_, Err(_)) => {}
        }
    }

    /// Answers with an error. A transaction that is being queued cannot be run any more.
    fn refuse(&mut self, name: &[u8], text: String, units: &mut VecDeque<Unit>) {
        // Redis says so of every EXEC that it refuses, also of one without a MULTI.
        if name.eq_ignore_ascii_case(b"exec") {
            self.queued = None;
            units.push_back(Unit::Unwatch);
            let why = text.strip_prefix("ERR ").unwrap_or(&text);
            let text = format!("EXECABORT Transaction discarded because of: {why}");
            return self.reply(units, |reply| reply.error(&text));
        }
        if let Some(queued) = &mut self.queued {
            queued.is_refused = true;
            // They will not be run, so they need not be kept.
            queued.commands.clear();
        }
        self.reply(units, |reply| reply.error(&text));
    }

    /// Appends a reply that needs no engine.
    pub fn reply(&self, units: &mut VecDeque<Unit>, write: impl FnOnce(&mut Reply)) {
        let mut reply = Reply::new(self.protocol);
        write(&mut reply);
        units.push_back(Unit::Literal(reply.finish()));
    }

    fn run_local(
        &mut self,
        local: Local,
        list: &[&[u8]],
        facts: &Facts,
        units: &mut VecDeque<Unit>,
    ) {
        match local {
            Local::Multi if self.queued.is_some() => {
                self.reply(units, |reply| {
                    reply.error("ERR MULTI calls can not be nested")
                });
            }
            Local::Multi => {
                self.queued = Some(Queued::default());
                self.reply(units, |reply| reply.simple("OK"));
            }
            Local::Discard => match self.queued.take() {
                None => self.reply(units, |reply| reply.error("ERR DISCARD without MULTI")),
                Some(_) => {
                    units.push_back(Unit::Unwatch);
                    self.reply(units, |reply| reply.simple("OK"));
                }
            },
            Local::Exec => self.exec(facts, units),
            Local::Watch if self.queued.is_some() => {
                let text = "ERR WATCH inside MULTI is not allowed";
                self.reply(units, |reply| reply.error(text));
            }
            Local::Watch => {
                let mut builder = crate::arguments::ArgumentsBuilder::default();
                list.iter().for_each(|argument| builder.push(argument));
                units.push_back(Unit::Watch(builder.finish()));
            }
            Local::Unwatch => {
                units.push_back(Unit::Unwatch);
                self.reply(units, |reply| reply.simple("OK"));
            }
            Local::Reset => self.reset(facts, units),
            Local::Quit => {
                self.closes = true;
                self.reply(units, |reply| reply.simple("OK"));
            }
            other => {
                let before = self.protocol;
                let literal = local::run(other, self, list, facts);
                if self.protocol != before {
                    units.push_back(Unit::Protocol(self.protocol));
                }
                units.push_back(Unit::Literal(literal));
            }
        }
    }

    fn exec(&mut self, facts: &Facts, units: &mut VecDeque<Unit>) {
        let Some(queued) = self.queued.take() else {
            return self.reply(units, |reply| reply.error("ERR EXEC without MULTI"));
        };
        if queued.is_refused {
            units.push_back(Unit::Unwatch);
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return self.reply(units, |reply| reply.error(text));
        }
        // Commands that need no engine are answered now, in their order, and their replies travel
        // with the others, so that the transaction's reply is one array.
        let (mut inner, mut reply_bytes) = (VecDeque::new(), 0);
        for command in queued.commands {
            let from = inner.len();
            self.accept(command, facts, &mut inner);
            reply_bytes += inner.range(from..).map(literal_bytes).sum::<usize>();
            // A command of some bytes can have a reply of kilobytes, such as `COMMAND`.
            if reply_bytes > COMMAND_BYTES_MAX {
                // A HELLO among them was carried out.
                units.push_back(Unit::Protocol(self.protocol));
                units.push_back(Unit::Unwatch);
                let text = format!(
                    "EXECABORT Transaction discarded because of: replies of more than \
                     {COMMAND_BYTES_MAX} bytes"
                );
                return self.reply(units, |reply| reply.error(&text));
            }
        }
        units.push_back(Unit::Exec(inner.into()));
    }

    fn reset(&mut self, facts: &Facts, units: &mut VecDeque<Unit>) {
        let peer = std::mem::take(&mut self.peer);
        let (was_admitted, since) = (self.is_admitted, self.since);
        *self = Session::new(self.id, peer, facts);
        // A client that has not shown the token does not get more time for it by asking again.
        if !was_admitted {
            self.since = since;
        }
        units.push_back(Unit::Unwatch);
        units.push_back(Unit::Protocol(self.protocol));
        self.reply(units, |reply| reply.simple("RESET"));
    }
}

/// Bytes of a reply that needs no engine.
fn literal_bytes(unit: &Unit) -> usize {
    match unit {
        Unit::Literal(bytes) => bytes.len(),
        _ => 0,
    }
}

/// The command that a client has named, or the error for a name that there is not, or for a number
/// of arguments that it does not take.
fn resolve(list: &[&[u8]]) -> Result<ResolvedCommand, String> {
    let name = list[0];
    if let Some(command) = commands::find(name) {
        return if is_arity(command.arity, list.len()) {
            Ok(ResolvedCommand::Engine)
        } else {
            Err(wrong_arity(command.name))
        };
    }
    match local::find(name) {
        Some(local) => local::check(local, list).map(|()| ResolvedCommand::Local(local)),
        None => Err(unknown(list)),
    }
}

/// The error for a command that there is not, with as many of its arguments as Redis shows.
fn unknown(list: &[&[u8]]) -> String {
    // Redis prints C strings, which end at a zero.
    let shown = |bytes: &[u8], most: usize| {
        let end = bytes.iter().position(|byte| *byte == 0);
        let end = end.unwrap_or(bytes.len()).min(most);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    let mut arguments = String::new();
    for argument in &list[1..] {
        if arguments.len() >= SHOWN_BYTES {
            break;
        }
        let most = SHOWN_BYTES - arguments.len();
        arguments += &format!("'{}' ", shown(argument, most));
    }
    let name = shown(list[0], SHOWN_BYTES);
    format!("ERR unknown command '{name}', with args beginning with: {arguments}")
}
