//! Reading without a group: what is wanted of a topic, and nothing left behind in the log.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::served::{Log, has_server, ok, refused};
use super::sorted;

fn keyed(range: std::ops::Range<u32>) -> String {
    range
        .map(|n| format!("{{\"key\":\"{n}\",\"value\":\"{n}\"}}\n"))
        .collect()
}

/// Offsets and values by partition, in the order in which they came.
fn by_partition(text: &str) -> BTreeMap<i64, Vec<(i64, String)>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| record[name].as_i64().unwrap();
        let value = record["value"].as_str().unwrap().to_owned();
        let of_partition = found.entry(number("partition")).or_default();
        of_partition.push((number("offset"), value));
    }
    found
}

#[test]
fn a_topic_is_read_without_a_group_from_any_position() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    ok(log.dyno(&["topic", "create", "t", "--partitions", "2"]), "");
    ok(log.dyno(&["produce", "t", "--json"]), &keyed(0..100));
    std::thread::sleep(Duration::from_millis(50));
    let between = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let between = jiff::Timestamp::from_microsecond(between.as_micros() as i64).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    ok(log.dyno(&["produce", "t", "--json"]), &keyed(100..200));

    for is_direct in [false, true] {
        let way = |more: &[&str]| {
            let words = [&["consume", "t"], more].concat();
            if is_direct {
                log.direct(&words)
            } else {
                log.dyno(&words)
            }
        };
        let all = ok(way(&["--until-empty"]), "");
        assert_eq!(sorted(&all), (0..200).collect::<Vec<_>>());
        let all = by_partition(&ok(way(&["--until-empty", "--json"]), ""));
        assert_eq!(all.len(), 2);

        let last = by_partition(&ok(way(&["--last", "3", "--until-empty", "--json"]), ""));
        for (partition, records) in &all {
            let offsets = records.iter().map(|(offset, _)| *offset);
            assert!(offsets.eq(0..records.len() as i64));
            assert_eq!(last[partition], records[records.len() - 3..]);
        }
        let only = ["--partition", "1", "--from", "7", "--until-empty", "--json"];
        let only = by_partition(&ok(way(&only), ""));
        assert_eq!(only, BTreeMap::from([(1, all[&1][7..].to_vec())]));

        let time = between.to_string();
        let later = ok(way(&["--from", &time, "--until-empty"]), "");
        assert_eq!(sorted(&later), (100..200).collect::<Vec<_>>());
        assert_eq!(ok(way(&["--from", "latest", "--until-empty"]), ""), "");
        assert_eq!(ok(way(&["--count", "5"]), "").lines().count(), 5);

        // Offsets are those of the partition that is read, whatever the other one has.
        let longest = all.iter().max_by_key(|(_, records)| records.len()).unwrap();
        let (partition, end) = (longest.0.to_string(), longest.1.len().to_string());
        let at_end = ["--partition", &partition, "--from", &end, "--until-empty"];
        assert_eq!(ok(way(&at_end), ""), "");

        let beyond = refused(way(&["--from", "1000"]), "");
        assert!(
            beyond.contains("offset 1000 is not in partition 0"),
            "{beyond}"
        );
        let absent = refused(way(&["--partition", "7"]), "");
        assert!(
            absent.contains("no partition 7: they are numbered 0 to 1"),
            "{absent}"
        );
    }
    let both = ["consume", "t", "--group", "g", "--last", "3"];
    let both = refused(log.dyno(&both), "");
    assert!(both.contains("cannot be used with"), "{both}");
    let groups: Value = serde_json::from_str(&ok(log.dyno(&["group", "t", "--json"]), "")).unwrap();
    assert_eq!(groups, Value::Array(Vec::new()));
    log.stop();
}

#[test]
fn keys_and_headers_go_along() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    ok(log.dyno(&["topic", "create", "t"]), "");
    let produce = "produce t --key-separator : --header from=a=b --header to=";
    let produce: Vec<&str> = produce.split(' ').collect();
    ok(log.dyno(&produce), "k:v\n:w\n");
    let consume = |how: &str| {
        let words: Vec<&str> = how.split(' ').collect();
        ok(log.dyno(&words), "")
    };
    let pairs = consume("consume t --until-empty --key-separator =>");
    assert_eq!(pairs, "k=>v\n=>w\n");
    let json = consume("consume t --last 1 --until-empty --json");
    let record: Value = serde_json::from_str(&json).unwrap();
    let headers = serde_json::json!({ "from": "a=b", "to": "" });
    assert_eq!(record["headers"], headers, "{json}");
    log.stop();
}
