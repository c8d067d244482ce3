//! What clients may say: first who they are, then messages for partitions of this thread.

use std::ops::ControlFlow;

use dyno_net::{Closed, FrameRef, Handler, Head, Outbound, PortId};
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_core::message::Message;

use super::figures::sums;
use super::layout::Layout;
use super::work::Work;
use crate::backups::answer;
use crate::hello::{
    BACKUP, BACKUP_STATE, FIGURES, HELLO, Hello, MAP, MAP_ASK, MEMBER_HELLO, MEMBER_WELCOME,
    MESSAGE, MemberHello, ORACLE, REFUSED, STATS, WELCOME, Welcome, encode_refusal,
};
use crate::member::Map;

/// A thread's work as its connections see it.
pub(crate) struct Door<'a> {
    pub work: &'a mut Work,
}

impl Handler for Door<'_> {
    fn frame(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> ControlFlow<()> {
        match self.take(port, frame, out) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                let request = frame.head.request;
                let head = Head {
                    verb: REFUSED,
                    flags: 0,
                    request,
                };
                // A client that cannot be told why sees that its connection ends.
                let _ = out.send(head, &[&encode_refusal(&error)]);
                ControlFlow::Break(())
            }
        }
    }

    fn is_admitted(&self, port: PortId) -> bool {
        self.work.welcomed.contains(&port) || self.work.members.contains(&port)
    }

    fn close(&mut self, port: PortId, _why: Closed) {
        if let Err(error) = self.work.unwelcome(port) {
            self.work.failed.get_or_insert(error);
        }
    }
}

impl Door<'_> {
    /// An error ends the connection: it is of somebody who does not keep to the protocol.
    fn take(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> Result<()> {
        if self.work.last_welcomed != Some(port) {
            if !self.work.welcomed.contains(&port) {
                return self.stranger(port, frame, out);
            }
            self.work.last_welcomed = Some(port);
        }
        match frame.head.verb {
            MESSAGE => {
                let to = frame.head.request;
                if to != ORACLE && !self.work.hosts(to) {
                    let text = format!("partition {to} is not of this connection");
                    return Err(Error::new(Code::BadArgument, text));
                }
                if !self.work.hear_bytes(port, to, frame.body) {
                    let message = Message::decode(frame.body)?;
                    self.work.hear_client(port, to, message, out);
                }
                Ok(())
            }
            STATS => {
                let mut text = String::new();
                for (name, value) in sums(&self.work.shared.figures) {
                    text.push_str(&format!("{name} {value}\n"));
                }
                let head = Head {
                    verb: FIGURES,
                    ..frame.head
                };
                // A full outbox: this client does not read, and will not miss figures.
                let _ = out.send(head, &[text.as_bytes()]);
                Ok(())
            }
            BACKUP => {
                let said = answer(self.work.shared.desk.get().map(|desk| &**desk), frame.body);
                let head = Head {
                    verb: BACKUP_STATE,
                    ..frame.head
                };
                // A full outbox: this client does not read, and will ask again.
                let _ = out.send(head, &[&said]);
                Ok(())
            }
            MAP_ASK => {
                let map = match &self.work.shared.member {
                    Some(member) => member.map().encode(),
                    None => {
                        let Layout {
                            partitions,
                            threads,
                            ..
                        } = self.work.layout;
                        Map::single(partitions, threads as u32).encode()
                    }
                };
                let head = Head {
                    verb: MAP,
                    ..frame.head
                };
                out.send(head, &[&map])
                    .map_err(|error| Error::new(Code::Unavailable, error))
            }
            verb => Err(Error::new(
                Code::BadArgument,
                format!("verb {verb} is unknown"),
            )),
        }
    }

    /// Somebody who is no client, or not yet.
    fn stranger(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> Result<()> {
        let elsewhere = self.work.elsewhere.as_ref();
        if let Some(whom) = elsewhere.and_then(|elsewhere| elsewhere.links.whom(port)) {
            return self.work.hear_link(whom, frame);
        }
        if self.work.members.contains(&port) {
            return self.work.hear_member(frame);
        }
        match frame.head.verb {
            MEMBER_HELLO => self.member_hello(port, frame, out),
            _ => self.hello(port, frame, out),
        }
    }

    /// Another process of the database wants to send to a thread of this one.
    fn member_hello(
        &mut self,
        port: PortId,
        frame: FrameRef<'_>,
        out: &mut Outbound,
    ) -> Result<()> {
        let hello = MemberHello::decode(frame.body)?;
        self.check_token(&hello.token)?;
        let layout = self.work.layout;
        let (core, same) = (
            hello.core as usize,
            (hello.of, hello.partitions) == (layout.of, layout.partitions),
        );
        if layout.of == 1 || !same || hello.part == layout.part || core >= layout.threads {
            return Err(Error::new(
                Code::BadArgument,
                "a process of another database, or of another form of this one",
            ));
        }
        let head = Head {
            verb: MEMBER_WELCOME,
            ..frame.head
        };
        out.send(head, &[&[1]])
            .map_err(|error| Error::new(Code::Unavailable, error))?;
        self.work.members.insert(port);
        if core != self.work.index {
            self.work.moving.push((port, core));
        }
        Ok(())
    }

    fn check_token(&self, shown: &[u8]) -> Result<()> {
        match &self.work.shared.token {
            Some(token) if !token.is(shown) => {
                Err(Error::new(Code::Denied, "the token is not this server's"))
            }
            _ => Ok(()),
        }
    }

    fn hello(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> Result<()> {
        if frame.head.verb != HELLO {
            return Err(Error::new(Code::Denied, "the first frame is a hello"));
        }
        let hello = Hello::decode(frame.body)?;
        self.check_token(&hello.token)?;
        if self.work.is_recovering() {
            let text = "this process recovers: no oracle has given it a stamp yet";
            return Err(Error::new(Code::Unavailable, text));
        }
        let (core, threads) = (hello.core as usize, self.work.layout.threads);
        if core >= threads {
            let text = format!("core {core}: the engine has {threads} threads");
            return Err(Error::new(Code::BadArgument, text));
        }
        let welcome = Welcome {
            cores: threads as u32,
            partitions: self.work.layout.partitions,
            durability: self.work.shared.durability,
        };
        let head = Head {
            verb: WELCOME,
            flags: 0,
            request: frame.head.request,
        };
        out.send(head, &[&welcome.encode()])
            .map_err(|error| Error::new(Code::Unavailable, error))?;
        self.work.welcomed.insert(port);
        if core != self.work.index {
            self.work.moving.push((port, core));
        }
        Ok(())
    }
}

/// Hears nothing, so that what is written can still be read.
pub(crate) struct Deaf;

impl Handler for Deaf {
    fn frame(&mut self, _: PortId, _: FrameRef<'_>, _: &mut Outbound) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
