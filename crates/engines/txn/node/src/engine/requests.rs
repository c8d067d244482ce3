//! Frames that arrive on the connections of a worker thread: first authentication, then
//! messages for partitions of this thread.

use std::ops::ControlFlow;

use dyno_net::{Closed, FrameRef, Handler, Head, Outbound, PortId};
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_core::message::Message;

use super::clients::Move;
use super::figures::sums;
use super::layout::Layout;
use super::pass::Pass;
use crate::backup_service::answer;
use crate::error::{bad_argument, unavailable};
use crate::greet::{check_token, end_on_error};
use crate::hello::{
    BACKUP, BACKUP_STATE, FIGURES, HELLO, Hello, MAP, MAP_ASK, MEMBER_HELLO, MEMBER_WELCOME,
    MESSAGE, MemberHello, ORACLE, STATS, WELCOME, Welcome,
};
use crate::member::ClusterMap;

/// A pass as the reactor sees it.
pub(crate) struct RequestHandler<'a> {
    pub pass: Pass<'a>,
}

impl Handler for RequestHandler<'_> {
    fn frame(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> ControlFlow<()> {
        let handled = self.on_frame(port, frame, out);
        end_on_error(handled, frame.head.request, out)
    }

    fn is_admitted(&self, port: PortId) -> bool {
        self.pass.clients.is_authenticated(port) || self.pass.peers.members.contains(&port)
    }

    fn close(&mut self, port: PortId, _why: Closed) {
        if let Err(error) = self.pass.disconnect(port) {
            self.pass.shard.fail(error);
        }
    }
}

impl RequestHandler<'_> {
    /// An error ends the connection, because the other end does not keep to the protocol. What a
    /// client asks for and cannot have is answered, and is not an error here.
    fn on_frame(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> Result<()> {
        if !self.pass.clients.is_client(port) {
            return self.on_unauthenticated_frame(port, frame, out);
        }
        match frame.head.verb {
            MESSAGE => {
                let to = frame.head.request;
                if to != ORACLE && !self.pass.shard.hosts(to) {
                    let text = format!("partition {to} is not one of this connection's thread");
                    return Err(bad_argument(text));
                }
                if !self.pass.on_client_bytes(port, to, frame.body) {
                    let message = Message::decode(frame.body)?;
                    self.pass.on_client_message(port, to, message, out);
                }
                Ok(())
            }
            STATS => {
                let mut text = String::new();
                for (name, value) in sums(&self.pass.shared.figures) {
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
                let service = self.pass.shared.backup_service.get();
                let state = answer(service.map(|service| &**service), frame.body);
                let head = Head {
                    verb: BACKUP_STATE,
                    ..frame.head
                };
                // A full outbox: this client does not read, and will ask again.
                let _ = out.send(head, &[&state]);
                Ok(())
            }
            MAP_ASK => {
                let head = Head {
                    verb: MAP,
                    ..frame.head
                };
                out.send(head, &[&self.map()]).map_err(unavailable)
            }
            verb => Err(bad_argument(format!("verb {verb} is not known"))),
        }
    }

    fn map(&self) -> Vec<u8> {
        let Layout {
            partitions,
            threads,
            ..
        } = self.pass.shard.layout;
        match &self.pass.shared.member {
            Some(member) => member.map().encode(),
            None => ClusterMap::single(partitions, threads as u32).encode(),
        }
    }

    /// Handles a frame on any connection that is not an authenticated client's.
    fn on_unauthenticated_frame(
        &mut self,
        port: PortId,
        frame: FrameRef<'_>,
        out: &mut Outbound,
    ) -> Result<()> {
        if let Some(peer) = self.pass.peers.peer(port) {
            return self.pass.on_link_frame(peer, frame);
        }
        if self.pass.peers.members.contains(&port) {
            return self.pass.on_member_frame(frame);
        }
        match frame.head.verb {
            MEMBER_HELLO => self.on_member_hello(port, frame, out),
            _ => self.on_client_hello(port, frame, out),
        }
    }

    /// Another process of the database wants to send messages to one of these threads.
    fn on_member_hello(
        &mut self,
        port: PortId,
        frame: FrameRef<'_>,
        out: &mut Outbound,
    ) -> Result<()> {
        let hello = MemberHello::decode(frame.body)?;
        check_token(self.pass.shared.token.as_ref(), &hello.token)?;
        let layout = self.pass.shard.layout;
        let thread = hello.core as usize;
        let is_same = (hello.of, hello.partitions) == (layout.of, layout.partitions);
        if layout.of == 1 || !is_same || hello.part == layout.part || thread >= layout.threads {
            return Err(bad_argument(
                "a process of another database, or of another form of this one",
            ));
        }
        let head = Head {
            verb: MEMBER_WELCOME,
            ..frame.head
        };
        out.send(head, &[&[1]]).map_err(unavailable)?;
        self.pass.peers.members.insert(port);
        self.move_to(port, thread);
        Ok(())
    }

    fn on_client_hello(
        &mut self,
        port: PortId,
        frame: FrameRef<'_>,
        out: &mut Outbound,
    ) -> Result<()> {
        if frame.head.verb != HELLO {
            return Err(Error::new(Code::Denied, "the first frame is not a hello"));
        }
        let hello = Hello::decode(frame.body)?;
        check_token(self.pass.shared.token.as_ref(), &hello.token)?;
        // Refused and not held up, so that a client which knows several processes goes on to the
        // next.
        if self.pass.peers.is_recovering() {
            let text = "this process recovers: no oracle has given it a timestamp yet";
            return Err(unavailable(text));
        }
        let (thread, threads) = (hello.core as usize, self.pass.shard.layout.threads);
        if thread >= threads {
            let text = format!("core {thread}: the engine has {threads} threads");
            return Err(bad_argument(text));
        }
        let welcome = Welcome {
            cores: threads as u32,
            partitions: self.pass.shard.layout.partitions,
            durability: self.pass.shared.durability,
        };
        let head = Head {
            verb: WELCOME,
            flags: 0,
            request: frame.head.request,
        };
        out.send(head, &[&welcome.encode()]).map_err(unavailable)?;
        self.pass.clients.authenticate(port);
        self.move_to(port, thread);
        Ok(())
    }

    /// Has the connection go to the thread that it asked for. It moves at the end of the pass,
    /// since the reactor still holds it now; the welcome goes with it.
    fn move_to(&mut self, port: PortId, thread: usize) {
        if thread != self.pass.shard.thread {
            self.pass.clients.moving.push(Move { port, thread });
        }
    }
}

/// Ignores all frames. A thread that ends polls with it once more, so that the answers it has
/// queued are written to their connections.
pub(crate) struct NullHandler;

impl Handler for NullHandler {
    fn frame(&mut self, _: PortId, _: FrameRef<'_>, _: &mut Outbound) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
