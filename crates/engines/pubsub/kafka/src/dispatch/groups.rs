//! Membership of groups, and groups as an administrator sees them.

use std::time::Duration;

use bytes::Bytes;

use super::Session;
use crate::connection::{Answer, Pending};
use crate::coordinator::{Client, Identity, Join, NotJoined, reply};
use crate::error::ErrorCode;
use crate::wire::{
    DeleteGroupsRequest, DeleteGroupsResponse, DeletedGroup, DescribeGroupsRequest,
    DescribeGroupsResponse, DescribedGroup, DescribedMember, FindCoordinatorRequest,
    FindCoordinatorResponse, Header, HeartbeatRequest, HeartbeatResponse, JoinGroupMember,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse, LeavingMember,
    LeftMember, ListGroupsRequest, ListGroupsResponse, ListedGroup, SyncGroupRequest,
    SyncGroupResponse,
};

use super::metadata::UNKNOWN_OPERATIONS;

/// The longest name of a group, as the table has it.
const MOST_NAME_BYTES: usize = 249;
/// Clients know from this version of JoinGroup on that a new member joins twice.
const JOINS_TWICE_SINCE: i16 = 4;
/// In version 0 of JoinGroup the session's timeout stands for both.
const REBALANCE_TIMEOUT_SINCE: i16 = 1;
const GROUP_KEY: i8 = 0;
const TRANSACTION_KEY: i8 = 1;
/// From this version of LeaveGroup on a request names several members.
const LEAVES_TOGETHER_SINCE: i16 = 3;

impl Session {
    /// Refuses a group that another server coordinates, and takes over one that none does.
    pub(super) fn owned(&self, group: &str) -> Result<(), ErrorCode> {
        // A group with members here was this server's when they joined. Another server can have it
        // only after the lease has lapsed, which the coordinator checks by the clock, so the
        // database is not asked.
        if !self.shared.coordinator.is_empty(group) {
            return Ok(());
        }
        if self.coordinator(group)? == self.shared.node {
            Ok(())
        } else {
            Err(ErrorCode::NOT_COORDINATOR)
        }
    }

