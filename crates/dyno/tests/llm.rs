//! `dyno run llm` on a llama.cpp server that we did not write.

#[path = "../../engines/ingest/ask/tests/llama/mod.rs"]
mod llama;

use std::process::Command;

use llama::Llama;

#[test]
fn an_endpoint_is_measured_alone_and_beside_loads() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = Llama::start(folder.path(), "the suite llm") else {
        return;
    };
    let endpoint = format!("endpoint={}", server.address);
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(["run", "llm", "--tiny", "--set", &endpoint, "--json"]);
    command
        .args(["--data-dir", "data"])
        .current_dir(folder.path());
    let output = command.output().expect("dyno starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for title in ["Tokens written by", "Rows loaded beside"] {
        let tables = report["tables"].as_array().expect("tables");
        let mut titles = tables.iter().filter_map(|table| table["title"].as_str());
        let found = titles.find(|found| found.starts_with(title));
        let named = found.is_some_and(|found| found.contains("a random model of one layer"));
        assert!(named, "{title}: {found:?}");
    }
    let figures = report["figures"].as_array().expect("figures");
    for (case, metric) in [
        ("tokens", "throughput"),
        ("first-token", "first-token-p50"),
        ("loading", "load-throughput"),
    ] {
        let of_case = figures.iter().filter(|figure| figure["case"] == case);
        let found: Vec<_> = of_case
            .filter(|figure| figure["metric"] == metric)
            .collect();
        assert!(
            found.len() >= 2,
            "{case} {metric}, alone and beside: {errors}"
        );
        for figure in found {
            assert!(
                figure["median"].as_f64().is_some_and(|value| value > 0.0),
                "{figure}"
            );
        }
    }
}
