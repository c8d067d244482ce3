//! What the engine refuses, and what it does with the rest of the transaction then.

use dyno_txn_api::{
    Answer, Code, Key, Operation, Procedures, Request, TableDef, TableId, Timestamp,
};
use dyno_txn_core::message::{Address, Fate, Head, Message};
use dyno_txn_core::{Config, Effects, Partition};

use crate::cluster::Cluster;

const TABLE: TableId = TableId(1);

struct One {
    cluster: Cluster,
    partition: Partition,
    now: u64,
}

impl One {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let cluster = Cluster::new(1, 1, false, Procedures::new());
        let mut config = Config::new(0, 1);
        config.log = false;
        change(&mut config);
        let timestamps = Box::new(cluster.shared.clone());
        let partition = Partition::new(config, Procedures::new(), timestamps);
        let mut one = Self {
            cluster,
            partition,
            now: 0,
        };
        one.say(Message::CreateTable {
            ticket: 0,
            def: TableDef::hash("t", 0),
        });
        one
    }

    fn timestamp(&self) -> Timestamp {
        self.cluster.shared.clock.issue(self.now).expect("no bound")
    }

    fn say(&mut self, message: Message) -> Vec<Message> {
        let mut effects = Effects::default();
        self.partition
            .handle(self.now, Address::Client(1), message, &mut effects);
        effects
            .sends
            .into_iter()
            .map(|(_, message)| message)
            .collect()
    }

    fn execute(&mut self, timestamp: Timestamp, operations: Vec<Operation>) -> Vec<Message> {
        self.execute_after(0, timestamp, operations)
    }

    fn execute_after(
        &mut self,
        after: u32,
        timestamp: Timestamp,
        operations: Vec<Operation>,
    ) -> Vec<Message> {
        let head = Head {
            timestamp,
            holder: 0,
            priority: 128,
        };
        self.say(Message::Execute {
            head,
            batch: 0,
            after,
            deadline_ns: 1_000_000_000,
            operations,
        })
    }

    fn commit(&mut self, timestamp: Timestamp, writes: u32) -> Option<Code> {
        let head = Head {
            timestamp,
            holder: 0,
            priority: 128,
        };
        match self
            .say(Message::Commit {
                head,
                writes: vec![(0, writes)],
            })
            .pop()
        {
            Some(Message::Ended { result, .. }) => result.err().map(|error| error.kind()),
            other => panic!("no end: {other:?}"),
        }
    }

    /// Moves the horizon above all timestamps so far.
    fn pass_the_horizon(&mut self) {
        self.now += 1_000_000;
        let timestamp = self.timestamp();
        self.execute(timestamp, vec![put("later")]);
        self.partition.tick(self.now, &mut Effects::default());
    }

    fn put_alone(&mut self, name: &str, bytes: usize) -> Option<Code> {
        let put = Operation::put(Key::new(TABLE, name), vec![0; bytes]);
        self.one_shot(vec![put])
    }

    fn one_shot(&mut self, operations: Vec<Operation>) -> Option<Code> {
        let request = Request::Operations(operations);
        let one_shot = Message::OneShot {
            ticket: 1,
            timestamp: None,
            priority: 0,
            deadline_ns: 1_000_000_000,
            request,
        };
        match self.say(one_shot).pop() {
            Some(Message::Done { result, .. }) => result.err().map(|error| error.kind()),
            other => panic!("no answer: {other:?}"),
        }
    }
}

fn put(name: &str) -> Operation {
    Operation::put(Key::new(TABLE, name), "v")
}

#[test]
fn a_commit_after_a_failed_write_is_refused_whatever_the_client_says() {
    let mut one = One::new(|_| {});
    assert_eq!(one.put_alone("there", 1), None);
    let timestamp = one.timestamp();
    one.execute(timestamp, vec![put("a")]);
    one.execute_after(
        1,
        timestamp,
        vec![Operation::insert(Key::new(TABLE, "there"), "w")],
    );
    assert_eq!(one.commit(timestamp, 1), Some(Code::AlreadyExists));
    assert_eq!(
        one.one_shot(vec![Operation::insert(Key::new(TABLE, "a"), "x")]),
        None
    );
}

#[test]
fn a_commit_that_counts_fewer_writes_than_came_is_refused() {
    let mut one = One::new(|_| {});
    let timestamp = one.timestamp();
    one.execute(timestamp, vec![put("a"), put("b")]);
    assert_eq!(one.commit(timestamp, 1), Some(Code::WriteFailed));
    assert_eq!(
        one.commit(timestamp, 2),
        Some(Code::Aborted),
        "and it stays aborted"
    );
}

#[test]
fn who_is_asked_for_before_it_committed_cannot_commit_any_more() {
    let mut one = One::new(|_| {});
    let timestamp = one.timestamp();
    let answer = one.say(Message::Ask { timestamp }).pop();
    assert_eq!(
        answer,
        Some(Message::FateAnswer {
            timestamp,
            fate: Fate::Aborted
        })
    );
    one.execute(timestamp, vec![put("a")]);
    assert_eq!(one.commit(timestamp, 1), Some(Code::Aborted));
}

