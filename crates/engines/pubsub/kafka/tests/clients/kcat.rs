//! kcat, over librdkafka as Debian has it.

use std::process::Command;

use dyno_net::Address;
use dyno_pubsub_kafka::{KafkaServer, Options};

use crate::served::{Served, front, ok, run, until};

/// `None`, with a line that says so, where kcat is not installed.
fn kcat(served: &Served, what: &str) -> Option<impl Fn(&[&str]) -> Command + use<>> {
    if Command::new("kcat").arg("-V").output().is_err() {
        println!("skipped: {what}: kcat is not installed");
        return None;
    }
    let address = served.address();
    Some(move |args: &[&str]| {
        let mut command = Command::new("kcat");
        command.args(["-b", &address, "-q"]).args(args);
        command
    })
}

#[test]
fn records_go_in_and_come_out_with_keys_headers_and_in_order() {
    let what = "kcat produces and consumes";
    let Some(served) = Served::start(what, None) else {
        return;
    };
    let Some(kcat) = kcat(&served, what) else {
        return;
    };
    served.topic("orders", 3);
    let lines: String = (0..5_000)
        .map(|n| format!("customer-{}:order {n}\n", n % 17))
        .collect();
    ok(
        &mut kcat(&["-P", "-t", "orders", "-K", ":", "-H", "trace=abc"]),
        &lines,
    );
    let format = "%p %k %s %h\n";
    let read = ok(&mut kcat(&["-C", "-t", "orders", "-e", "-f", format]), "");
    let mut next = [0; 17];
    for line in read.lines() {
        let (_, rest) = line.split_once(' ').expect("a partition");
        let (key, rest) = rest.split_once(' ').expect("a key");
        let customer: usize = key
            .trim_start_matches("customer-")
            .parse()
            .expect("a number");
        let expected = format!("order {} trace=abc", next[customer] * 17 + customer);
        assert_eq!(rest, expected);
        next[customer] += 1;
    }
    assert_eq!(next.iter().sum::<usize>(), 5_000);
    let listed = ok(&mut kcat(&["-L"]), "");
    assert!(
        listed.contains("topic \"orders\" with 3 partitions"),
        "{listed}"
    );
}

#[test]
fn what_a_client_compresses_is_read_by_the_library_and_by_sql() {
    let what = "kcat compresses";
    let Some(served) = Served::start(what, None) else {
        return;
    };
    let Some(kcat) = kcat(&served, what) else {
        return;
    };
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        served.topic(codec, 1);
        let lines: String = (0..200)
            .map(|n| format!("k:line {n} of {codec}\n"))
            .collect();
        let produce = ["-P", "-t", codec, "-p", "0", "-z", codec, "-K", ":"];
        ok(&mut kcat(&produce), &lines);
        let mut connection = served.connection();
        let topic = connection.topic(codec).expect("a topic");
        let fetched = connection
            .fetch(topic.topic_id, 0, 0, 1 << 20)
            .expect("rows");
        let rows = fetched
            .rows
            .iter()
            .flat_map(|row| row.records().expect("sound"));
        let records: Vec<_> = rows.map(|record| record.expect("whole")).collect();
        assert_eq!(records.len(), 200, "{codec}");
        assert_eq!(records[7].value, format!("line 7 of {codec}"));
        let query = "SELECT convert_from(value, 'UTF8') FROM pubsub.messages($1, 0, 7, 8)";
        let row = connection
            .client()
            .query_one(query, &[&codec])
            .expect("a row");
        assert_eq!(row.get::<_, String>(0), format!("line 7 of {codec}"));
        let read = ok(&mut kcat(&["-C", "-t", codec, "-e", "-f", "%s\n"]), "");
        assert_eq!(read.lines().count(), 200, "{codec}");
    }
}

#[test]
fn what_sql_sends_in_a_transaction_is_consumed_after_its_commit_and_never_without() {
    let what = "kcat reads an outbox";
    let Some(served) = Served::start(what, None) else {
        return;
    };
    let Some(kcat) = kcat(&served, what) else {
        return;
    };
    served.topic("outbox", 2);
    let mut connection = served.connection();
    let client = connection.client();
    client
        .batch_execute("CREATE TABLE orders (id int PRIMARY KEY)")
        .expect("a table");
    for id in 0..60 {
        let mut transaction = client.transaction().expect("a transaction");
        transaction
            .execute("INSERT INTO orders VALUES ($1)", &[&id])
            .expect("a row");
        let value = format!("order {id}");
        let key = format!("customer-{}", id % 5);
        let send = "SELECT pubsub.send('outbox', convert_to($1, 'UTF8'), key => convert_to($2, 'UTF8'), \
                    headers => '{\"kind\": \"order\"}')";
        transaction.execute(send, &[&value, &key]).expect("sent");
        match id % 3 {
            0 => transaction.rollback().expect("rolled back"),
            _ => transaction.commit().expect("committed"),
        }
    }
    let rows = client.query("SELECT id FROM orders", &[]).expect("rows");
    let mut kept: Vec<String> = (rows.iter())
        .map(|row| format!("order {} kind=order", row.get::<_, i32>(0)))
        .collect();
    let read = ok(
        &mut kcat(&["-C", "-t", "outbox", "-e", "-f", "%s %h\n"]),
        "",
    );
    let mut read: Vec<String> = read.lines().map(str::to_owned).collect();
    kept.sort();
    read.sort();
    assert_eq!(read, kept);
}

