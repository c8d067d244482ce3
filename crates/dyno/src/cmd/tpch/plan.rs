//! `dyno tpch plan`: a job for a scheduler, whose tasks write a part each.

use anyhow::{Context, bail};
use dyno_tpch_files::{Destination, Job, SinkKind};

use super::generate::job;
use crate::args::{Scheduler, TpchPlanArgs, TpchWhatArgs};
use crate::exit::Exit;
use crate::terminal;

/// Processors of a task in a cluster, unless the caller says.
const DEFAULT_THREADS: u64 = 4;
/// Memory that a task may use beyond its --memory, in bytes.
const HEADROOM_BYTES: u64 = 128 << 20;

pub fn run(args: &TpchPlanArgs) -> anyhow::Result<Exit> {
    // A plan that no task could run is refused here and not on the cluster.
    let job = job(&args.what)?;
    job.check()?;
    if matches!(job.sink, SinkKind::Null | SinkKind::Stdout) {
        bail!("--sink {} leaves no files for a plan", job.sink);
    }
    let plan = Plan { args, job: &job };
    terminal::print(&match args.scheduler {
        Scheduler::Slurm => plan.slurm(),
        Scheduler::Kubernetes => plan.kubernetes()?,
        Scheduler::Parallel => plan.parallel()?,
    })?;
    Ok(Exit::Done)
}

struct Plan<'a> {
    args: &'a TpchPlanArgs,
    job: &'a Job,
}