#[test]
fn writes_are_refused_at_the_memory_bound_and_deletes_make_room() {
    let mut one = One::new(|config| {
        config.memory_bytes = 1 << 20;
        config.retention_ns = 10;
    });
    let mut stored = 0;
    let refused = loop {
        match one.put_alone(&format!("{stored}"), 10_000) {
            None => stored += 1,
            Some(code) => break code,
        }
        assert!(stored < 200, "the bound was never reached");
    };
    assert_eq!(refused, Code::MemoryFull);
    assert_eq!(
        one.one_shot(vec![Operation::get(Key::new(TABLE, "0"))]),
        None
    );
    for number in 0..stored {
        let delete = Operation::delete(Key::new(TABLE, format!("{number}")));
        assert_eq!(one.one_shot(vec![delete]), None);
    }
    one.now += 1_000_000_000;
    assert_eq!(
        one.one_shot(vec![Operation::get(Key::new(TABLE, "0"))]),
        None
    );
    one.partition.tick(one.now, &mut Effects::default());
    assert_eq!(one.put_alone("again", 10_000), None);
}

#[test]
fn a_silent_client_is_aborted_and_its_rows_are_free() {
    let mut one = One::new(|_| {});
    let timestamp = one.timestamp();
    one.execute(timestamp, vec![put("a")]);
    for _ in 0..30 {
        one.now += 100_000_000;
        one.partition.tick(one.now, &mut Effects::default());
    }
    assert_eq!(one.commit(timestamp, 1), Some(Code::Aborted));
    assert_eq!(one.put_alone("a", 1), None);
}

#[test]
fn strangers_cannot_speak_for_partitions_or_from_the_future() {
    let mut one = One::new(|_| {});
    let timestamp = one.timestamp();
    one.execute(timestamp, vec![put("a")]);
    assert_eq!(
        one.say(Message::Finalize {
            timestamp,
            commit: true
        }),
        []
    );
    let push = Message::Push {
        timestamp,
        by: 1,
        priority: 9,
        force: true,
    };
    assert_eq!(one.say(push), []);
    let Some(Message::Executed {
        result: Err(error), ..
    }) = one.execute(u64::MAX - 9, vec![put("b")]).pop()
    else {
        panic!("a timestamp that nobody gave was taken");
    };
    assert_eq!(error.kind(), Code::BadArgument);
    assert_eq!(one.commit(timestamp, 1), None);
}

#[test]
fn a_batch_that_came_twice_does_not_stand_for_one_that_was_lost() {
    let mut one = One::new(|_| {});
    let timestamp = one.timestamp();
    one.execute_after(0, timestamp, vec![put("a")]);
    assert_eq!(
        one.execute_after(0, timestamp, vec![put("a")]),
        [],
        "a repetition"
    );
    let head = Head {
        timestamp,
        holder: 0,
        priority: 128,
    };
    // Two were sent, one came: the commit waits for the other.
    assert_eq!(
        one.say(Message::Commit {
            head,
            writes: vec![(0, 2)]
        }),
        []
    );
    let ended = one.execute_after(1, timestamp, vec![put("b")]);
    assert!(
        ended.contains(&Message::Ended {
            timestamp,
            result: Ok(())
        }),
        "{ended:?}"
    );
}

#[test]
fn a_read_does_not_overtake_the_own_write_that_waits() {
    let mut one = One::new(|_| {});
    let (older, younger) = (one.timestamp(), one.timestamp());
    one.execute(older, vec![put("a")]);
    let mine = Operation::put(Key::new(TABLE, "a"), "mine");
    assert_eq!(one.execute_after(0, younger, vec![mine]), []);
    let read = Operation::get(Key::new(TABLE, "a"));
    assert_eq!(one.execute_after(1, younger, vec![read]), []);
    let head = Head {
        timestamp: older,
        holder: 0,
        priority: 128,
    };
    let answers = one.say(Message::Commit {
        head,
        writes: vec![(0, 1)],
    });
    let values = answers.iter().filter_map(|message| match message {
        Message::Executed {
            result: Ok(parts), ..
        } => Some(parts[0].answer.clone()),
        _ => None,
    });
    let wanted = [Answer::Done, Answer::Value(Some(b"mine".to_vec()))];
    assert_eq!(values.collect::<Vec<_>>(), wanted);
}

/// The answer that a request is too old would let the client do it all again.
#[test]
fn a_repeated_commit_is_not_too_old_while_its_votes_are_out() {
    let mut one = One::new(|config| {
        config.partitions = 2;
        config.retention_ns = 10;
    });
    let timestamp = one.timestamp();
    one.execute(timestamp, vec![put("a")]);
    let head = Head {
        timestamp,
        holder: 0,
        priority: 128,
    };
    let commit = Message::Commit {
        head,
        writes: vec![(0, 1), (1, 1)],
    };
    let confirm = Message::Confirm { head, writes: 1 };
    assert_eq!(one.say(commit.clone()), [confirm]);
    one.pass_the_horizon();
    assert_eq!(one.say(commit.clone()), []);
    let mut effects = Effects::default();
    let vote = Message::Vote {
        timestamp,
        result: Ok(()),
    };
    let voter = Address::Partition(1);
    one.partition.handle(one.now, voter, vote, &mut effects);
    let ended = Message::Ended {
        timestamp,
        result: Ok(()),
    };
    let answer = (Address::Client(1), ended.clone());
    assert!(effects.sends.contains(&answer), "{:?}", effects.sends);
    assert_eq!(one.say(commit), [ended], "it stays committed");
}

#[test]
fn a_repeated_one_shot_is_not_too_old_after_it_has_committed() {
    let mut one = One::new(|config| config.retention_ns = 10);
    let timestamp = one.timestamp();
    let one_shot = Message::OneShot {
        ticket: 1,
        timestamp: Some(timestamp),
        priority: 0,
        deadline_ns: 1_000_000_000,
        request: Request::Operations(vec![put("a")]),
    };
    let done = one.say(one_shot.clone());
    assert!(
        matches!(&done[..], [Message::Done { result: Ok(_), .. }]),
        "{done:?}"
    );
    one.pass_the_horizon();
    assert_eq!(one.say(one_shot), []);
}
