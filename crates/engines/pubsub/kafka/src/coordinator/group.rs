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

use super::member::{Client, Join, JoinAnswer, Joined, Member, NotJoined, SyncAnswer};
use super::reply::Reply;
use crate::error::ErrorCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
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
    state: State,
    generation: i32,
    protocol_type: String,
    protocol: String,
    leader: String,
    members: BTreeMap<String, Member>,
    /// Names that were given and not used yet, and until when they may be.
    expected: BTreeMap<String, Instant>,
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
            expected: BTreeMap::new(),
        }
    }

    /// Whether nothing would be lost with this group.
    pub fn is_unused(&self) -> bool {
        self.members.is_empty() && self.expected.is_empty()
    }

    /// About how many bytes it holds.
    pub fn bytes(&self) -> usize {
        let members = self.members.values().map(Member::bytes).sum::<usize>();
        members
            + self
                .expected
                .keys()
                .map(|name| NAME_BYTES + name.len())
                .sum::<usize>()
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
        match self.members.is_empty() {
            true => "",
            false => &self.protocol_type,
        }
    }

    /// The way to share partitions that was chosen; empty before the first generation.
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// Name, client, what it says of itself, and what it got, of each member.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Client, Bytes, Bytes)> {
        self.members.iter().map(|(name, member)| {
            let said = member.metadata(&self.protocol);
            (
                name.as_str(),
                &member.client,
                said,
                member.assignment.clone(),
            )
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
        if let Err(error) = self.check(&join) {
            reply.send(Err(NotJoined {
                error,
                member: join.member,
            }));
            return;
        }
        if join.member.is_empty() {
            join.member = new_name();
            if join.joins_twice {
                self.expected
                    .insert(join.member.clone(), now + join.session);
                reply.send(Err(NotJoined {
                    error: ErrorCode::MEMBER_ID_REQUIRED,
                    member: join.member,
                }));
                return;
            }
        }
        self.expected.remove(&join.member);
        self.protocol_type.clone_from(&join.protocol_type);
        let known = self.members.get(&join.member);
        let same = known.is_some_and(|member| member.protocols == join.protocols);
        let name = self.enter(join, reply, now);
        match self.state {
            // An answer got lost, and the member asks for it again.
            State::Sharing { .. } if same => self.answer_join(&name),
            // A leader that joins again wants a new generation although it says the same: only it
            // looks at the topics, and they may have more partitions now.
            State::Stable if same && name != self.leader => self.answer_join(&name),
            State::Joining { .. } => self.begin_if_all_joined(now),
            _ => self.rebalance(now),
        }
    }

    fn check(&self, join: &Join) -> Result<(), ErrorCode> {
        let is_known =
            self.members.contains_key(&join.member) || self.expected.contains_key(&join.member);
        if !join.member.is_empty() && !is_known {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        if !is_known && self.members.len() + self.expected.len() >= MOST_MEMBERS {
            return Err(ErrorCode::GROUP_MAX_SIZE_REACHED);
        }
        let others = || {
            self.members
                .iter()
                .filter(|(name, _)| **name != join.member)
        };
        let is_alone = others().next().is_none();
        let fits = is_alone
            || self.protocol_type == join.protocol_type
                && join
                    .protocols
                    .iter()
                    .any(|(protocol, _)| others().all(|(_, member)| member.knows(protocol)));
        match fits && !join.protocols.is_empty() && !join.protocol_type.is_empty() {
            true => Ok(()),
            false => Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL),
        }
    }

    fn enter(&mut self, join: Join, reply: Reply<JoinAnswer>, now: Instant) -> String {
        let before = self.members.remove(&join.member).unwrap_or_else(|| Member {
            client: Client::default(),
            session: join.session,
            rebalance: join.rebalance,
            protocols: Vec::new(),
            silent_until: now,
            joining: None,
            syncing: None,
            assignment: Bytes::new(),
        });
        let member = Member {
            client: join.client,
            session: join.session,
            rebalance: join.rebalance,
            protocols: join.protocols,
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

    fn begin_if_all_joined(&mut self, now: Instant) {
        let State::Joining { not_before, until } = self.state else {
            return;
        };
        let all = self.members.values().all(|member| member.joining.is_some());
        if now >= until {
            // Who has not come by now is out; its next request says so.
            self.members.retain(|_, member| member.joining.is_some());
            self.begin(now);
        } else if now >= not_before && all && self.expected.is_empty() {
            // A client that was given a name a moment ago is on its way. A generation that began
            // without it would end as soon as it comes, so it was waited for.
            self.begin(now);
        }
    }

    /// Begins a generation with the members that have joined.
    fn begin(&mut self, now: Instant) {
        // After the largest number the count begins at 1 again, because those below have other
        // meanings for clients.
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        let Some(first) = self.members.keys().next().cloned() else {
            self.state = State::Empty;
            self.protocol.clear();
            self.leader.clear();
            return;
        };
        self.protocol = self.chosen_protocol();
        if !self.members.contains_key(&self.leader) {
            self.leader = first;
        }
        let longest = self.members.values().map(|member| member.rebalance).max();
        self.state = State::Sharing {
            until: now + longest.unwrap_or_default(),
        };
        let names: Vec<String> = self.members.keys().cloned().collect();
        for name in names {
            if let Some(member) = self.members.get_mut(&name) {
                // A member that the leader leaves out must not get what it had in the last
                // generation.
                member.assignment = Bytes::new();
                member.silent_until = now + member.session;
            }
            self.answer_join(&name);
        }
    }

    /// The protocol that most members like best among those that all know. One is there, because a
    /// member that would leave none is refused.
    fn chosen_protocol(&self) -> String {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let best = member
                .protocols
                .iter()
                .find(|(protocol, _)| self.members.values().all(|other| other.knows(protocol)));
            if let Some((protocol, _)) = best {
                *votes.entry(protocol).or_default() += 1;
            }
        }
        let most = votes.into_iter().max_by_key(|(_, votes)| *votes);
        most.map_or_else(String::new, |(protocol, _)| protocol.to_owned())
    }

    fn answer_join(&mut self, name: &str) {
        let members = match name == self.leader {
            true => self
                .members
                .iter()
                .map(|(name, member)| (name.clone(), member.metadata(&self.protocol)))
                .collect(),
            false => Vec::new(),
        };
        let joined = Joined {
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            member: name.to_owned(),
            members,
        };
        let joining = self
            .members
            .get_mut(name)
            .and_then(|member| member.joining.take());
        if let Some(joining) = joining {
            joining.send(Ok(joined));
        }
    }

    /// Takes what the leader says, and answers with what the member gets once that is known.
    pub fn sync(
        &mut self,
        name: &str,
        generation: i32,
        shares: Vec<(String, Bytes)>,
        reply: Reply<SyncAnswer>,
        now: Instant,
    ) {
        let state = self.state;
        let member = match self.current_member(name, generation, now) {
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
                member.assignment = assignment;
            }
        }
        self.state = State::Stable;
        for member in self.members.values_mut() {
            member.silent_until = now + member.session;
            if let Some(syncing) = member.syncing.take() {
                syncing.send(Ok(member.assignment.clone()));
            }
        }
    }

    /// Says that a member lives, and tells it whether it has to join again.
    pub fn heartbeat(
        &mut self,
        name: &str,
        generation: i32,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        self.current_member(name, generation, now)?;
        match self.state {
            State::Joining { .. } => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            _ => Ok(()),
        }
    }

    /// The member of this name and generation, which is not silent any more.
    fn current_member(
        &mut self,
        name: &str,
        generation: i32,
        now: Instant,
    ) -> Result<&mut Member, ErrorCode> {
        let member = self.members.get_mut(name);
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
        name: &str,
        generation: i32,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        if name.is_empty() && generation < 0 {
            return match self.members.is_empty() {
                true => Ok(()),
                false => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            };
        }
        self.current_member(name, generation, now)?;
        match self.state {
            // The partitions are being given out, and this member may not have them any more.
            State::Sharing { .. } => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            // While members join again they still have what they had, and clients store their
            // offsets before they give it up.
            _ => Ok(()),
        }
    }

    /// Removes a member.
    pub fn leave(&mut self, name: &str, now: Instant) -> Result<(), ErrorCode> {
        if self.expected.remove(name).is_some() {
            self.begin_if_all_joined(now);
            return Ok(());
        }
        let member = self.members.remove(name);
        let mut member = member.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        member.refuse(ErrorCode::UNKNOWN_MEMBER_ID, name);
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
        if let State::Sharing { until } = self.state
            && now >= until
        {
            // The leader has not shared anything out. Members that do not wait for it are removed
            // with it, because they may have ended as well.
            self.members.retain(|_, member| member.syncing.is_some());
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
