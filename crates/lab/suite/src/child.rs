//! The executor that starts real processes, watched and billed by `dyno-machine`.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;

use dyno_machine::{ChildLimits, Listener, run_child};

use crate::Error;
use crate::beside::{Beside, LoadCommand, RunningLoad};
use crate::executor::{Ended, Executor, Exit, Invocation};
use crate::protocol::PROGRESS;
use crate::stop::Stop;

/// Starts each invocation as a process of its own, in its own process group, so that a kill at
/// the time limit takes its children too and Ctrl-C reaches the runner alone.
#[derive(Default)]
pub struct ChildExecutor<'a> {
    /// Is told the lines of progress (see [`PROGRESS`]) as they come.
    pub progress: Option<&'a dyn Fn(&str)>,
    /// Is called after each child that failed, was killed or crashed. It may have left what it had
    /// made outside its scratch directory.
    pub after_failure: Option<&'a dyn Fn()>,
}

impl Executor for ChildExecutor<'_> {
    fn execute(&mut self, invocation: &Invocation, stop: &Stop) -> Result<Ended, Error> {
        let start_error = |reason: String| Error::Start {
            program: invocation.program.display().to_string(),
            reason,
        };
        // The whole request is made before the child exists, so that no child waits for the rest of
        // a request that cannot be written.
        let stdin = serde_json::to_vec(&invocation.request)
            .map_err(|e| start_error(format!("its request is not JSON: {e}")))?;
        let mut command = Command::new(&invocation.program);
        command.args(&invocation.args);
        // A relative path that a child writes lands where it is cleaned up.
        if invocation.request.scratch.is_dir() {
            command.current_dir(&invocation.request.scratch);
        }
        let lines = Lines::default();
        let listen = |part: &[u8]| lines.add(part, self.progress);
        let limits = ChildLimits {
            stop: Some(stop.flag()),
            listener: Some(Listener(&listen)),
            ..ChildLimits::time(invocation.time_limit)
        };
        let child = run_child(command, &stdin, limits).map_err(|e| start_error(e.to_string()))?;
        // A child that was killed by us ends by a signal like one that crashed, so the reason of
        // the kill is asked first.
        let exit = match child.exit {
            _ if child.stopped => Exit::Stopped,
            _ if child.hung => Exit::TimedOut,
            dyno_machine::Exit::Code(code) => Exit::Code(code),
            dyno_machine::Exit::Signal(signal) => Exit::Signal(signal),
        };
        if let Some(after_failure) = self.after_failure
            && exit != Exit::Code(0)
        {
            after_failure();
        }
        Ok(Ended {
            exit,
            wall_s: child.wall_s,
            stdout: String::from_utf8_lossy(&child.stdout.bytes).into_owned(),
            stderr: String::from_utf8_lossy(&child.stderr.bytes).into_owned(),
            usage: child.usage,
        })
    }

    fn begin_load(
        &mut self,
        load: &LoadCommand,
        dir: &Path,
    ) -> Result<Box<dyn RunningLoad>, Error> {
        Ok(Box::new(Beside::start(load, dir)?))
    }
}

/// Longest line of progress; a longer line is not taken for one.
const LINE_MAX: usize = 4_096;

/// A child's standard error, cut into lines.
#[derive(Default)]
struct Lines(RefCell<Vec<u8>>);

impl Lines {
    fn add(&self, part: &[u8], progress: Option<&dyn Fn(&str)>) {
        let Some(progress) = progress else { return };
        let mut open = self.0.borrow_mut();
        for piece in part.split_inclusive(|byte| *byte == b'\n') {
            // A child may write megabytes without a line end. What does not fit is dropped, so that
            // memory stays bounded; no line of progress is that long.
            if open.len() + piece.len() <= LINE_MAX {
                open.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&open);
                if let Some(text) = line.strip_prefix(PROGRESS) {
                    progress(text.trim_end());
                }
                open.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::protocol::Request;

    fn run(script: &str, time_limit: Duration, stop: &Stop) -> Ended {
        run_by(&mut ChildExecutor::default(), script, time_limit, stop)
    }

    fn run_by(
        executor: &mut ChildExecutor<'_>,
        script: &str,
        time_limit: Duration,
        stop: &Stop,
    ) -> Ended {
        let invocation = Invocation {
            system: "sh".into(),
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), script.into()],
            request: Request::version(),
            time_limit,
        };
        executor.execute(&invocation, stop).expect("a shell")
    }

    #[test]
    fn lines_of_progress_are_told_whole_and_others_are_not() {
        let lines = Lines::default();
        let reported = RefCell::new(Vec::new());
        let tell = |line: &str| reported.borrow_mut().push(line.to_string());
        for part in [&b"progress: a"[..], b"b\nnoise\nprog", b"ress: c\n\n"] {
            lines.add(part, Some(&tell));
        }
        lines.add(&[b'x'; 3 * LINE_MAX], Some(&tell));
        lines.add(b"\nprogress: d\n", Some(&tell));
        assert_eq!(reported.into_inner(), ["ab", "c", "d"]);
    }

    #[test]
    fn a_child_reads_its_request_and_answers() {
        let ended = run(
            "cat; echo; echo bad >&2; exit 3",
            Duration::from_secs(20),
            &Stop::default(),
        );
        assert_eq!(ended.exit, Exit::Code(3));
        assert!(
            ended.stdout.contains("\"workload\":\"version\""),
            "{}",
            ended.stdout
        );
        assert_eq!(ended.stderr, "bad\n");
    }

    #[test]
    fn a_child_is_killed_at_its_limit_and_on_request() {
        let hang = "cat /dev/zero >/dev/null";
        let ended = run(hang, Duration::from_millis(50), &Stop::default());
        assert_eq!(ended.exit, Exit::TimedOut);
        let stop = Stop::default();
        stop.ask();
        assert_eq!(
            run(hang, Duration::from_secs(20), &stop).exit,
            Exit::Stopped
        );
    }

    #[test]
    fn what_a_child_leaves_is_taken_away_unless_it_ended_well() {
        let calls = RefCell::new(0);
        let count = || *calls.borrow_mut() += 1;
        let mut executor = ChildExecutor {
            after_failure: Some(&count),
            ..ChildExecutor::default()
        };
        let enough = Duration::from_secs(20);
        let scripts = [
            ("exit 0", enough, 0),
            ("exit 3", enough, 1),
            ("cat /dev/zero >/dev/null", Duration::from_millis(50), 2),
            ("kill -9 $$", enough, 3),
        ];
        for (script, time_limit, total) in scripts {
            run_by(&mut executor, script, time_limit, &Stop::default());
            assert_eq!(*calls.borrow(), total, "{script}");
        }
    }
}