    fn coordinator(&self, group: &str) -> Result<i32, ErrorCode> {
        let is_name = (1..=MOST_NAME_BYTES).contains(&group.len()) && !group.contains('\0');
        if !is_name {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        let found = self.shared.store.coordinator(group, self.shared.node);
        found.map_err(|error| ErrorCode::for_group(&error))
    }

    pub(super) fn find_coordinator(
        &mut self,
        _: &Header,
        request: FindCoordinatorRequest,
    ) -> FindCoordinatorResponse {
        let refused = |error: ErrorCode, text: &str| FindCoordinatorResponse {
            error_code: error.0,
            error_message: Some(text.to_owned()),
            node_id: -1,
            port: -1,
            ..FindCoordinatorResponse::default()
        };
        let found = match request.key_type {
            GROUP_KEY => self.coordinator(&request.key),
            // All that is known of a transaction is in the database, so any server can end it.
            TRANSACTION_KEY => Ok(self.shared.node),
            _ => {
                let text = "a coordinator is that of a group or of a transaction";
                return refused(ErrorCode::INVALID_REQUEST, text);
            }
        };
        let node = match found {
            Ok(node) => node,
            Err(ErrorCode::INVALID_GROUP_ID) => {
                let text =
                    "the name is too long, empty, or that of a group of dyno's own consumers";
                return refused(ErrorCode::INVALID_GROUP_ID, text);
            }
            Err(error) => return refused(error, "the group has no coordinator at present"),
        };
        let nodes = self
            .shared
            .store
            .nodes(self.shared.node)
            .unwrap_or_default()
            .0;
        match nodes.into_iter().find(|other| other.id == node) {
            Some(node) => FindCoordinatorResponse {
                node_id: node.id,
                host: node.host,
                port: node.port,
                ..FindCoordinatorResponse::default()
            },
            None => {
                let text = "the group's coordinator has just ended";
                refused(ErrorCode::COORDINATOR_NOT_AVAILABLE, text)
            }
        }
    }

    pub(super) fn join_group(&mut self, header: Header, body: Bytes) -> Option<Pending> {
        let request = self.read::<JoinGroupRequest>(&header, body)?;
        let (reply, awaited) = reply();
        let member = request.member_id.clone();
        match self.owned(&request.group_id) {
            Err(error) => reply.send(Err(NotJoined { error, member })),
            Ok(()) => {
                let group = request.group_id.clone();
                let join = self.join(&header, request);
                self.shared.coordinator.join(&group, join, reply);
            }
        }
        Some(Box::new(move |link| {
            let Some(answer) = awaited.wait(|| link.is_open()) else {
                return Answer::Nothing;
            };
            let response = match answer {
                Ok(joined) => JoinGroupResponse {
                    generation_id: joined.generation,
                    protocol_name: joined.protocol,
                    leader: joined.leader,
                    member_id: joined.member,
                    members: (joined.members.into_iter())
                        .map(|member| JoinGroupMember {
                            member_id: member.name,
                            group_instance_id: member.instance,
                            metadata: member.metadata,
                        })
                        .collect(),
                    ..JoinGroupResponse::default()
                },
                Err(refused) => JoinGroupResponse {
                    error_code: refused.error.0,
                    generation_id: -1,
                    member_id: refused.member,
                    ..JoinGroupResponse::default()
                },
            };
            Answer::Send(header.response::<JoinGroupRequest>(&response))
        }))
    }

    fn join(&self, header: &Header, request: JoinGroupRequest) -> Join {
        let millis = |ms: i32| Duration::from_millis(ms.max(0).unsigned_abs().into());
        let session = millis(request.session_timeout_ms);
        let protocols = request.protocols.into_iter();
        Join {
            member: request.member_id,
            instance: request.group_instance_id,
            client: Client {
                id: header.client_id.clone().unwrap_or_default(),
                host: self.peer.clone(),
            },
            session,
            rebalance: if header.version >= REBALANCE_TIMEOUT_SINCE {
                millis(request.rebalance_timeout_ms)
            } else {
                session
            },
            protocol_type: request.protocol_type,
            protocols: protocols.map(|one| (one.name, one.metadata)).collect(),
            joins_twice: header.version >= JOINS_TWICE_SINCE,
        }
    }

    pub(super) fn sync_group(&mut self, header: Header, body: Bytes) -> Option<Pending> {
        let request = self.read::<SyncGroupRequest>(&header, body)?;
        let (reply, awaited) = reply();
        let shares = request.assignments.into_iter();
        let shares = shares
            .map(|share| (share.member_id, share.assignment))
            .collect();
        let identity = identity(&request.member_id, &request.group_instance_id);
        let member = (identity, request.generation_id);
        self.shared
            .coordinator
            .sync(&request.group_id, member, shares, reply);
        Some(Box::new(move |link| {
            let Some(answer) = awaited.wait(|| link.is_open()) else {
                return Answer::Nothing;
            };
            let (error_code, assignment) = match answer {
                Ok(assignment) => (ErrorCode::NONE.0, assignment),
                Err(error) => (error.0, Bytes::new()),
            };
            let response = SyncGroupResponse {
                throttle_time_ms: 0,
                error_code,
                assignment,
            };
            Answer::Send(header.response::<SyncGroupRequest>(&response))
        }))
    }

    pub(super) fn heartbeat(&mut self, _: &Header, request: HeartbeatRequest) -> HeartbeatResponse {
        let member = identity(&request.member_id, &request.group_instance_id);
        let coordinator = &self.shared.coordinator;
        let done = coordinator.heartbeat(&request.group_id, member, request.generation_id);
        HeartbeatResponse {
            throttle_time_ms: 0,
            error_code: code(done),
        }
    }

    pub(super) fn leave_group(
        &mut self,
        header: &Header,
        request: LeaveGroupRequest,
    ) -> LeaveGroupResponse {
        let leave =
            |member: Identity<'_>| code(self.shared.coordinator.leave(&request.group_id, member));
        if header.version < LEAVES_TOGETHER_SINCE {
            return LeaveGroupResponse {
                error_code: leave(identity(&request.member_id, &None)),
                ..LeaveGroupResponse::default()
            };
        }
        let left = |member: &LeavingMember| LeftMember {
            error_code: leave(identity(&member.member_id, &member.group_instance_id)),
            member_id: member.member_id.clone(),
            group_instance_id: member.group_instance_id.clone(),
        };
        LeaveGroupResponse {
            members: request.members.iter().map(left).collect(),
            ..LeaveGroupResponse::default()
        }
    }

    pub(super) fn describe_groups(
        &mut self,
        _: &Header,
        request: DescribeGroupsRequest,
    ) -> DescribeGroupsResponse {
        let groups = request.groups.into_iter().map(|group_id| {
            // To describe a group must not make it, as `owned` would.
            let known = self.shared.store.has_group(&group_id);
            let known = known.map_err(|error| ErrorCode::for_group(&error));
            match known.and_then(|known| known.then(|| self.owned(&group_id)).transpose()) {
                Ok(Some(())) => self.described(group_id),
                // A group that is not there is described as one that has ended.
                Ok(None) => DescribedGroup {
                    group_id,
                    group_state: "Dead".to_owned(),
                    authorized_operations: UNKNOWN_OPERATIONS,
                    ..DescribedGroup::default()
                },
                Err(error) => DescribedGroup {
                    error_code: error.0,
                    group_id,
                    authorized_operations: UNKNOWN_OPERATIONS,
                    ..DescribedGroup::default()
                },
            }
        });
        DescribeGroupsResponse {
            throttle_time_ms: 0,
            groups: groups.collect(),
        }
    }

    fn described(&self, group_id: String) -> DescribedGroup {
        let described = self.shared.coordinator.describe(&group_id);
        let members = described.members.into_iter().map(|member| DescribedMember {
            member_id: member.name,
            group_instance_id: member.instance,
            client_id: member.client.id,
            client_host: member.client.host,
            member_metadata: member.metadata,
            member_assignment: member.assignment,
        });
        DescribedGroup {
            error_code: ErrorCode::NONE.0,
            group_id,
            group_state: described.state,
            protocol_type: described.protocol_type,
            protocol_data: described.protocol,
            members: members.collect(),
            authorized_operations: UNKNOWN_OPERATIONS,
        }
    }

    pub(super) fn list_groups(
        &mut self,
        _: &Header,
        request: ListGroupsRequest,
    ) -> ListGroupsResponse {
        let names = match self.shared.store.groups(self.shared.node) {
            Ok(names) => names,
            Err(error) => {
                return ListGroupsResponse {
                    error_code: ErrorCode::for_group(&error).0,
                    ..ListGroupsResponse::default()
                };
            }
        };
        let groups = names.into_iter().map(|group_id| {
            let described = self.shared.coordinator.describe(&group_id);
            ListedGroup {
                group_id,
                protocol_type: described.protocol_type,
                group_state: described.state,
            }
        });
        let states = &request.states_filter;
        let is_wanted =
            |group: &ListedGroup| states.is_empty() || states.contains(&group.group_state);
        ListGroupsResponse {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE.0,
            groups: groups.filter(is_wanted).collect(),
        }
    }

    pub(super) fn delete_groups(
        &mut self,
        _: &Header,
        request: DeleteGroupsRequest,
    ) -> DeleteGroupsResponse {
        let results = request
            .groups_names
            .into_iter()
            .map(|group_id| DeletedGroup {
                error_code: code(self.delete_group(&group_id)),
                group_id,
            });
        DeleteGroupsResponse {
            throttle_time_ms: 0,
            results: results.collect(),
        }
    }

    fn delete_group(&self, group: &str) -> Result<(), ErrorCode> {
        let of_group = |error: dyno_pubsub::Error| ErrorCode::for_group(&error);
        // Asked before `owned`, which makes a group that is not there.
        if !self.shared.store.has_group(group).map_err(of_group)? {
            return Err(ErrorCode::GROUP_ID_NOT_FOUND);
        }
        self.owned(group)?;
        if !self.shared.coordinator.is_empty(group) {
            return Err(ErrorCode::NON_EMPTY_GROUP);
        }
        // A member may join between the look and the deletion. Its next commit is refused because
        // the group is gone, and then it joins the group anew.
        self.shared
            .store
            .delete_group(group, self.shared.node)
            .map_err(of_group)
    }
}

/// How a request names its member.
pub(super) fn identity<'a>(member: &'a str, instance: &'a Option<String>) -> Identity<'a> {
    Identity {
        member,
        instance: instance.as_deref(),
    }
}

fn code(done: Result<(), ErrorCode>) -> i16 {
    done.err().unwrap_or(ErrorCode::NONE).0
}
