//! Clients of Redis: what they were told is there after kills, and foreign programs are served.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::served::dyno;

/// A server for clients of Redis; it is killed when dropped.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(data: &str) -> Served {
        let mut command = dyno(&["txn", "serve", "--listen", "127.0.0.1:0", "--data", data]);
        command.args(["--resp", "127.0.0.1:0", "--checkpoint", "8MiB"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let address = line.strip_prefix("clients of Redis at ")?;
            Some(address.to_owned())
        });
        Served {
            child,
            address: address.expect("an address"),
        }
    }

    fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes counters until the connection breaks. Returns the last value of each that was
/// acknowledged.
fn write_until_killed(address: &str, client: usize, from: u64) -> Vec<u64> {
    let stream = TcpStream::connect(address).unwrap();
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    let mut acknowledged = vec![0; 4];
    for value in from.. {
        // Four commands in one pipeline, of which each is acknowledged by itself.
        let lines: Vec<String> = (0..4)
            .map(|key| format!("set kill:{client}:{key} {value}\r\n"))
            .collect();
        if stream.write_all(lines.concat().as_bytes()).is_err() {
            break;
        }
        for last in &mut acknowledged {
            let mut reply = String::new();
            match replies.read_line(&mut reply) {
                Ok(1..) if reply == "+OK\r\n" => *last = value,
                _ => return acknowledged,
            }
        }
    }
    acknowledged
}

fn get(address: &str, key: &str) -> u64 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("get {key}\r\n").as_bytes())
        .unwrap();
    let mut lines = BufReader::new(stream).lines();
    let length = lines.next().unwrap().unwrap();
    match length.as_str() {
        "$-1" => 0,
        _ => lines.next().unwrap().unwrap().parse().unwrap(),
    }
}

#[test]
fn what_clients_of_redis_were_told_is_there_after_kills() {
    let at = tempfile::tempdir().unwrap();
    let data = at.path().join("cache").display().to_string();
    let mut acknowledged = vec![vec![0; 4]; 4];
    let mut from = 1;
    for _ in 0..4 {
        let mut served = Served::start(&data);
        for (client, values) in acknowledged.iter().enumerate() {
            for (key, value) in values.iter().enumerate() {
                let found = get(&served.address, &format!("kill:{client}:{key}"));
                assert!(found >= *value, "{found} instead of {value}");
            }
        }
        let writers: Vec<_> = (0..4)
            .map(|client| {
                let address = served.address.clone();
                thread::spawn(move || write_until_killed(&address, client, from))
            })
            .collect();
        thread::sleep(Duration::from_millis(400));
        served.child.kill().unwrap();
        for (writer, values) in writers.into_iter().zip(&mut acknowledged) {
            *values = writer.join().unwrap();
            assert!(values[0] > 0, "nothing was written in this life");
        }
        from = 1_000_000 * (from / 1_000_000 + 1);
    }
}

#[test]
fn foreign_programs_are_served() {
    let at = tempfile::tempdir().unwrap();
    let data = at.path().join("cache").display().to_string();
    let served = Served::start(&data);
    let asked = |arguments: &[&str]| {
        let mut command = Command::new("redis-cli");
        let output = command.args(["-p", served.port()]).args(arguments).output();
        output.map(|output| String::from_utf8(output.stdout).unwrap())
    };
    let Ok(pong) = asked(&["ping"]) else {
        println!("skipped: clients of Redis: redis-cli is not installed");
        return;
    };
    assert_eq!(pong, "PONG\n");
    assert_eq!(asked(&["-3", "hset", "h", "f", "v"]).unwrap(), "1\n");
    assert_eq!(asked(&["-3", "hgetall", "h"]).unwrap(), "f v\n");
    assert_eq!(asked(&["--scan"]).unwrap(), "h\n");
    assert!(asked(&["info"]).unwrap().contains("dyno_durability:fsync"));
    let begun = Instant::now();
    let output = Command::new("redis-benchmark")
        .args([
            "-p",
            served.port(),
            "-n",
            "2000",
            "-c",
            "20",
            "-P",
            "4",
            "--csv",
        ])
        .args(["-t", "ping,set,get,incr,mset,hset"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    for test in ["SET", "GET", "INCR", "HSET", "MSET (10 keys)"] {
        assert!(said.contains(&format!("\"{test}\"")), "{said}");
    }
    println!("{} s:\n{said}", begun.elapsed().as_secs());
}
