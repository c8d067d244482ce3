//! Rates below the roofs of the machine: only what a system itself states of its processor time.

use crate::made_up;

use dyno_record::StoredRun;
use dyno_report::build_stored;
use serde_json::Value;

const CASE: &str = "load-csv-2";

/// The made-up run on two processors, in which a sample of `system` states `metrics`.
fn stating(system: &str, metrics: &[(&str, f64)]) -> StoredRun {
    let mut stored = made_up::stored();
    let facts = &mut stored.run.machine.facts;
    facts.push(("logical cpus".to_owned(), "2".to_owned()));
    let own = stored.samples.iter_mut();
    for sample in own.filter(|s| s.case == CASE && s.system == system) {
        let stated = metrics.iter();
        sample
            .metrics
            .extend(stated.map(|(name, value)| ((*name).to_owned(), *value)));
    }
    stored
}

/// The data of the page's plots.
fn rooflines(stored: &StoredRun) -> Vec<Value> {
    let page = build_stored(stored).to_html().unwrap();
    let data = page
        .split("<script type=\"application/json\" id=\"data\">")
        .nth(1)
        .unwrap();
    let data: Value = serde_json::from_str(data.split("</script>").next().unwrap()).unwrap();
    let all = data["rooflines"].as_array().unwrap();
    all.iter().filter(|one| !one.is_null()).cloned().collect()
}

#[test]
fn a_load_is_placed_by_the_processor_time_of_its_clock() {
    let metrics = [("throughput", 8e6), ("time", 0.5), ("cpu", 0.8)];
    let [roofline] = &rooflines(&stating("dyno", &metrics))[..] else {
        panic!("one case states its processor time");
    };
    assert_eq!(roofline["processors"], 2.0);
    assert!(roofline["limit"].as_f64().unwrap() > 0.0);
    let points = roofline["points"].as_array().unwrap();
    assert_eq!(points.len(), 1, "DuckDB states none: {points:?}");
    assert_eq!(points[0]["system"], "dyno");
    assert!((points[0]["busy"].as_f64().unwrap() - 1.6).abs() < 1e-9);
    assert!((points[0]["per_cpu_s"].as_f64().unwrap() - 5e6).abs() < 1.0);
}

#[test]
fn what_the_runner_saw_from_outside_is_no_point() {
    // The usage of the made-up samples covers their whole life, with the check of the answer.
    assert!(rooflines(&stating("dyno", &[])).is_empty());
}
