//! Transactions of several connections at once: what they promise about each other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::thread;
use std::time::{Duration, Instant};

use dyno_random::Random;
use dyno_txn_node::Durability;
use support::{Client, Served, command, serve, start};

const ACCOUNTS: usize = 20;

fn number(reply: &str) -> i64 {
    let digits = reply.trim_end().rsplit("\r\n").next().unwrap();
    digits.trim_start_matches(':').parse().unwrap()
}

fn sum(client: &mut Client) -> i64 {
    let keys: Vec<String> = (0..ACCOUNTS).map(|n| format!("account:{n}")).collect();
    let reply = client.ask(&format!("mget {}", keys.join(" ")));
    let lines = reply.lines().skip(2).step_by(2);
    lines.map(|line| line.parse::<i64>().unwrap()).sum()
}

fn fill(served: &Served) -> Client {
    let mut client = served.client();
    for account in 0..ACCOUNTS {
        assert_eq!(client.ask(&format!("set account:{account} 100")), "+OK\r\n");
    }
    client
}

#[test]
fn transfers_keep_the_sum() {
    for partitions in [1, 4] {
        let served = serve(partitions);
        let mut client = fill(&served);
        let address = served.server.address();
        let movers: Vec<_> = (0..4)
            .map(|seed| {
                thread::spawn(move || {
                    let (mut client, mut random) = (Client::connect(address), Random::new(seed));
                    for _ in 0..200 {
                        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                        client.ask("multi");
                        client.ask(&format!("decrby account:{from} 7"));
                        client.ask(&format!("incrby account:{to} 7"));
                        assert!(client.ask("exec").starts_with("*2\r\n:"));
                    }
                })
            })
            .collect();
        while !movers.iter().all(thread::JoinHandle::is_finished) {
            assert_eq!(sum(&mut client), 100 * ACCOUNTS as i64);
        }
        for mover in movers {
            mover.join().unwrap();
        }
        assert_eq!(sum(&mut client), 100 * ACCOUNTS as i64);
    }
}

#[test]
fn increments_with_watch_are_not_lost() {
    let served = serve(2);
    let address = served.server.address();
    let counters: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                let mut client = Client::connect(address);
                let mut done = 0;
                while done < 50 {
                    client.ask("watch counter");
                    let reply = client.ask("get counter");
                    let old: i64 = reply.lines().nth(1).map_or(0, |text| text.parse().unwrap());
                    client.ask("multi");
                    client.ask(&format!("set counter {}", old + 1));
                    // A null means that another one was faster.
                    done += i32::from(client.ask("exec") != "*-1\r\n");
                }
            })
        })
        .collect();
    for counter in counters {
        counter.join().unwrap();
    }
    assert_eq!(served.client().ask("get counter"), "$3\r\n200\r\n");
}

