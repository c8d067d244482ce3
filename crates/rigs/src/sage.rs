//! Training sets of spots, and a small model that learns from one.
//!
//! The model is a script on scikit-learn, `peers/sage.py`, in an environment of its own. This rig
//! starts it and passes its answer on, as another rig drives the endpoint of a language model: what
//! is measured is the library, and not a program of ours.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request, parse_last_line};
use dyno_suite::{Catalogue, System, peers_root};
use serde::Deserialize;

use crate::ingest::TABLE;
use crate::sql::{printed, sql_engine};
use crate::{Params, RigError};

/// The set's file, relative to the scratch directory.
const SET: &str = "features.parquet";

const PEER: &str = "sage";
/// What the script and its declaration consist of.
const FILES: [(&str, &str); 3] = [
    ("sage.toml", include_str!("../../../peers/sage.toml")),
    ("sage.py", include_str!("../../../peers/sage.py")),
    ("door.py", include_str!("../../../peers/door.py")),
];

/// What `dyno-sql features --json` prints, as far as the rig reads it.
#[derive(Debug, Deserialize)]
struct SetSummary {
    rows: u64,
    spots: u64,
    bytes: u64,
    seconds: f64,
}

/// `ingest-features`: makes the training set of the table below `db`, with `threads`. The clock
/// runs in the child from opening the table until the file has its name; the checksum comes
/// afterwards, by a reader that is not ours.
pub(crate) fn features(params: &mut Params<'_>, scratch: &Path) -> Result<Reply, RigError> {
    let table = Path::new(params.text("db")?).join(TABLE);
    let threads = params.count("threads")?.to_string();
    let set = scratch.join(SET);
    let mut command = sql_engine()?;
    command.args(["features", "--json", "--threads", &threads, "--out"]);
    command.arg(&set).arg("--").arg(&table);
    let summary: SetSummary = printed(command)?;
    let mut command = sql_engine()?;
    command.args(["readback", "features"]).arg(&set);
    let sum: Answer = printed(command)?;
    if sum.count != summary.rows {
        return Err(RigError::ReadBack {
            path: set,
            reason: format!("it has {} rows, not {}", sum.count, summary.rows),
        });
    }
    let metrics = [
        ("throughput", summary.spots as f64 / summary.seconds),
        ("time", summary.seconds),
        ("set-bytes", summary.bytes as f64),
    ];
    Ok(Reply {
        answer: Some(sum),
        metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Reply::default()
    })
}

/// `sage-train`: has the script learn from `set`, a file of [`features`], for `epochs` with
/// `threads`; `seed` decides the first weights and the order of the rows.
pub(crate) fn train(params: &mut Params<'_>, request: &Request) -> Result<Reply, RigError> {
    // Read here so that a misspelt one is refused; the script reads them again.
    params.text("set")?;
    for name in ["epochs", "threads", "seed"] {
        if params.count(name)? == 0 && name != "seed" {
            return Err(params.wrong(name, "is 0; at least 1 is needed".to_owned()));
        }
    }
    let system = trainer()?;
    if let Some(reason) = system.missing {
        return Err(failed(reason));
    }
    let mut command = Command::new(&system.program);
    command.args(&system.args).current_dir(&request.scratch);
    // The lines of progress go straight on to the runner.
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let io = |error| RigError::io(&system.program, error);
    let mut child = command.spawn().map_err(io)?;
    let asked = serde_json::to_vec(request)?;
    // The request is smaller than a pipe's buffer, and dropping the pipe ends it.
    let written = child.stdin.take().map(|mut pipe| pipe.write_all(&asked));
    let output = child.wait_with_output().map_err(io)?;
    if !output.status.success() {
        return Err(failed(format!(
            "the script failed, {}; its reason is above",
            output.status
        )));
    }
    written.transpose().map_err(io)?;
    parse_last_line(&String::from_utf8_lossy(&output.stdout)).map_err(failed)
}

/// Why nothing can be trained on this machine; `None` if it can.
pub(crate) fn missing() -> Option<String> {
    match trainer() {
        Ok(system) => system.missing.map(|reason| format!("{PEER}: {reason}")),
        Err(error) => Some(error.to_string()),
    }
}

/// How to start the script, or why it cannot be.
fn trainer() -> Result<System, RigError> {
    let root = peers_root().ok_or_else(|| {
        failed("neither XDG_DATA_HOME nor HOME is set; set one of them".to_owned())
    })?;
    let known = |error: dyno_suite::Error| failed(error.to_string());
    let catalogue = Catalogue::built_in(&FILES, &root).map_err(known)?;
    let peer = catalogue.peer(PEER).map_err(known)?;
    Ok(catalogue.system(peer))
}

fn failed(reason: String) -> RigError {
    RigError::Program {
        program: PEER,
        reason,
    }
}
