//! The groups that this server coordinates.
//!
//! Members and generations are in memory, offsets are in the database. Which server coordinates a
//! group is in the database, too, under a lease. A server whose lease has lapsed forgets its
//! groups, and the database refuses its commits, so that two servers never both speak for one.

mod generation;
mod group;
mod member;
mod reply;
mod static_members;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dyno_random::Random;
use parking_lot::Mutex;

pub use member::{Client, Identity, Join, JoinAnswer, NotJoined, SyncAnswer};
pub use reply::{Awaited, Reply, reply};

use crate::error::ErrorCode;
use group::Group;
use member::named_bytes;

/// The longest time without a word that a member may ask for, and the shortest.
const SESSIONS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30 * 60));
/// The most groups with members.
const MOST_GROUPS: usize = 10_000;
/// The most bytes that members may say of themselves and be given, of all groups together.
const MOST_BYTES: usize = 64 << 20;

/// All groups of this server by name.
#[derive(Debug)]
pub struct Coordinator {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    groups: BTreeMap<String, Group>,
    /// Until when this server may speak for its groups; it forgets them after that.
    leased_until: Instant,
    names: Random,
}

/// A group as an administrator sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// The name of its state in the protocol.
    pub state: String,
    pub protocol_type: String,
    pub protocol: String,
    pub members: Vec<DescribedMember>,
}

/// A member as an administrator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMember {
    pub name: String,
    pub instance: Option<String>,
    pub client: Client,
    pub metadata: Bytes,
    pub assignment: Bytes,
}

impl Coordinator {
    /// Without groups, and without a lease.
    pub fn new(seed: u64) -> Coordinator {
        Coordinator {
            state: Mutex::new(State {
                groups: BTreeMap::new(),
                leased_until: Instant::now(),
                names: Random::new(seed),
            }),
        }
    }

    /// Prolongs the lease.
    pub fn lease_until(&self, until: Instant) {
        self.state.lock().leased_until = until;
    }

    /// Forgets all groups, because others may coordinate them by now.
    pub fn forget_all(&self) {
        let mut state = self.state.lock();
        for group in state.groups.values_mut() {
            group.refuse_all(ErrorCode::NOT_COORDINATOR);
        }
        state.groups.clear();
    }

    /// Forgets one group that the database says is another server's.
    pub fn forget(&self, name: &str) {
        if let Some(mut group) = self.state.lock().groups.remove(name) {
            group.refuse_all(ErrorCode::NOT_COORDINATOR);
        }
    }

    /// Runs `act` on a group, if this server may speak for its groups.
    fn with<T>(
        &self,
        name: &str,
        act: impl FnOnce(&mut Group, &mut Random, Instant) -> T,
    ) -> Result<T, ErrorCode> {
        let mut state = self.state.lock();
        let now = Instant::now();
        // The clock is looked at here, and not only at each tick: from this moment on another
        // server may speak for the group.
        if now >= state.leased_until {
            return Err(ErrorCode::NOT_COORDINATOR);
        }
        let State { groups, names, .. } = &mut *state;
        if !groups.contains_key(name) && groups.len() >= MOST_GROUPS {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        let group = groups.entry(name.to_owned()).or_insert_with(Group::new);
        let done = act(group, names, now);
        // Any name in a heartbeat makes a group for a moment. It goes with the request, or clients
        // that are not members could fill the memory with names.
        if group.is_unused() {
            groups.remove(name);
        }
        Ok(done)
    }

    /// What all groups hold.
    fn bytes(&self) -> usize {
        self.state.lock().groups.values().map(Group::bytes).sum()
    }

    /// Enters a member; see [`Group::join`].
    pub fn join(&self, group: &str, join: Join, reply: Reply<JoinAnswer>) {
        let refused = |error, member| Err(NotJoined { error, member });
        let within = (SESSIONS.0..=SESSIONS.1).contains(&join.session);
        if !within {
            return reply.send(refused(ErrorCode::INVALID_SESSION_TIMEOUT, join.member));
        }
        // Members that join at the same moment are not counted for each other here. The bound
        // protects memory, and may be passed by what a few requests can hold.
        if self.bytes() + join.bytes() > MOST_BYTES {
            return reply.send(refused(ErrorCode::COORDINATOR_NOT_AVAILABLE, join.member));
        }
        let mut waiting = Some((join, reply));
        let done = self.with(group, |group, names, now| {
            if let Some((join, reply)) = waiting.take() {
                let prefix = join.instance.as_ref().unwrap_or(&join.client.id).clone();
                group.join(join, reply, now, || {
                    format!("{prefix}-{:016x}{:016x}", names.bits(), names.bits())
                });
            }
        });
        if let (Err(error), Some((join, reply))) = (done, waiting) {
            reply.send(refused(error, join.member));
        }
    }

    /// Takes what the leader says, and answers with what the member gets; see [`Group::sync`].
    pub fn sync(
        &self,
        group: &str,
        (member, generation): (Identity<'_>, i32),
        shares: Vec<(String, Bytes)>,
        reply: Reply<SyncAnswer>,
    ) {
        if self.bytes() + named_bytes(&shares) > MOST_BYTES {
            return reply.send(Err(ErrorCode::COORDINATOR_NOT_AVAILABLE));
        }
        let mut waiting = Some((shares, reply));
        let done = self.with(group, |group, _, now| {
            if let Some((shares, reply)) = waiting.take() {
                group.sync(member, generation, shares, reply, now);
            }
        });
        if let (Err(error), Some((_, reply))) = (done, waiting) {
            reply.send(Err(error));
        }
    }

    /// Says that a member lives.
    pub fn heartbeat(
        &self,
        group: &str,
        member: Identity<'_>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        self.with(group, |group, _, now| {
            group.heartbeat(member, generation, now)
        })?
    }

    /// Removes a member.
    pub fn leave(&self, group: &str, member: Identity<'_>) -> Result<(), ErrorCode> {
        self.with(group, |group, _, now| group.leave(member, now))?
    }

    /// Whether offsets may be stored; see [`Group::may_commit`].
    pub fn may_commit(
        &self,
        group: &str,
        member: Identity<'_>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        self.with(group, |group, _, now| {
            group.may_commit(member, generation, now)
        })?
    }

    /// Whether a group has no members.
    pub fn is_empty(&self, group: &str) -> bool {
        !self.state.lock().groups.contains_key(group)
    }

    /// A group as an administrator sees it; without members it is `Empty`.
    pub fn describe(&self, group: &str) -> Description {
        let state = self.state.lock();
        let Some(group) = state.groups.get(group) else {
            return Description {
                state: "Empty".to_owned(),
                ..Description::default()
            };
        };
        Description {
            state: group.state().to_owned(),
            protocol_type: group.protocol_type().to_owned(),
            protocol: group.protocol().to_owned(),
            members: group.described().collect(),
        }
    }

    /// Does what is due in all groups, and forgets those that nothing is in.
    pub fn tick(&self) {
        let mut state = self.state.lock();
        let now = Instant::now();
        if now >= state.leased_until {
            drop(state);
            return self.forget_all();
        }
        state.groups.retain(|_, group| {
            group.tick(now);
            !group.is_unused()
        });
    }
}

#[cfg(test)]
mod tests;
