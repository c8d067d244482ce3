//! One group: its members, their generation, and what each of them gets. No I/O and no clock: the
//! caller hands in the time.
//!
//! A change of members goes through three states. In `Joining` every member sends what it knows
//! about sharing partitions; when all have, the generation begins. In `Sharing` the leader among
//! them says who gets what. In `Stable` each member has its answer, until one comes, goes, or falls
//! silent.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::DescribedMember;
use super::member::{Client, Identity, Join, JoinAnswer, Member, NotJoined, SyncAnswer};
use super::reply::Reply;
use crate::error::ErrorCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Empty,
    /// Members join until all have, but not before the first moment and not after the second.
    Joining {
        not_before: Instant,
        until: Instant,
    },
    /// The leader has until then to say who gets what.
    Sharing {
        until: Instant,
    },
    Stable,
}

/// A group of clients that share the partitions of topics.
#[derive(Debug)]
pub struct Group {
    pub(super) state: State,
    pub(super) generation: i32,
    protocol_type: String,
    pub(super) protocol: String,
    pub(super) leader: String,
    pub(super) members: BTreeMap<String, Member>,
    /// The members that have a name which outlives their process, by that name.
    pub(super) instances: BTreeMap<String, String>,
    /// Names that were given and not used yet, and until when they may be.
    pub(super) expected: BTreeMap<String, Instant>,
}

/// How long an empty group waits for further members after the first one. Clients that are started
/// together would otherwise cause a rebalance each.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// About how much a name takes beside its text.
const NAME_BYTES: usize = 128;
/// The most members of a group, those that are expected included.
const MOST_MEMBERS: usize = 1_000;

impl Group {
    /// A group without members.
    pub fn new() -> Group {
        Group {
            state: State::Empty,
            generation: 0,
            protocol_type: String::new(),
            protocol: String::new(),
            leader: String::new(),
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            expected: BTreeMap::new(),
        }
    }

    /// Whether nothing would be lost with this group.
    pub fn is_unused(&self) -> bool {
        self.members.is_empty() && self.expected.is_empty()
    }

    /// About how many bytes it holds.
    pub fn bytes(&self) -> usize {
        let names = self.expected.keys().chain(self.members.keys());
        let names = names.map(|name| NAME_BYTES + name.len());
        let instances = self.instances.iter();
        let instances = instances.map(|(instance, name)| NAME_BYTES + instance.len() + name.len());
        let members = self.members.values().map(Member::bytes);
        let all = names.chain(instances).chain(members).sum::<usize>();
        all + self.protocol_type.len()
    }

