//! The beginning of a generation: its members, its leader, and what each member is told.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;

use super::group::{Group, State};
use super::member::{Joined, JoinedMember};

impl Group {
    pub(super) fn begin_if_all_joined(&mut self, now: Instant) {
        let State::Joining { not_before, until } = self.state else {
            return;
        };
        let all = self.members.values().all(|member| member.joining.is_some());
        if now >= until {
            // A member that has not joined by now is removed, and the answer to its next request
            // says so. A member with a lasting name stays until its session has run out, because
            // its process may be under way again.
            self.retain_members(|member| member.joining.is_some() || member.instance.is_some());
            self.begin(now);
        } else if now >= not_before && all && self.expected.is_empty() {
            // A client that was given a name a moment ago is on its way. A generation that began
            // without it would end as soon as it comes, so it was waited for.
            self.begin(now);
        }
    }

    /// Begins a generation with the members that have joined.
    fn begin(&mut self, now: Instant) {
        let longest = self.members.values().map(|member| member.rebalance).max();
        let until = now + longest.unwrap_or_default();
        let joined = (self.members.iter()).filter(|(_, member)| member.joining.is_some());
        let first = joined.map(|(name, _)| name.clone()).next();
        if first.is_none() && !self.members.is_empty() {
            // All that is left are lasting names without a process, and one of them has to share
            // the partitions out. Their sessions bound how often this is repeated.
            self.state = State::Joining {
                not_before: now,
                until,
            };
            return;
        }
        // After the largest number the count begins at 1 again, because those below have other
        // meanings for clients.
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        let Some(first) = first else {
            self.state = State::Empty;
            self.protocol.clear();
            self.leader.clear();
            return;
        };
        self.protocol = self.chosen_protocol();
        let leader = self.members.get(&self.leader);
        if leader.is_none_or(|leader| leader.joining.is_none()) {
            self.leader = first;
        }
        self.state = State::Sharing { until };
        let names: Vec<String> = self.members.keys().cloned().collect();
        for name in names {
            if let Some(member) = self.members.get_mut(&name) {
                // A member that the leader leaves out must not get what it had in the last
                // generation.
                member.assignment = Bytes::new();
                // A generation that begins says nothing of a member that did not come to it.
                if member.joining.is_some() {
                    member.silent_until = now + member.session;
                }
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

    pub(super) fn answer_join(&mut self, name: &str) {
        let leads = name == self.leader;
        let listed = self.members.iter().filter(|_| leads);
        let members = listed.map(|(name, member)| JoinedMember {
            name: name.clone(),
            instance: member.instance.clone(),
            metadata: member.metadata(&self.protocol),
        });
        let members = members.collect();
        self.answer_joined(name, self.leader.clone(), members);
    }

    /// Tells a member of the generation, of its leader, and, if it is the leader, of all members.
    pub(super) fn answer_joined(&mut self, name: &str, leader: String, members: Vec<JoinedMember>) {
        let joined = Joined {
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader,
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
}