impl Plan<'_> {
    fn threads(&self) -> u64 {
        self.args.what.threads.unwrap_or(DEFAULT_THREADS)
    }

    fn memory_mib(&self) -> u64 {
        (self.args.what.memory + HEADROOM_BYTES) >> 20
    }

    fn in_objects(&self) -> bool {
        matches!(self.job.destination, Destination::Objects { .. })
    }

    /// The command of a task, for a shell; `part` is how its scheduler says the part's number.
    fn command(&self, part: &str, threads: Option<u64>) -> String {
        let what = &self.args.what;
        let mut words = vec![
            format!("{} tpch gen --sf {}", quoted(&self.args.dyno), what.sf),
            format!("--part {part}/{}", self.args.parts),
            format!("--format {}", what.format),
            format!("--memory {}", what.memory),
        ];
        words.extend(threads.map(|threads| format!("--threads {threads}")));
        words.extend(choices(what));
        if self.in_objects() {
            // A folder has receipts, by which a task that is started again keeps finished files.
            // Objects have none, so the task writes them again, with the same bytes.
            words.push("--overwrite".to_string());
        }
        words.join(" ")
    }

    /// A comment that says what a relative path is relative to.
    fn relative(&self, from: &str) -> String {
        match &self.job.destination {
            Destination::Folder(path) if path.is_relative() => {
                format!("# --out is relative to {from}.\n")
            }
            Destination::Folder(_) | Destination::Nowhere => String::new(),
            Destination::Objects { .. } => "# The AWS_* variables must be set there.\n".to_string(),
        }
    }

    fn slurm(&self) -> String {
        format!(
            "#!/bin/bash\n\
             # TPC-H at scale factor {sf} in {parts} parts. A task may be killed at any time and started again,\n\
             # by `scontrol requeue JOB_PART` or by `sbatch --array=PART,PART` with this file: no half file has a\n\
             # final name, finished ones are kept, and the bytes are the same.\n\
             {relative}\
             #SBATCH --job-name=tpch\n\
             #SBATCH --array=1-{parts}\n\
             #SBATCH --ntasks=1\n\
             #SBATCH --cpus-per-task={threads}\n\
             #SBATCH --mem={memory}M\n\
             #SBATCH --requeue\n\
             #SBATCH --open-mode=append\n\
             set -euo pipefail\n\
             exec {command}\n",
            sf = self.args.what.sf,
            parts = self.args.parts,
            relative = self.relative("the directory that sbatch is called in"),
            threads = self.threads(),
            memory = self.memory_mib(),
            command = self.command("\"$SLURM_ARRAY_TASK_ID\"", Some(self.threads())),
        )
    }

    /// One part after the other, each on all cores unless told otherwise: they share a machine.
    fn parallel(&self) -> anyhow::Result<String> {
        let command = self.command("{}", self.args.what.threads);
        // The one pair of braces is parallel's own. Any other would be replaced by the part's
        // number, inside a path as well.
        if command.matches('{').count() > 1 {
            bail!("GNU parallel takes braces for its own: choose a --out without them");
        }
        Ok(format!(
            "#!/bin/bash\n\
             # TPC-H at scale factor {sf} in {parts} parts, by GNU parallel. A part that failed is tried three\n\
             # times; the script may be run again and does what is left.\n\
             {relative}\
             set -euo pipefail\n\
             seq 1 {parts} |\n  parallel --quote --jobs 1 --retries 3 --halt soon,fail=1 {command}\n",
            sf = self.args.what.sf,
            parts = self.args.parts,
            relative = self.relative("the directory that the script is run in"),
        ))
    }

    fn kubernetes(&self) -> anyhow::Result<String> {
        let part = "$((JOB_COMPLETION_INDEX + 1))";
        let command = self.command(part, Some(self.threads()));
        // Kubernetes expands $(NAME) in commands, so a dollar sign of the user's would not reach
        // the shell as it stands.
        if command.matches('$').count() > 1 {
            bail!("Kubernetes takes a dollar sign for its own: choose a --out without one");
        }
        let image = self.args.image.as_deref();
        let image = image.context("--image names the container image that has dyno in it")?;
        Ok(format!(
            "# TPC-H at scale factor {sf} in {parts} parts. A pod may be killed at any time and is started again: no\n\
             # half file has a final name, finished ones are kept, and the bytes are the same.\n\
             apiVersion: batch/v1\n\
             kind: Job\n\
             metadata:\n  name: tpch\n\
             spec:\n  completionMode: Indexed\n  completions: {parts}\n  parallelism: {parts}\n  backoffLimitPerIndex: 3\n  template:\n    \
             spec:\n      restartPolicy: Never\n      containers:\n        - name: dyno\n          image: {image}\n          \
             command: [\"/bin/sh\", \"-c\", {shell}]\n          \
             resources:\n            requests: {{ cpu: \"{threads}\", memory: \"{memory}Mi\" }}\n            limits: {{ memory: \"{memory}Mi\" }}\n\
             {place}",
            sf = self.args.what.sf,
            parts = self.args.parts,
            image = string(image)?,
            shell = string(&format!("exec {command}"))?,
            threads = self.threads(),
            memory = self.memory_mib(),
            place = self.mount()?,
        ))
    }

    /// What a pod needs to reach the place: a volume, or the keys of an object store.
    fn mount(&self) -> anyhow::Result<String> {
        let out = self.args.what.out.as_deref().context("--out is missing")?;
        if self.in_objects() {
            let secret = self.args.secret.as_deref();
            let secret =
                secret.context("--secret names the Secret that holds the AWS_* variables")?;
            return Ok(format!(
                "          envFrom:\n            - secretRef: {{ name: {} }}\n",
                string(secret)?
            ));
        }
        // Kubernetes refuses a mount path that is relative or has a colon.
        if !out.starts_with('/') || out.contains(':') {
            bail!("--out {out}: a volume is mounted at an absolute path without a colon");
        }
        let Some(claim) = self.args.claim.as_deref() else {
            bail!("--claim names the persistent volume claim that {out} lies on");
        };
        Ok(format!(
            "          volumeMounts:\n            - {{ name: tables, mountPath: {} }}\n      \
             volumes:\n        - name: tables\n          persistentVolumeClaim: {{ claimName: {} }}\n",
            string(out)?,
            string(claim)?,
        ))
    }
}

/// JSON strings are YAML strings.
fn string(text: &str) -> serde_json::Result<String> {
    serde_json::to_string(text)
}

/// The flags that decide the bytes and the place, so that every task writes what one process would.
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

/// Quotes a word for a POSIX shell, if it needs quotes.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
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
