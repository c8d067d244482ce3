//! Members with a name that outlives their process (KIP-345). A process that is restarted within
//! its session goes on with the partitions that the one before it had, and the others notice
//! nothing.

use super::group::Group;
use super::member::{Identity, Join, Member};
use crate::error::ErrorCode;

impl Join {
    /// How the request names its member.
    pub(super) fn identity(&self) -> Identity<'_> {
        Identity {
            member: &self.member,
            instance: self.instance.as_deref(),
        }
    }
}

impl Group {
    /// The member whose place a new one takes, because both have the same lasting name.
    pub(super) fn replaced_by(&self, join: &Join) -> Option<String> {
        let instance = join.instance.as_ref().filter(|_| join.member.is_empty())?;
        self.instances.get(instance).cloned()
    }

    /// Refuses a request whose lasting name belongs to a later process.
    pub(super) fn check_instance(&self, identity: Identity<'_>) -> Result<(), ErrorCode> {
        let Some(instance) = identity.instance else {
            return Ok(());
        };
        match self.instances.get(instance) {
            Some(member) if member == identity.member => Ok(()),
            Some(_) => Err(ErrorCode::FENCED_INSTANCE_ID),
            None => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        }
    }

    /// Notes the lasting name of a new member, and gives it what the member before it had.
    pub(super) fn name_instance(&mut self, join: &Join, before: Option<&str>) {
        let Some(instance) = &join.instance else {
            return;
        };
        self.instances.insert(instance.clone(), join.member.clone());
        let Some((before, mut member)) =
            before.and_then(|name| Some((name, self.members.remove(name)?)))
        else {
            return;
        };
        // Two processes with one name would process the same records, so the earlier one ends.
        member.refuse(ErrorCode::FENCED_INSTANCE_ID, before);
        self.members.insert(join.member.clone(), member);
        if self.leader == before {
            self.leader.clone_from(&join.member);
        }
    }

    /// Tells a restarted process of the generation that goes on. One that leads is not told so: it
    /// would share the partitions out anew, and the others have theirs.
    pub(super) fn answer_successor(&mut self, name: &str, before: &str) {
        let leader = if self.leader == name {
            before.to_owned()
        } else {
            self.leader.clone()
        };
        self.answer_joined(name, leader, Vec::new());
    }

    /// The member that a request to leave means. An administrator knows only the lasting name.
    pub(super) fn leaving(&self, identity: Identity<'_>) -> Result<String, ErrorCode> {
        match identity.instance {
            Some(instance) if identity.member.is_empty() => {
                let member = self.instances.get(instance).cloned();
                member.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)
            }
            _ => {
                self.check_instance(identity)?;
                Ok(identity.member.to_owned())
            }
        }
    }

    /// Removes the members that are not to be kept.
    pub(super) fn retain_members(&mut self, keep: impl Fn(&Member) -> bool) {
        self.members.retain(|_, member| keep(member));
        self.forget_instances();
    }

    /// Forgets the lasting names of members that are gone.
    pub(super) fn forget_instances(&mut self) {
        let members = &self.members;
        self.instances
            .retain(|_, member| members.contains_key(member));
    }
}
