//! Commands over all keys on several partitions, and what a server counts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use dyno_serve::Registry;
use dyno_txn_api::Procedures;
use dyno_txn_node::{Durability, OpenOptions, ServeOptions, serve};
use dyno_txn_resp::{Options, RespServer, register_procedures};
use support::{Client, command};

/// Values of one mebibyte, of which a page has four.
const VALUES: usize = 48;
const WALKS: usize = 30;

#[test]
fn a_walk_over_all_keys_is_run_a_few_times_and_not_once_for_each_page() {
    let directory = tempfile::tempdir().unwrap();
    let mut procedures = Procedures::new();
    register_procedures(&mut procedures).unwrap();
    let server = serve(ServeOptions {
        engine: OpenOptions {
            procedures,
            partitions: Some(3),
            durability: Durability::Memory,
            segment_bytes: 8 << 20,
            ..OpenOptions::default()
        },
        ..ServeOptions::new(directory.path().join("db"), "127.0.0.1:0")
    });
    let server = server.unwrap();
    let registry = Registry::new();
    let options = Options {
        registry: registry.clone(),
        ..Options::new("127.0.0.1:0".parse().unwrap())
    };
    let front = RespServer::start(server.database().unwrap(), options).unwrap();
    let mut client = Client::connect(front.address());
    let value = vec![b'v'; (1 << 20) - 64];
    for number in 0..VALUES {
        let key = format!("key:{number}");
        client.send(&command(&[b"set", key.as_bytes(), &value]));
        assert_eq!(client.reply(), b"+OK\r\n");
    }
    let reruns = || {
        // A partition publishes its figures now and then.
        std::thread::sleep(Duration::from_millis(300));
        let stats = server.stats();
        let of = stats.iter().find(|(name, _)| name == "reruns");
        of.expect("a figure").1
    };
    let before = reruns();
    for _ in 0..WALKS {
        assert_eq!(client.ask("dbsize"), format!(":{VALUES}\r\n"));
    }
    // Once each, when the others' pages are there; page by page it would be four times or more. The
    // sweep in the background is run again as well.
    let each = (reruns() - before) as f64 / WALKS as f64;
    assert!((0.9..3.0).contains(&each), "{each}");
    assert_eq!(client.ask("keys key:1?").lines().next(), Some("*10"));
    assert_eq!(client.ask("flushall"), "+OK\r\n");
    assert_eq!(client.ask("dbsize"), ":0\r\n");
    let text = registry.text();
    for line in [
        "dyno_txn_resp_connections 1\n".to_owned(),
        "dyno_txn_resp_accepted_connections_total 1\n".to_owned(),
        format!("dyno_txn_resp_commands_total {}\n", VALUES + WALKS + 3),
        format!("dyno_txn_resp_transactions_total {}\n", VALUES + WALKS + 3),
        "dyno_txn_resp_failed_transactions_total 0\n".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
}
