//! `peers/sage.py` on sets of which it is known what can be learned from them.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Rows of the sets that `sage_sets.py` makes.
const ROWS: u64 = 30_003;

fn python() -> Option<PathBuf> {
    let python = dyno_suite::peers_root()?.join("sage/venv/bin/python");
    if !python.exists() {
        println!("skipped: training: scikit-learn is not installed (dyno peers install sage)");
        return None;
    }
    Some(python)
}

fn run(python: &Path, words: &[&str]) -> Vec<u8> {
    let output = Command::new(python).args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {said}");
    output.stdout
}

/// What the script answers about a set whose SNR follows from `law`.
fn trained(law: &str, epochs: &str) -> Option<Value> {
    let python = python()?;
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set.parquet");
    let set = set.to_str().unwrap();
    let here = env!("CARGO_MANIFEST_DIR");
    run(&python, &[&format!("{here}/tests/sage_sets.py"), law, set]);
    let reply = run(
        &python,
        &[&format!("{here}/../../peers/sage.py"), set, epochs],
    );
    Some(serde_json::from_slice(&reply).unwrap())
}

fn number(reply: &Value, name: &str) -> f64 {
    reply["metrics"][name].as_f64().unwrap()
}

/// The SNR depends on the hour, which the baseline does not know, with noise of 2 dB.
#[test]
fn a_model_learns_what_the_baseline_cannot_know() {
    let Some(reply) = trained("by-the-hour", "4") else {
        return;
    };
    assert_eq!(reply["answer"]["count"], ROWS);
    assert_eq!(reply["facts"]["model-verdict"], "beats the baseline");
    let (model, baseline) = (
        number(&reply, "model-rmse-db"),
        number(&reply, "baseline-rmse-db"),
    );
    assert!((1.9..3.0).contains(&model), "{model}");
    // The hour moves it by a sine of 8 dB, whose deviation is 5.66 dB, beside the noise.
    assert!((5.6..6.4).contains(&baseline), "{baseline}");
    let losses = reply["facts"]["losses"].as_str().unwrap().split(", ");
    let losses: Vec<f64> = losses.map(|loss| loss.parse().unwrap()).collect();
    assert_eq!(losses.len(), 4);
    assert!(losses[3] < losses[0] / 2.0, "{losses:?}");
    assert_eq!(reply["windows"].as_array().unwrap().len(), 4);
    assert!(number(&reply, "throughput") > 0.0);
}

/// The SNR is that of band and class of distance, which the baseline gets exactly.
#[test]
fn a_model_that_is_beaten_by_the_baseline_is_reported_as_beaten() {
    let Some(reply) = trained("by-the-class", "1") else {
        return;
    };
    assert_eq!(number(&reply, "baseline-rmse-db"), 0.0);
    assert!(number(&reply, "model-rmse-db") > 0.0);
    assert_eq!(reply["facts"]["model-verdict"], "is beaten by the baseline");
}

/// Ten rows have the same moment, so the cut lies at a multiple of ten.
#[test]
fn rows_of_one_moment_are_held_out_together() {
    let Some(reply) = trained("by-the-class", "1") else {
        return;
    };
    let split = reply["answer"]["checksum"].as_str().unwrap();
    assert_eq!(split, "24000 for training, 6003 held out");
}
