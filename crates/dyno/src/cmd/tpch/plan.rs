//! `dyno tpch plan`: a job for a scheduler, whose tasks write a part each.

use anyhow::{Context, bail};
use dyno_tpch_files::SinkKind;

use super::generate::job;
use crate::args::{Scheduler, TpchPlanArgs, TpchWhatArgs};
use crate::exit::Exit;
use crate::terminal;

/// Processors and memory of a task, where nobody says.
const DEFAULT_JOBS: u64 = 4;
/// What a task may take beside its own bound, in bytes.
const HEADROOM_BYTES: u64 = 128 << 20;

pub fn run(args: &TpchPlanArgs) -> anyhow::Result<Exit> {
    // A plan that no task could run is refused here and not on the cluster.
    job(&args.what)?;
    if matches!(args.what.sink, SinkKind::Null | SinkKind::Stdout) {
        bail!("--sink {} leaves no files for a plan", args.what.sink);
    }
    terminal::print(&match args.scheduler {
        Scheduler::Slurm => slurm(args),
        Scheduler::Kubernetes => kubernetes(args)?,
        Scheduler::Parallel => parallel(args),
    })?;
    Ok(Exit::Done)
}

fn jobs(args: &TpchPlanArgs) -> u64 {
    args.what.jobs.unwrap_or(DEFAULT_JOBS)
}

fn memory_mib(args: &TpchPlanArgs) -> u64 {
    (args.what.memory + HEADROOM_BYTES) >> 20
}

/// The command of a task; `part` is how its scheduler says the part's number.
fn command(args: &TpchPlanArgs, part: &str) -> Vec<String> {
    let what = &args.what;
    let mut words: Vec<String> = ["dyno", "tpch", "gen", "--sf"].map(String::from).into();
    words.push(what.sf.to_string());
    words.push(format!("--part {part}/{}", args.parts));
    words.push(format!("--format {}", what.format));
    words.push(format!("--jobs {}", jobs(args)));
    words.push(format!("--memory {}", what.memory));
    words.extend(choices(what));
    words
}

/// What was chosen and is not the default.
fn choices(what: &TpchWhatArgs) -> Vec<String> {
    let mut words = vec![
        format!("--mode {}", what.mode),
        format!("--sink {}", what.sink),
    ];
    if let Some(out) = &what.out {
        words.push(format!("--out {}", quoted(out)));
    }
    if !what.tables.is_empty() {
        let names: Vec<&str> = what.tables.iter().map(|table| table.name()).collect();
        words.push(format!("--tables {}", names.join(",")));
    }
    if let Some(compression) = what.compression {
        words.push(format!("--compression {compression}"));
    }
    for (column, choice) in &what.columns {
        words.push(format!(
            "--column {}",
            quoted(&format!("{column}={choice}"))
        ));
    }
    words.push(format!("--page-version {}", what.page_version));
    if let Some(rows) = what.group_rows {
        words.push(format!("--group-rows {rows}"));
    }
    if let Some(bytes) = what.group_bytes {
        words.push(format!("--group-bytes {bytes}"));
    }
    words
}

/// For a POSIX shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn slurm(args: &TpchPlanArgs) -> String {
    format!(
        "#!/bin/bash\n\
         # TPC-H at scale factor {sf} in {parts} parts. A task may be started again at any time:\n\
         # scancel, node failure and `scontrol requeue` leave no half file under a final name.\n\
         #SBATCH --job-name=tpch\n\
         #SBATCH --array=1-{parts}\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --cpus-per-task={jobs}\n\
         #SBATCH --mem={memory}M\n\
         #SBATCH --requeue\n\
         set -euo pipefail\n\
         exec {command}\n",
        sf = args.what.sf,
        parts = args.parts,
        jobs = jobs(args),
        memory = memory_mib(args),
        command = command(args, "\"$SLURM_ARRAY_TASK_ID\"").join(" "),
    )
}

fn parallel(args: &TpchPlanArgs) -> String {
    format!(
        "#!/bin/bash\n\
         # TPC-H at scale factor {sf} in {parts} parts, by GNU parallel. A part that failed is tried\n\
         # three times; the script may be run again and does what is left.\n\
         set -euo pipefail\n\
         seq 1 {parts} | parallel --jobs 1 --retries 3 --halt soon,fail=1 {command}\n",
        sf = args.what.sf,
        parts = args.parts,
        command = quoted(&command(args, "{}").join(" ")),
    )
}

fn kubernetes(args: &TpchPlanArgs) -> anyhow::Result<String> {
    let image = args
        .image
        .as_deref()
        .context("--image names the container image that has dyno in it")?;
    let out = args.what.out.as_deref().context("--out is missing")?;
    let claim = args.claim.as_deref();
    let Some(claim) = claim else {
        bail!("--claim names the persistent volume claim that {out} lies on");
    };
    // JSON strings are YAML strings.
    let string = |text: &str| serde_json::to_string(text);
    let shell = format!(
        "exec {}",
        command(args, "$((JOB_COMPLETION_INDEX + 1))").join(" ")
    );
    Ok(format!(
        "# TPC-H at scale factor {sf} in {parts} parts. A pod that was evicted may be started again: no half\n\
         # file is left under a final name.\n\
         apiVersion: batch/v1\n\
         kind: Job\n\
         metadata:\n  name: tpch\n\
         spec:\n  completionMode: Indexed\n  completions: {parts}\n  parallelism: {parts}\n  backoffLimitPerIndex: 3\n  template:\n    \
         spec:\n      restartPolicy: Never\n      containers:\n        - name: dyno\n          image: {image}\n          \
         command: [\"/bin/sh\", \"-c\", {shell}]\n          \
         resources:\n            requests: {{ cpu: \"{jobs}\", memory: \"{memory}Mi\" }}\n            limits: {{ memory: \"{memory}Mi\" }}\n          \
         volumeMounts:\n            - {{ name: tables, mountPath: {out} }}\n      \
         volumes:\n        - name: tables\n          persistentVolumeClaim: {{ claimName: {claim} }}\n",
        sf = args.what.sf,
        parts = args.parts,
        image = string(image)?,
        shell = string(&shell)?,
        jobs = jobs(args),
        memory = memory_mib(args),
        out = string(out)?,
        claim = string(claim)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for text in ["plain/path", "", "two words", "it's", "a$b`c\"d\\e"] {
            let command = format!("printf %s {}", quoted(text));
            let output = std::process::Command::new("sh")
                .args(["-c", &command])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
