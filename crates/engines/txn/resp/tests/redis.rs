//! The same commands at random for this server and for Redis itself: every reply has to be the
//! same, byte for byte. Without `redis-server` the test says that it is skipped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/streams.rs"]
mod streams;
mod support;

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dyno_random::Random;
use support::{Client, command, serve};

/// Commands in one stream.
const COMMANDS: usize = 4_000;

/// A server of Redis of our own, stopped when it is dropped.
struct Redis {
    child: Child,
    address: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Redis {
    fn start() -> Option<Redis> {
        let directory = tempfile::tempdir().unwrap();
        let port = dyno_ports::free().unwrap();
        let started = Command::new("redis-server")
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
            ])
            .args(["--appendonly", "no", "--dir"])
            .arg(directory.path())
            .stdout(Stdio::null())
            .spawn();
        let Ok(child) = started else {
            println!("skipped: redis-server is not installed");
            return None;
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let until = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(address).is_err() {
            assert!(Instant::now() < until, "redis-server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Redis {
            child,
            address,
            _directory: directory,
        })
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keys that a reply lists may come in any order.
fn sorted(reply: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = reply.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// Times to live that were read at slightly different moments.
fn is_near(ours: &[u8], theirs: &[u8]) -> bool {
    let number = |reply: &[u8]| {
        let text = std::str::from_utf8(reply).ok()?;
        text.strip_prefix(':')?.trim_end().parse::<i64>().ok()
    };
    match (number(ours), number(theirs)) {
        (Some(a), Some(b)) => a == b || (a > 0 && b > 0 && (a - b).abs() <= 2),
        _ => ours == theirs,
    }
}

/// Sends one stream to both, in pipelines of random length.
fn compare(seed: u64, partitions: u32, redis: &Redis, hello: &str) {
    let served = serve(partitions);
    let (mut ours, mut theirs) = (served.client(), Client::connect(redis.address));
    for client in [&mut ours, &mut theirs] {
        client.ask(hello);
        client.ask("flushall");
    }
    let mut random = Random::new(seed);
    let mut done = 0;
    let mut log: Vec<String> = Vec::new();
    // Listed and timed replies can be inside of an EXEC, too.
    let mut is_loose = false;
    while done < COMMANDS {
        let list: Vec<_> = (0..1 + random.below(30))
            .map(|_| streams::next(&mut random))
            .collect();
        let bytes: Vec<u8> = list.iter().flat_map(|one| command(one)).collect();
        ours.send(&bytes);
        theirs.send(&bytes);
        for one in list {
            let name = String::from_utf8_lossy(&one[0]).to_ascii_lowercase();
            let shown: Vec<_> = one
                .iter()
                .map(|word| String::from_utf8_lossy(word))
                .collect();
            log.push(shown.join(" "));
            let (left, right) = (ours.reply(), theirs.reply());
            is_loose |= name == "keys" || name == "ttl" || name == "expiretime";
            let is_same = match name.as_str() {
                "keys" => sorted(&left) == sorted(&right),
                "ttl" | "expiretime" => is_near(&left, &right),
                "exec" if is_loose => sorted(&left).len() == sorted(&right).len(),
                _ => left == right,
            };
            if name == "exec" || name == "discard" {
                is_loose = false;
            }
            let last = log.len().saturating_sub(30);
            assert!(
                is_same,
                "seed {seed}, command {done}\nours   {:?}\ntheirs {:?}\nafter\n  {}",
                String::from_utf8_lossy(&left),
                String::from_utf8_lossy(&right),
                log[last..].join("\n  "),
            );
            // A RESET has both speak the first version again.
            if name == "reset" {
                assert_eq!(left, b"+RESET\r\n");
            }
            done += 1;
        }
    }
}

#[test]
fn replies_are_those_of_redis() {
    let Some(redis) = Redis::start() else { return };
    for (seed, partitions, hello) in [
        (1, 1, "hello 2"),
        (2, 1, "hello 3"),
        (3, 4, "hello 2"),
        (4, 4, "hello 3"),
    ] {
        compare(seed, partitions, &redis, hello);
    }
}

#[test]
fn broken_frames_are_answered_as_by_redis() {
    let Some(redis) = Redis::start() else { return };
    let served = serve(1);
    for bytes in [
        &b"*x\r\n"[..],
        b"*1\r\n:1\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n$x\r\n",
        b"get \"k\r\n",
        b"set k 'v'x\r\n",
        b"PING\r\n*1\r\n!\r\n",
    ] {
        let read = |mut client: Client| {
            client.send(bytes);
            let mut replies = Vec::new();
            while let Some(reply) = client.try_reply() {
                replies.extend(reply);
            }
            String::from_utf8_lossy(&replies).into_owned()
        };
        let ours = read(served.client());
        assert_eq!(ours, read(Client::connect(redis.address)), "{bytes:?}");
    }
}
