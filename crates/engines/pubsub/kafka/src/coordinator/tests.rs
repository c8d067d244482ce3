//! Groups through joins, silences and departures, at times that the tests choose.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::group::Group;
use super::member::{Identity, Joined};
use super::*;

const SESSION: Duration = Duration::from_secs(10);
const REBALANCE: Duration = Duration::from_secs(60);

/// A group, the time in it, and how many names it gave.
struct Scene {
    group: Group,
    now: Instant,
    named: usize,
}

impl Scene {
    fn new() -> Scene {
        Scene {
            group: Group::new(),
            now: Instant::now(),
            named: 0,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.group.tick(self.now);
    }

    fn join(&mut self, member: &str, protocols: &[&str]) -> Awaited<JoinAnswer> {
        self.join_as(member, None, protocols)
    }

    /// A process of the static member `instance` that has just been started.
    fn start(&mut self, instance: &str) -> Awaited<JoinAnswer> {
        self.join_as("", Some(instance), &["range"])
    }

    fn join_as(
        &mut self,
        member: &str,
        instance: Option<&str>,
        protocols: &[&str],
    ) -> Awaited<JoinAnswer> {
        let (reply, awaited) = reply();
        let speaker = instance.unwrap_or(member);
        let protocols = protocols.iter().map(|protocol| {
            let said = Bytes::from(format!("{speaker} says {protocol}"));
            ((*protocol).to_owned(), said)
        });
        let join = Join {
            member: member.to_owned(),
            instance: instance.map(str::to_owned),
            client: Client::default(),
            session: SESSION,
            rebalance: REBALANCE,
            protocol_type: "consumer".to_owned(),
            protocols: protocols.collect(),
            joins_twice: true,
        };
        self.named += 1;
        let name = format!("member-{}", self.named);
        self.group.join(join, reply, self.now, || name);
        awaited
    }

    /// A name for a new member.
    fn name(&mut self) -> String {
        let refused = answer(self.join("", &["range"])).unwrap_err();
        assert_eq!(refused.error, ErrorCode::MEMBER_ID_REQUIRED);
        refused.member
    }

    fn sync(
        &mut self,
        member: &str,
        generation: i32,
        shares: &[(&str, &'static str)],
    ) -> Awaited<SyncAnswer> {
        let (reply, awaited) = reply();
        let shares = shares
            .iter()
            .map(|(name, share)| ((*name).to_owned(), Bytes::from(*share)));
        self.group.sync(
            dynamic(member),
            generation,
            shares.collect(),
            reply,
            self.now,
        );
        awaited
    }

    /// Two members in a stable group: the leader, the other, and their generation.
    fn two(&mut self) -> (String, String, i32) {
        let (a, b) = (self.name(), self.name());
        let first = self.join(&a, &["range"]);
        let second = self.join(&b, &["range"]);
        self.pass(Duration::from_secs(1));
        let (first, second) = (joined(first), joined(second));
        assert_eq!(first.generation, second.generation);
        let leader = first.leader.clone();
        let other = if leader == a { b } else { a };
        let generation = first.generation;
        let waits = self.sync(&other, generation, &[]);
        let got = self.sync(&leader, generation, &[(&leader, "0"), (&other, "1")]);
        assert_eq!(answer(got), Ok(Bytes::from("0")));
        assert_eq!(answer(waits), Ok(Bytes::from("1")));
        assert_eq!(self.group.state(), "Stable");
        (leader, other, generation)
    }
}

/// A member without a lasting name.
fn dynamic(member: &str) -> Identity<'_> {
    Identity {
        member,
        instance: None,
    }
}

/// What has been answered.
fn answer<T>(awaited: Awaited<T>) -> T {
    awaited.wait(|| false).expect("an answer")
}

fn joined(awaited: Awaited<JoinAnswer>) -> Joined {
    answer(awaited).expect("in the group")
}

#[test]
fn members_that_come_together_share_one_generation() {
    let mut scene = Scene::new();
    let (a, b) = (scene.name(), scene.name());
    let first = scene.join(&a, &["range", "sticky"]);
    scene.pass(Duration::from_millis(100));
    let second = scene.join(&b, &["sticky"]);
    scene.pass(Duration::from_secs(1));
    let (first, second) = (joined(first), joined(second));
    assert_eq!((first.generation, second.generation), (1, 1));
    // Only one protocol is known to both.
    assert_eq!(first.protocol, "sticky");
    let leader = if first.leader == a { &first } else { &second };
    assert_eq!(leader.members.len(), 2);
    let follower = if first.leader == a { &second } else { &first };
    assert!(follower.members.is_empty());
}

#[test]
fn a_member_that_comes_or_goes_has_all_others_join_again() {
    let mut scene = Scene::new();
    let (leader, other, generation) = scene.two();
    let third = scene.name();
    let joining = scene.join(&third, &["range"]);
    let result = scene
        .group
        .heartbeat(dynamic(&leader), generation, scene.now);
    assert_eq!(result, Err(ErrorCode::REBALANCE_IN_PROGRESS));
    let first = scene.join(&leader, &["range"]);
    let second = scene.join(&other, &["range"]);
    let generations = [joining, first, second].map(|awaited| joined(awaited).generation);
    assert_eq!(generations, [generation + 1; 3]);
    // What they knew before is of no use.
    let late = scene.sync(&other, generation, &[]);
    assert_eq!(answer(late), Err(ErrorCode::ILLEGAL_GENERATION));

    let waits = scene.sync(&other, generation + 1, &[]);
    scene.group.leave(dynamic(&third), scene.now).unwrap();
    assert_eq!(answer(waits), Err(ErrorCode::REBALANCE_IN_PROGRESS));
}

#[test]
fn a_silent_member_is_removed_and_one_that_speaks_is_not() {
    let mut scene = Scene::new();
    let (leader, other, generation) = scene.two();
    for _ in 0..4 {
        scene.pass(SESSION / 3);
        // The first answers say that it may go on, the last that the other is gone.
        let _ = scene
            .group
            .heartbeat(dynamic(&leader), generation, scene.now);
    }
    let result = scene
        .group
        .heartbeat(dynamic(&leader), generation, scene.now);
    assert_eq!(result, Err(ErrorCode::REBALANCE_IN_PROGRESS));
    let result = scene
        .group
        .heartbeat(dynamic(&other), generation, scene.now);
    assert_eq!(result, Err(ErrorCode::UNKNOWN_MEMBER_ID));
    let alone = joined(scene.join(&leader, &["range"]));
    assert_eq!(alone.members.len(), 1);
}

#[test]
fn a_member_that_does_not_join_again_is_left_behind() {
    let mut scene = Scene::new();
    let (leader, other, generation) = scene.two();
    let third = scene.name();
    let joining = scene.join(&third, &["range"]);
    let first = scene.join(&leader, &["range"]);
    for _ in 0..20 {
        scene.pass(SESSION / 2);
        // It lives, but stays in its old generation.
        let _ = scene
            .group
            .heartbeat(dynamic(&other), generation, scene.now);
    }
    assert_eq!(joined(joining).generation, generation + 1);
    assert_eq!(joined(first).members.len(), 2);
}

#[test]
fn a_leader_that_shares_nothing_out_loses_its_place() {
    let mut scene = Scene::new();
    let (a, b) = (scene.name(), scene.name());
    let (first, second) = (scene.join(&a, &["range"]), scene.join(&b, &["range"]));
    scene.pass(Duration::from_secs(1));
    let leader = joined(first).leader;
    let generation = joined(second).generation;
    let other = if leader == a { b } else { a };
    let waits = scene.sync(&other, generation, &[]);
    scene.pass(SESSION + Duration::from_secs(1));
    assert_eq!(answer(waits), Err(ErrorCode::REBALANCE_IN_PROGRESS));
    let alone = joined(scene.join(&other, &["range"]));
    assert_eq!((alone.leader, alone.members.len()), (other, 1));
}

#[test]
fn offsets_are_taken_of_members_and_of_those_that_need_no_group() {
    let mut scene = Scene::new();
    assert_eq!(scene.group.may_commit(dynamic(""), -1, scene.now), Ok(()));
    let (leader, _, generation) = scene.two();
    let now = scene.now;
    assert_eq!(
        scene.group.may_commit(dynamic(""), -1, now),
        Err(ErrorCode::UNKNOWN_MEMBER_ID)
    );
    assert_eq!(
        scene.group.may_commit(dynamic(&leader), generation, now),
        Ok(())
    );
    let earlier = scene
        .group
        .may_commit(dynamic(&leader), generation - 1, now);
    assert_eq!(earlier, Err(ErrorCode::ILLEGAL_GENERATION));
}

#[test]
fn members_that_share_in_other_ways_are_refused() {
    let mut scene = Scene::new();
    scene.two();
    let third = scene.name();
    let refused = answer(scene.join(&third, &["of my own"])).unwrap_err();
    assert_eq!(refused.error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let stranger = answer(scene.join("never-seen", &["range"])).unwrap_err();
    assert_eq!(stranger.error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn an_answer_that_got_lost_is_given_again() {
    let mut scene = Scene::new();
    let (leader, other, generation) = scene.two();
    let again = joined(scene.join(&other, &["range"]));
    assert_eq!((again.generation, again.leader), (generation, leader));
    assert_eq!(scene.group.state(), "Stable");
}

#[test]
fn without_a_lease_nothing_is_coordinated() {
    let coordinator = Coordinator::new(1);
    let result = coordinator.heartbeat("g", dynamic("m"), 1);
    assert_eq!(result, Err(ErrorCode::NOT_COORDINATOR));
    coordinator.lease_until(Instant::now() + SESSION);
    let result = coordinator.heartbeat("g", dynamic("m"), 1);
    assert_eq!(result, Err(ErrorCode::UNKNOWN_MEMBER_ID));
    // A group that nothing is in takes no memory.
    assert!(coordinator.is_empty("g"));
}

/// Two static members in a stable group: the leader's name and instance, the other's, the
/// generation.
fn two_static(scene: &mut Scene) -> ((String, &'static str), (String, &'static str), i32) {
    let (first, second) = (scene.start("left"), scene.start("right"));
    scene.pass(Duration::from_secs(1));
    let (first, second) = (joined(first), joined(second));
    let generation = first.generation;
    let names = [(first.member.clone(), "left"), (second.member, "right")];
    let [left, right] = names;
    let (leader, other) = if first.leader == left.0 {
        (left, right)
    } else {
        (right, left)
    };
    let waits = scene.sync(&other.0, generation, &[]);
    let shares = [(leader.0.as_str(), "0"), (other.0.as_str(), "1")];
    assert_eq!(
        answer(scene.sync(&leader.0, generation, &shares)),
        Ok(Bytes::from("0"))
    );
    assert_eq!(answer(waits), Ok(Bytes::from("1")));
    (leader, other, generation)
}

#[test]
fn a_static_member_that_is_restarted_keeps_its_share_and_disturbs_nobody() {
    for restart_leader in [false, true] {
        let mut scene = Scene::new();
        let (leader, other, generation) = two_static(&mut scene);
        let (restarted, share) = if restart_leader {
            (&leader, "0")
        } else {
            (&other, "1")
        };
        let again = joined(scene.start(restarted.1));
        assert_eq!(again.generation, generation);
        assert_ne!(again.member, restarted.0);
        // It must not take itself for the leader, which would share everything out anew.
        assert_ne!(again.leader, again.member);
        assert!(again.members.is_empty());
        let got = answer(scene.sync(&again.member, generation, &[]));
        assert_eq!(got, Ok(Bytes::from(share)));
        assert_eq!(scene.group.state(), "Stable");
        // The process before it is told that another one has its name.
        let before = Identity {
            member: &restarted.0,
            instance: Some(restarted.1),
        };
        let result = scene.group.heartbeat(before, generation, scene.now);
        assert_eq!(result, Err(ErrorCode::FENCED_INSTANCE_ID));
        let result = scene.group.may_commit(before, generation, scene.now);
        assert_eq!(result, Err(ErrorCode::FENCED_INSTANCE_ID));
    }
}

#[test]
fn a_static_member_that_stays_away_keeps_its_share_until_its_session_is_over() {
    let mut scene = Scene::new();
    let (leader, other, generation) = two_static(&mut scene);
    scene.pass(SESSION / 2);
    let alive = Identity {
        member: &leader.0,
        instance: Some(leader.1),
    };
    assert_eq!(scene.group.heartbeat(alive, generation, scene.now), Ok(()));
    scene.pass(SESSION / 2 + Duration::from_millis(1));
    assert_eq!(
        scene.group.heartbeat(alive, generation, scene.now),
        Err(ErrorCode::REBALANCE_IN_PROGRESS)
    );
    let rejoins = scene.join_as(&leader.0, Some(leader.1), &["range"]);
    assert_eq!(joined(rejoins).members.len(), 1);
    // Its name is free again: a process that takes it is a new member.
    let late = Identity {
        member: &other.0,
        instance: Some(other.1),
    };
    let result = scene.group.heartbeat(late, generation, scene.now);
    assert_eq!(result, Err(ErrorCode::UNKNOWN_MEMBER_ID));
}

#[test]
fn a_rebalance_does_not_drop_a_static_member_that_is_being_restarted() {
    let mut scene = Scene::new();
    let (leader, other, generation) = two_static(&mut scene);
    let third = scene.start("third");
    let rejoins = scene.join_as(&leader.0, Some(leader.1), &["range"]);
    // The session of the one that is away ends before the others' patience does, here not: it says
    // something first.
    scene.pass(SESSION - Duration::from_secs(2));
    let back = scene.start(other.1);
    let (third, rejoined, back) = (joined(third), joined(rejoins), joined(back));
    assert_eq!(third.generation, generation + 1);
    assert_eq!(
        (rejoined.generation, back.generation),
        (generation + 1, generation + 1)
    );
}

#[test]
fn an_administrator_removes_a_static_member_by_its_lasting_name() {
    let mut scene = Scene::new();
    let (leader, other, _) = two_static(&mut scene);
    let by_instance = |instance| Identity {
        member: "",
        instance: Some(instance),
    };
    let result = scene.group.leave(by_instance("nobody"), scene.now);
    assert_eq!(result, Err(ErrorCode::UNKNOWN_MEMBER_ID));
    assert_eq!(scene.group.leave(by_instance(other.1), scene.now), Ok(()));
    let rejoins = scene.join_as(&leader.0, Some(leader.1), &["range"]);
    assert_eq!(joined(rejoins).members.len(), 1);
}

/// The share that the leader is about to give is for the name of the process before.
#[test]
fn a_static_member_that_is_restarted_while_shares_are_given_out_is_not_left_without_one() {
    let mut scene = Scene::new();
    let (left, right) = (scene.start("left"), scene.start("right"));
    scene.pass(Duration::from_secs(1));
    let (left, right) = (joined(left), joined(right));
    let (generation, is_left) = (left.generation, left.leader == left.member);
    let (left, right) = ((left.member, "left"), (right.member, "right"));
    let (leader, other) = if is_left {
        (left, right)
    } else {
        (right, left)
    };
    let again = scene.start(other.1);
    let shares = [(leader.0.as_str(), "0"), (other.0.as_str(), "1")];
    let shared = answer(scene.sync(&leader.0, generation, &shares));
    assert_eq!(shared, Err(ErrorCode::REBALANCE_IN_PROGRESS));
    // Both join again, and the leader learns of the new name.
    let rejoined = joined(scene.join_as(&leader.0, Some(leader.1), &["range"]));
    let again = joined(again);
    assert_eq!(again.generation, generation + 1);
    let listed = rejoined.members.iter();
    assert!(
        listed
            .map(|member| &member.name)
            .any(|name| *name == again.member)
    );
}

/// A request may be long, and what is kept of it short.
#[test]
fn a_group_keeps_no_requests_and_counts_what_it_keeps() {
    let frame = Bytes::from(vec![7; 1 << 10]);
    let coordinator = Coordinator::new(1);
    coordinator.lease_until(Instant::now() + SESSION);
    let client = Client {
        id: "i".repeat(10_000),
        host: "h".repeat(100),
    };
    let (joins, _joining) = reply();
    let join = Join {
        member: String::new(),
        instance: None,
        client,
        session: SESSION,
        rebalance: REBALANCE,
        protocol_type: "consumer".to_owned(),
        protocols: vec![(String::new(), frame.slice(..1)); 1_000],
        joins_twice: false,
    };
    coordinator.join("g", join, joins);
    assert!(frame.is_unique());
    // The name of the member begins with that of its client.
    let least = 2 * 10_000 + 100 + 1_000 * size_of::<(String, Bytes)>();
    assert!(coordinator.bytes() > least, "{}", coordinator.bytes());

    let mut scene = Scene::new();
    let name = scene.name();
    let joining = scene.join(&name, &["range"]);
    scene.pass(Duration::from_secs(1));
    let generation = joined(joining).generation;
    let (syncs, syncing) = reply();
    let shares = vec![(name.clone(), frame.slice(..1))];
    scene
        .group
        .sync(dynamic(&name), generation, shares, syncs, scene.now);
    assert_eq!(answer(syncing), Ok(frame.slice(..1)));
    assert!(frame.is_unique());
}