    /// The name of its state in the protocol.
    pub fn state(&self) -> &'static str {
        match self.state {
            State::Empty => "Empty",
            State::Joining { .. } => "PreparingRebalance",
            State::Sharing { .. } => "CompletingRebalance",
            State::Stable => "Stable",
        }
    }

    /// What kind of members it has; empty if it has none.
    pub fn protocol_type(&self) -> &str {
        if self.members.is_empty() {
            ""
        } else {
            &self.protocol_type
        }
    }

    /// The way to share partitions that was chosen; empty before the first generation.
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// The members as an administrator sees them.
    pub fn described(&self) -> impl Iterator<Item = DescribedMember> {
        self.members.iter().map(|(name, member)| DescribedMember {
            name: name.clone(),
            instance: member.instance.clone(),
            client: member.client.clone(),
            metadata: member.metadata(&self.protocol),
            assignment: member.assignment.clone(),
        })
    }

    /// Enters a member. The answer comes when the generation begins. `new_name` makes a name that
    /// no other member has.
    pub fn join(
        &mut self,
        mut join: Join,
        reply: Reply<JoinAnswer>,
        now: Instant,
        new_name: impl FnOnce() -> String,
    ) {
        let before = self.replaced_by(&join);
        if let Err(error) = self.check(&join, before.as_deref()) {
            reply.send(Err(NotJoined {
                error,
                member: join.member,
            }));
            return;
        }
        if join.member.is_empty() {
            join.member = new_name();
            // A client with a lasting name leaves no member behind when an answer got lost, so it
            // need not join twice.
            if join.joins_twice && join.instance.is_none() {
                self.expected
                    .insert(join.member.clone(), now + join.session);
                reply.send(Err(NotJoined {
                    error: ErrorCode::MEMBER_ID_REQUIRED,
                    member: join.member,
                }));
                return;
            }
            self.name_instance(&join, before.as_deref());
        }
        self.expected.remove(&join.member);
        self.protocol_type.clone_from(&join.protocol_type);
        let known = self.members.get(&join.member);
        let same = known.is_some_and(|member| member.protocols == join.protocols);
        let name = self.enter(join, reply, now);
        match self.state {
            // An answer got lost, and the member asks for it again. A process that was restarted is
            // not answered: the leader is about to give a share to the name of the one before it.
            State::Sharing { .. } if same && before.is_none() => self.answer_join(&name),
            // A process that was restarted goes on with what the one before had.
            State::Stable if same && let Some(before) = before => {
                self.answer_successor(&name, &before);
            }
            // A leader that joins again wants a new generation although it says the same: only it
            // looks at the topics, and they may have more partitions now.
            State::Stable if same && name != self.leader => self.answer_join(&name),
            State::Joining { .. } => self.begin_if_all_joined(now),
            _ => self.rebalance(now),
        }
    }

    /// Refuses a member that the group cannot have. `before` is the member whose place it takes.
    fn check(&self, join: &Join, before: Option<&str>) -> Result<(), ErrorCode> {
        let is_known =
            self.members.contains_key(&join.member) || self.expected.contains_key(&join.member);
        if !join.member.is_empty() {
            self.check_instance(join.identity())?;
        }
        if !join.member.is_empty() && !is_known {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        if !is_known && before.is_none() && self.members.len() + self.expected.len() >= MOST_MEMBERS
        {
            return Err(ErrorCode::GROUP_MAX_SIZE_REACHED);
        }
        let others = || {
            self.members
                .iter()
                .filter(|(name, _)| **name != join.member && Some(name.as_str()) != before)
        };
        let is_alone = others().next().is_none();
        let fits = is_alone
            || self.protocol_type == join.protocol_type
                && join
                    .protocols
                    .iter()
                    .any(|(protocol, _)| others().all(|(_, member)| member.knows(protocol)));
        if fits && !join.protocols.is_empty() && !join.protocol_type.is_empty() {
            Ok(())
        } else {
            Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL)
        }
    }

    fn enter(&mut self, join: Join, reply: Reply<JoinAnswer>, now: Instant) -> String {
        let before = self.members.remove(&join.member).unwrap_or_else(|| Member {
            client: Client::default(),
            instance: None,
            session: join.session,
            rebalance: join.rebalance,
            protocols: Vec::new(),
            silent_until: now,
            joining: None,
            syncing: None,
            assignment: Bytes::new(),
        });
        // Copied, because it lies in the frame of the request, and would keep all of that.
        let protocols = join.protocols.into_iter();
        let protocols = protocols.map(|(name, said)| (name, Bytes::copy_from_slice(&said)));
        let member = Member {
            client: join.client,
            instance: join.instance,
            session: join.session,
            rebalance: join.rebalance,
            protocols: protocols.collect(),
            silent_until: now + join.session,
            // An earlier request of this member that still waits is dropped unanswered. A client
            // asks again only when it has given up the connection of the first.
            joining: Some(reply),
            ..before
        };
        self.members.insert(join.member.clone(), member);
        join.member
    }

    /// Has all members join again.
    fn rebalance(&mut self, now: Instant) {
        // Members that wait for their shares learn at once that there will be none: with what the
        // leader shares out now they would read partitions that others get.
        for member in self.members.values_mut() {
            if let Some(syncing) = member.syncing.take() {
                syncing.send(Err(ErrorCode::REBALANCE_IN_PROGRESS));
            }
        }
        let longest = self.members.values().map(|member| member.rebalance).max();
        let not_before = match self.state {
            State::Empty => now + FIRST_WAIT,
            _ => now,
        };
        self.state = State::Joining {
            not_before,
            until: not_before + longest.unwrap_or_default(),
        };
        self.begin_if_all_joined(now);
    }

    /// Takes what the leader says, and answers with what the member gets once that is known.
    pub fn sync(
        &mut self,
        identity: Identity<'_>,
        generation: i32,
        shares: Vec<(String, Bytes)>,
        reply: Reply<SyncAnswer>,
        now: Instant,
    ) {
        let state = self.state;
        let name = identity.member;
        let member = match self.current_member(identity, generation, now) {
            Ok(member) => member,
            Err(error) => return reply.send(Err(error)),
        };
        match state {
            State::Stable => reply.send(Ok(member.assignment.clone())),
            State::Sharing { .. } => {
                member.syncing = Some(reply);
                if name == self.leader {
                    self.share(shares, now);
                }
            }
            State::Joining { .. } | State::Empty => {
                reply.send(Err(ErrorCode::REBALANCE_IN_PROGRESS));
            }
        }
    }

    fn share(&mut self, shares: Vec<(String, Bytes)>, now: Instant) {
        for (name, assignment) in shares {
            if let Some(member) = self.members.get_mut(&name) {
                // Copied for the same reason as what a member says of itself.
                member.assignment = Bytes::copy_from_slice(&assignment);
            }
        }
        self.state = State::Stable;
        for member in self.members.values_mut() {
            if let Some(syncing) = member.syncing.take() {
                member.silent_until = now + member.session;
                syncing.send(Ok(member.assignment.clone()));
            }
        }
    }

    /// Says that a member lives, and tells it whether it has to join again.
    pub fn heartbeat(
        &mut self,
        identity: Identity<'_>,
        generation: i32,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        self.current_member(identity, generation, now)?;
        match self.state {
            State::Joining { .. } => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            _ => Ok(()),
        }
    }

    /// The member of this name and generation, which is not silent any more.
    fn current_member(
        &mut self,
        identity: Identity<'_>,
        generation: i32,
        now: Instant,
    ) -> Result<&mut Member, ErrorCode> {
        self.check_instance(identity)?;
        let member = self.members.get_mut(identity.member);
        let member = member.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if generation != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        member.silent_until = now + member.session;
        Ok(member)
    }

    /// Whether offsets may be stored for a member, or with no name for a consumer that chooses its
    /// partitions itself, which only a group without members has.
    pub fn may_commit(
        &mut self,
        identity: Identity<'_>,
        generation: i32,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        if identity.member.is_empty() && generation < 0 {
            return if self.members.is_empty() {
                Ok(())
            } else {
                Err(ErrorCode::UNKNOWN_MEMBER_ID)
            };
        }
        self.current_member(identity, generation, now)?;
        match self.state {
            // The partitions are being given out, and this member may not have them any more.
            State::Sharing { .. } => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            // While members join again they still have what they had, and clients store their
            // offsets before they give it up.
            _ => Ok(()),
        }
    }

    /// Removes a member.
    pub fn leave(&mut self, identity: Identity<'_>, now: Instant) -> Result<(), ErrorCode> {
        let name = self.leaving(identity)?;
        if self.expected.remove(&name).is_some() {
            self.begin_if_all_joined(now);
            return Ok(());
        }
        let member = self.members.remove(&name);
        let mut member = member.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        member.refuse(ErrorCode::UNKNOWN_MEMBER_ID, &name);
        self.forget_instances();
        self.without_member(now);
        Ok(())
    }

    fn without_member(&mut self, now: Instant) {
        match self.state {
            State::Joining { .. } => self.begin_if_all_joined(now),
            _ => self.rebalance(now),
        }
    }

    /// Does what is due: removes members that are silent, and goes on without those that are late.
    pub fn tick(&mut self, now: Instant) {
        // A client that took a name and did not come back holds its group up until then.
        self.expected.retain(|_, until| *until >= now);
        // A member whose answer is waited for cannot say anything meanwhile.
        let silent: Vec<String> = (self.members.iter())
            .filter(|(_, member)| {
                member.silent_until < now && member.joining.is_none() && member.syncing.is_none()
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in &silent {
            self.members.remove(name);
        }
        self.forget_instances();
        if let State::Sharing { until } = self.state
            && now >= until
        {
            // The leader has not shared anything out. Members that do not wait for it are removed
            // with it, because they may have ended as well.
            self.retain_members(|member| member.syncing.is_some() || member.instance.is_some());
            self.rebalance(now);
        } else if !silent.is_empty() {
            self.without_member(now);
        } else {
            self.begin_if_all_joined(now);
        }
    }

    /// Refuses everything that waits, because another server has the group.
    pub fn refuse_all(&mut self, error: ErrorCode) {
        for (name, member) in &mut self.members {
            member.refuse(error, name);
        }
    }
}
