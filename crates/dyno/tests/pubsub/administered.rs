//! Groups that are set and deleted, retention that acts, producers that are resumed: what an
//! operator does by hand.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::served::{Log, has_server, ok, refused, with_input};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn lines(range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|n| format!("{n}\n")).collect()
}

#[test]
fn a_group_is_not_made_beyond_the_end_and_can_be_set_listed_and_deleted() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    ok(log.dyno(&["topic", "create", "t"]), "");
    ok(log.dyno(&["produce", "t"]), &lines(1..=10));
    for group in ["broker", "direct"] {
        let run = |args: &[&str]| match group {
            "broker" => log.dyno(args),
            _ => log.direct(args),
        };
        let beyond = ["consume", "t", "--group", group, "--until-empty", "--from"];
        // A number that can be a time in microseconds is refused with a hint that names the time.
        let a_time = "1795156200000001";
        let said = refused(run(&[&beyond[..], &[a_time]].concat()), "");
        assert!(said.contains(&format!("time:{a_time}")), "{said}");
        let said = refused(run(&[&beyond[..], &["100"]].concat()), "");
        assert!(said.contains("beyond the end"), "{said}");
        assert!(!said.contains("time:"), "{said}");
        assert!(!said.contains("tried again"), "{said}");
        assert!(said.contains("a retry is of no use"), "{said}");
        // The same name works afterwards.
        let all = ok(run(&[&beyond[..], &["earliest"]].concat()), "");
        assert_eq!(all, lines(1..=10));
        let reset = ["group", "reset", "t", "--group", group, "--json", "--to"];
        let moved = json(&ok(run(&[&reset[..], &["7"]].concat()), ""));
        assert_eq!(
            (&moved[0]["was"], &moved[0]["committed"]),
            (&10.into(), &7.into())
        );
        let said = refused(run(&[&reset[..], &["11"]].concat()), "");
        assert!(said.contains("[offset-out-of-range]"), "{said}");
        let listed = json(&ok(run(&["group", "--json"]), ""));
        let of_group = listed
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["group"] == group);
        let of_group = of_group.unwrap();
        assert_eq!(
            (&of_group["topic"], &of_group["lag"]),
            (&"t".into(), &3.into())
        );
        assert!(ok(run(&["group"]), "").contains(group));
        let rest = ["consume", "t", "--group", group, "--until-empty"];
        assert_eq!(ok(run(&rest), ""), lines(8..=10));
        ok(run(&["group", "delete", "t", "--group", group]), "");
        let said = refused(run(&["group", "delete", "t", "--group", group]), "");
        assert!(said.contains("[unknown-group]"), "{said}");
    }
    log.stop();
}

#[test]
fn old_records_of_a_small_topic_go_and_the_list_says_what_is_kept() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    let create = [
        "topic",
        "create",
        "t",
        "--retention",
        "1s",
        "--range-records",
        "500",
    ];
    assert_eq!(ok(log.dyno(&create), ""), "topic t has 1 partition\n");
    ok(log.dyno(&["topic", "create", "kept"]), "");
    for topic in ["t", "kept"] {
        ok(log.dyno(&["produce", topic]), &lines(1..=100));
    }
    let topic = |name: &str| -> Value {
        let all = json(&ok(log.dyno(&["topic", "list", "--json"]), ""));
        let mut topics = all.as_array().unwrap().iter();
        topics.find(|one| one["topic"] == name).unwrap().clone()
    };
    assert_eq!(topic("t")["range_records"], 500);
    assert!(topic("kept")["partitions"][0]["oldest_at_us"].is_i64());
    // The broker applies retention by itself.
    let until = Instant::now() + Duration::from_secs(120);
    while topic("t")["partitions"][0]["first_offset"] != 100 {
        assert!(Instant::now() < until, "{}", topic("t"));
    }
    assert_eq!(topic("t")["partitions"][0]["oldest_at_us"], Value::Null);
    assert_eq!(topic("kept")["partitions"][0]["first_offset"], 0);
    assert!(ok(log.dyno(&["topic", "list"]), "").contains("oldest"));
    log.stop();
}

#[test]
fn other_lines_under_a_used_name_are_refused_with_the_line() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    ok(
        log.direct(&["topic", "create", "t", "--partitions", "3"]),
        "",
    );
    let resume = || log.direct(&["produce", "t", "--resume", "job1"]);
    assert_eq!(
        ok(resume(), &lines(1..=2000)),
        "2000 records acknowledged\n"
    );
    assert_eq!(
        ok(resume(), &lines(1..=2100)),
        "100 records acknowledged, 2000 were there already\n"
    );
    for (input, said) in [
        ("2\n1\n".to_owned(), "line 1 is the first that differs"),
        (
            lines(1..=2000).replace("\n1000\n", "\nother\n"),
            "the lines 767 to 1534 is the first that differs",
        ),
        (lines(1..=5), "it is not the same input"),
    ] {
        let output = with_input(&mut resume(), &input);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    }
    assert_eq!(log.records("t"), 2100);
    log.stop();
}

#[test]
fn a_partition_is_where_it_is_said_to_be_and_every_line_is_counted() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    ok(log.dyno(&["topic", "create", "t", "--partitions", "3"]), "");
    let lines = "{\"key\":\"a\",\"value\":\"1\",\"partition\":2}\n";
    let said = json(&ok(log.dyno(&["produce", "t", "--json"]), lines));
    assert_eq!(said["partitions"][0]["partition"], 2);
    let produce = ["produce", "t", "--json", "--partition", "0"];
    let said = json(&ok(log.dyno(&produce), lines));
    assert_eq!(said["partitions"][0]["partition"], 0);
    let produce = ["produce", "t", "--json"];
    let many = "{\"value\":\"1\"}\n{\"value\":\"2\",\"partition\":9}\n{\"value\":\"3\"}\n";
    let output = with_input(&mut log.dyno(&produce), many);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("line 2 is not acknowledged, and lines after 2 were not sent"),
        "{error}"
    );
    log.stop();
}