/// Its absence is the same before and after, so no version in the database tells of it.
#[test]
fn a_watched_key_that_came_and_went_has_changed() {
    for partitions in [1, 3] {
        let served = serve(partitions);
        let (mut one, mut other) = (served.client(), served.client());
        for (changes, is_run) in [
            (&["set k 1", "del k"][..], false),
            (&["hset k f v", "hdel k f"], false),
            (&["mset a 1 k 1", "flushall"], false),
            (&["multi", "set k 1", "exec", "unlink k"], false),
            (&["psetex k 1 v", "exists a"], false),
            (&["del k", "expire k 5", "get k"], true),
            (&["set other 1", "del other"], true),
        ] {
            one.ask("watch k");
            for change in changes {
                other.ask(change);
            }
            if changes[0].starts_with("psetex") {
                thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(one.ask("exists k"), ":0\r\n");
            one.ask("multi");
            one.ask("ping");
            let reply = one.ask("exec");
            assert_eq!(reply != "*-1\r\n", is_run, "{changes:?}: {reply}");
        }
        // What was changed before the WATCH does not count, nor after an UNWATCH.
        one.ask("watch k");
        other.ask("set k 1");
        other.ask("del k");
        one.ask("unwatch");
        one.ask("watch k");
        one.ask("multi");
        assert_eq!(one.ask("exec"), "*0\r\n");
    }
}

#[test]
fn a_watched_key_that_changes_stops_the_transaction() {
    let served = serve(1);
    let (mut one, mut other) = (served.client(), served.client());
    for (change, is_run) in [
        ("ping", true),
        ("get k", true),
        ("set k 2", false),
        ("set unrelated 2", true),
        ("expire k 100", false),
        ("del k", false),
        ("del k", true),
        ("set k 1", false),
        ("persist k", true),
    ] {
        one.ask("watch k other");
        other.ask(change);
        one.ask("multi");
        one.ask("get k");
        let reply = one.ask("exec");
        assert_eq!(reply != "*-1\r\n", is_run, "{change}: {reply}");
    }
    // A key that goes and comes back with the same value has changed.
    one.ask("set k 1");
    one.ask("watch k");
    other.ask("del k");
    other.ask("set k 1");
    one.ask("multi");
    assert_eq!(one.ask("exec"), "*-1\r\n");
    // A client's own change counts as well, also within one pipeline.
    let lines = ["set k 1", "watch k", "set k 2", "multi", "exec"];
    for line in lines {
        one.send(&command(&line.split(' ').collect::<Vec<_>>()));
    }
    let last = lines.map(|_| String::from_utf8(one.reply()).unwrap());
    assert_eq!(last[4], "*-1\r\n");
}

#[test]
fn many_keys_are_watched_at_once() {
    let served = serve(1);
    let (mut one, mut other) = (served.client(), served.client());
    // If each were compared with all others, the client would have stopped waiting long before.
    let keys: Vec<String> = (0..150_000).map(|n| n.to_string()).collect();
    assert_eq!(one.ask(&format!("watch {}", keys.join(" "))), "+OK\r\n");
    assert_eq!(one.ask("get 7"), "$-1\r\n");
    other.ask("set 149999 1");
    one.ask("multi");
    assert_eq!(one.ask("exec"), "*-1\r\n");
}

#[test]
fn a_protocol_that_is_chosen_within_a_transaction_holds_after_it() {
    let served = serve(1);
    let mut other = served.client();
    for is_stopped in [false, true] {
        let mut client = served.client();
        client.ask("watch k");
        if is_stopped {
            other.ask("set k 1");
        }
        client.ask("multi");
        assert_eq!(client.ask("hello 3"), "+QUEUED\r\n");
        let reply = client.ask("exec");
        assert_eq!(reply == "*-1\r\n", is_stopped, "{reply}");
        assert_eq!(client.ask("get absent"), "_\r\n");
    }
}

#[test]
fn keys_expire_and_are_swept() {
    let served = serve(2);
    let mut client = served.client();
    for n in 0..50 {
        client.ask(&format!("set short:{n} value px 300"));
    }
    client.ask("set long value ex 1000");
    client.ask("set kept value");
    client.ask("watch short:0");
    assert_eq!(client.ask("dbsize"), ":52\r\n");
    thread::sleep(Duration::from_millis(350));
    assert_eq!(client.ask("get short:1"), "$-1\r\n");
    assert_eq!(client.ask("dbsize"), ":2\r\n");
    client.ask("multi");
    assert_eq!(client.ask("exec"), "*-1\r\n", "a watched key has expired");
    let until = Instant::now() + Duration::from_secs(20);
    while !client.ask("info stats").contains("expired_keys:50") {
        assert!(Instant::now() < until, "{}", client.ask("info stats"));
        thread::sleep(Duration::from_millis(50));
    }
    assert!((990..=1000).contains(&number(&client.ask("ttl long"))));
}

#[test]
fn a_scan_finds_every_key_that_stays() {
    for partitions in [1, 3] {
        let served = serve(partitions);
        let (mut client, mut other) = (served.client(), served.client());
        for n in 0..500 {
            client.ask(&format!("set stays:{n} {n}"));
        }
        let mut found = std::collections::BTreeSet::new();
        let (mut cursor, mut step) = ("0".to_owned(), 0);
        loop {
            let reply = client.ask(&format!("scan {cursor} match stays:* count 13 type string"));
            let mut lines = reply.lines().skip(2);
            cursor = lines.next().unwrap().to_owned();
            found.extend(
                lines
                    .filter(|line| line.starts_with("stays:"))
                    .map(str::to_owned),
            );
            // Others come and go meanwhile.
            other.ask(&format!("set comes:{step} x"));
            other.ask(&format!("del comes:{}", step / 2));
            step += 1;
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(found.len(), 500);
        assert!(step > 20, "{step} steps");
    }
}

#[test]
fn one_pipeline_of_many_kinds_is_answered_in_order() {
    let served = serve(3);
    let mut client = served.client();
    let lines = [
        ("ping", "+PONG\r\n"),
        ("set k 1", "+OK\r\n"),
        ("echo x", "$1\r\nx\r\n"),
        ("incr k", ":2\r\n"),
        (
            "nothing",
            "-ERR unknown command 'nothing', with args beginning with: \r\n",
        ),
        ("hello 3", "%7\r\n"),
        ("get absent", "_\r\n"),
        ("hset h f v", ":1\r\n"),
        ("hgetall h", "%1\r\n$1\r\nf\r\n$1\r\nv\r\n"),
        ("hello 2", "*14\r\n"),
        ("get absent", "$-1\r\n"),
        ("dbsize", ":2\r\n"),
        ("flushall", "+OK\r\n"),
        ("set k 5", "+OK\r\n"),
        ("dbsize", ":1\r\n"),
        ("keys *", "*1\r\n$1\r\nk\r\n"),
        ("quit", "+OK\r\n"),
    ];
    for (line, _) in lines {
        client.send(&command(&line.split(' ').collect::<Vec<_>>()));
    }
    for (line, expected) in lines {
        let reply = String::from_utf8(client.reply()).unwrap();
        assert!(reply.starts_with(expected), "{line}: {reply}");
    }
    assert_eq!(client.try_reply(), None);
}

#[test]
fn a_restart_keeps_everything() {
    let directory = tempfile::tempdir().unwrap();
    {
        let server = start(directory.path(), 2, Durability::Fsync, |_| {});
        let mut client = Client::connect(server.address());
        client.ask("set k v ex 1000");
        client.ask("hset h f 1 g 2");
        client.ask("set gone v px 1");
    }
    thread::sleep(Duration::from_millis(5));
    let server = start(directory.path(), 2, Durability::Fsync, |_| {});
    let mut client = Client::connect(server.address());
    assert_eq!(client.ask("get k"), "$1\r\nv\r\n");
    assert!((990..=1000).contains(&number(&client.ask("ttl k"))));
    assert_eq!(
        client.ask("hgetall h"),
        "*4\r\n$1\r\nf\r\n$1\r\n1\r\n$1\r\ng\r\n$1\r\n2\r\n"
    );
    assert_eq!(client.ask("exists gone k h"), ":2\r\n");
}