#[test]
fn without_the_token_nothing_is_told() {
    let what = "kcat shows the token";
    let token = "a-secret-of-this-test";
    let Some(served) = Served::start(what, Some(token)) else {
        return;
    };
    let Some(kcat) = kcat(&served, what) else {
        return;
    };
    let plain = [
        "-X",
        "security.protocol=SASL_PLAINTEXT",
        "-X",
        "sasl.mechanisms=PLAIN",
    ];
    let shown = |password: &str| {
        let mut command = kcat(&["-L", "-m", "5"]);
        command.args(plain);
        command.args([
            "-X",
            "sasl.username=any",
            "-X",
            &format!("sasl.password={password}"),
        ]);
        command
    };
    let listed = ok(&mut shown(token), "");
    assert!(listed.contains("1 brokers"), "{listed}");
    let refused = run(&mut shown("another-secret-of-this-test"), "");
    let nothing = run(&mut kcat(&["-L", "-m", "3"]), "");
    for output in [refused, nothing] {
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{output:?}"
        );
    }
}

/// A partition that has to be read from the database is not said to end where the client reads: a
/// client that reads to the end would take the first records for all of them.
#[test]
fn what_is_no_longer_in_memory_is_read_to_its_end() {
    let what = "kcat reads what a broker has to look for";
    let Some(mut served) = Served::start(what, None) else {
        return;
    };
    if kcat(&served, what).is_none() {
        return;
    }
    served.topic("long", 3);
    let filling = "x".repeat(400);
    let lines: String = (0..30_000)
        .map(|n| format!("key-{}:{n} {filling}\n", n % 17))
        .collect();
    let produce = kcat(&served, what).expect("installed");
    ok(&mut produce(&["-P", "-t", "long", "-K", ":"]), &lines);
    // Another broker takes over, with nothing in memory.
    served.kafka.stop();
    served.broker.stop();
    let dsn = served.cluster.dsn();
    (served.broker, served.kafka) = front(&dsn, served.folder.path(), "again.sock", None);
    until(|| served.broker.partitions().len() == 3);
    let consume = kcat(&served, what).expect("installed");
    let read = ok(&mut consume(&["-C", "-t", "long", "-e", "-f", "%s\n"]), "");
    assert_eq!(read.lines().count(), 30_000);
}

/// A client that is told of no server forgets all that it knew, and stays without any.
#[test]
fn a_server_is_listed_while_its_database_is_away() {
    let what = "kcat lists servers without a database";
    let Some(mut served) = Served::start(what, None) else {
        return;
    };
    let Some(kcat) = kcat(&served, what) else {
        return;
    };
    served.cluster.kill_all().expect("a server to kill");
    let listed = ok(&mut kcat(&["-L"]), "");
    let own = format!("at {}", served.address());
    assert!(
        listed.contains(" 1 brokers:") && listed.contains(&own),
        "{listed}"
    );
}

#[test]
fn a_topic_is_created_by_asking_for_it_where_the_server_does_so() {
    let what = "kcat creates a topic";
    let Some(served) = Served::start(what, None) else {
        return;
    };
    if kcat(&served, what).is_none() {
        return;
    }
    let socket = Address::Unix(served.folder.path().join("broker.sock"));
    let listen = "127.0.0.1:0".parse().expect("an address");
    let started = KafkaServer::start(Options {
        create_partitions: Some(3),
        ..Options::new(served.cluster.dsn(), socket, listen)
    });
    let creating = started.expect("a server");
    let address = creating.address().to_string();
    let kcat = |args: &[&str]| {
        let mut command = Command::new("kcat");
        command.args(["-b", &address, "-q"]).args(args);
        command
    };
    ok(
        &mut kcat(&["-P", "-t", "asked-for", "-K", ":"]),
        "ann:two chairs\n",
    );
    let read = ok(
        &mut kcat(&["-C", "-t", "asked-for", "-e", "-f", "%k %s\n"]),
        "",
    );
    assert_eq!(read, "ann two chairs\n");
    let topic = served.connection().topic("asked-for").expect("the topic");
    assert_eq!(topic.options.partitions, 3);
}
