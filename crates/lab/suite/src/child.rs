//! The executor that starts real processes, watched and billed by `dyno-machine`.

use std::process::Command;

use dyno_machine::{ChildLimits, run_child};

use crate::Error;
use crate::executor::{Ended, Executor, Exit, Invocation};
use crate::stop::Stop;

/// Starts each invocation as a process of its own, in its own process group, so that a kill at
/// the time limit takes its children too and Ctrl-C reaches the runner alone.
#[derive(Debug, Default)]
pub struct ChildExecutor;

impl Executor for ChildExecutor {
    fn execute(&mut self, invocation: &Invocation, stop: &Stop) -> Result<Ended, Error> {
        let start_error = |reason: String| Error::Start {
            program: invocation.program.display().to_string(),
            reason,
        };
        let stdin = serde_json::to_vec(&invocation.request)
            .map_err(|e| start_error(format!("its request is no JSON: {e}")))?;
        let mut command = Command::new(&invocation.program);
        command.args(&invocation.args);
        // A relative path that a child writes lands where it is cleaned up.
        if invocation.request.scratch.is_dir() {
            command.current_dir(&invocation.request.scratch);
        }
        let limits = ChildLimits {
            stop: Some(stop.flag()),
            ..ChildLimits::time(invocation.time_limit)
        };
        let child = run_child(command, &stdin, limits).map_err(|e| start_error(e.to_string()))?;
        let exit = match child.exit {
            _ if child.stopped => Exit::Stopped,
            _ if child.hung => Exit::TimedOut,
            dyno_machine::Exit::Code(code) => Exit::Code(code),
            dyno_machine::Exit::Signal(signal) => Exit::Signal(signal),
        };
        Ok(Ended {
            exit,
            wall_s: child.wall_s,
            stdout: String::from_utf8_lossy(&child.stdout.bytes).into_owned(),
            stderr: String::from_utf8_lossy(&child.stderr.bytes).into_owned(),
            usage: child.usage,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::protocol::Request;

    fn run(script: &str, time_limit: Duration, stop: &Stop) -> Ended {
        let invocation = Invocation {
            system: "sh".into(),
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), script.into()],
            request: Request::version(),
            time_limit,
        };
        ChildExecutor.execute(&invocation, stop).expect("a shell")
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
}
