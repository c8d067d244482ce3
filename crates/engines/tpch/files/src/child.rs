//! Runs a job in another program. The job is sent to it as a line of JSON over a socket that is its
//! standard input, and it answers over the same socket with a line for each tick and one at the
//! end.
//!
//! Standard output stays free for the sink of that name. When either side ends, the other sees the
//! end of the socket. Then the program stops the job as if it had been requested, and the caller
//! reports how the program ended.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use dyno_io::SinkKind;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::job::Job;
use crate::progress::Progress;
use crate::report::Report;

/// The time between two lines about progress, and between two looks at whether to stop.
const TICK: Duration = Duration::from_millis(50);

/// A line that the program sends while it runs the job.
#[derive(Serialize, Deserialize)]
enum JobMessage {
    /// Rows and bytes so far.
    At(u64, u64),
    Done(Report),
    Stopped,
    Failed(String),
}

/// Starts `program`, which runs the job by [`serve`], and waits for its end.
///
/// # Errors
/// The error that the program sends, or that it could not be started, or ended without an answer.
pub fn run_in(mut program: Command, job: &Job, progress: &Progress) -> Result<Report, Error> {
    let failed = |what: &str, error: io::Error| Error::Child(format!("dyno-sql {what}: {error}"));
    let (socket, theirs) = UnixStream::pair().map_err(|e| failed("gets no socket", e))?;
    let stdout = if job.sink == SinkKind::Stdout {
        Stdio::inherit()
    } else {
        Stdio::null()
    };
    // A process group of its own keeps Ctrl-C from the program. The caller gets the signal and asks
    // the program to stop, which then removes what is unfinished.
    program
        .stdin(OwnedFd::from(theirs))
        .stdout(stdout)
        .process_group(0);
    let mut child = program
        .spawn()
        .map_err(|e| failed("cannot be started", e))?;
    // The command has our copy of the child's end. As long as it is open, the death of the child
    // does not end the socket.
    drop(program);
    let (going, ended) = mpsc::channel();
    let last = thread::scope(|scope| {
        scope.spawn(|| pass_on_the_wish_to_stop(&socket, progress, ended));
        let last = converse(&socket, job, progress);
        drop(going);
        last
    });
    // The conversation has ended, but the program may still be tidying up.
    let status = child
        .wait()
        .map_err(|e| failed("cannot be waited for", e))?;
    match last {
        Ok(Some(JobMessage::Done(report))) => Ok(report),
        Ok(Some(JobMessage::Stopped)) => Err(Error::Stopped),
        Ok(Some(JobMessage::Failed(reason))) => Err(Error::Child(reason)),
        Ok(Some(JobMessage::At(..)) | None) => Err(Error::Child(format!(
            "dyno-sql ended before the job did: {status}"
        ))),
        Err(error) => Err(failed("does not answer", error)),
    }
}

/// Sends the job and reads lines until the last one. `None` if the program ended without it.
fn converse(socket: &UnixStream, job: &Job, progress: &Progress) -> io::Result<Option<JobMessage>> {
    // A program that ended at once has said why on standard error, which tells more than that the
    // job did not reach it.
    let _ = send(socket, job);
    for line in BufReader::new(socket).lines() {
        let line = match line {
            // A program that ended before it read the job resets the socket.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            line => line?,
        };
        match serde_json::from_str(&line)? {
            JobMessage::At(rows, bytes) => progress.set(rows, bytes),
            last => return Ok(Some(last)),
        }
    }
    Ok(None)
}

/// Waits until the job shall stop or has ended, which closes the channel. To stop it, our side of
/// the socket is closed.
fn pass_on_the_wish_to_stop(socket: &UnixStream, progress: &Progress, ended: Receiver<()>) {
    while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        if progress.stop_asked() {
            // It fails only if the program has ended, and then there is nothing left to stop.
            let _ = socket.shutdown(Shutdown::Write);
            return;
        }
    }
}

/// Reads a job from standard input, which [`run_in`] has made a socket, and runs it by `run`.
///
/// # Errors
/// Standard input is not that socket, or its other end is closed. If the job fails, that is sent
/// over the socket and is not an error here.
pub fn serve(run: impl Fn(&Job, &Progress) -> Result<Report, Error> + Sync) -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut lines = BufReader::new(&socket);
    let mut order = String::new();
    lines.read_line(&mut order)?;
    let job: Job = serde_json::from_str(&order)?;
    let progress = Progress::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            // Nothing follows the job except the end of the stream, because the parent wants to
            // stop or has died.
            let _ = lines.read_to_end(&mut Vec::new());
            progress.stop();
        });
        let (result, ended) = mpsc::channel();
        let (run, job, counters) = (&run, &job, &progress);
        let worker = scope.spawn(move || drop(result.send(run(job, counters))));
        let last = loop {
            // If it fails, the socket has ended, and that has stopped the job already.
            let _ = send(&socket, &JobMessage::At(progress.rows(), progress.bytes()));
            match ended.recv_timeout(TICK) {
                Ok(Ok(report)) => break JobMessage::Done(report),
                Ok(Err(Error::Stopped)) => break JobMessage::Stopped,
                Ok(Err(error)) => break JobMessage::Failed(error.to_string()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // The panic has printed its reason on standard error, which the caller passes
                    // on. Joined, it does not end this thread as well.
                    let _ = worker.join();
                    break JobMessage::Failed("the writer ended unexpectedly".to_owned());
                }
            }
        };
        let sent = send(&socket, &last);
        // Ends the thread that reads to the end of the socket, so that the scope can end.
        let _ = socket.shutdown(Shutdown::Both);
        sent
    })
}

fn send(mut socket: &UnixStream, line: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(line)?;
    line.push(b'\n');
    socket.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Destination;
    use crate::options::{Compression, Format, Mode, Split};
    use dyno_tpch::{Scale, Table};

    #[test]
    fn a_job_is_the_same_on_the_other_side() {
        let scale = Scale::new(0.37).expect("a scale");
        let place = Destination::Objects {
            bucket: "b".to_owned(),
            prefix: "p/q".to_owned(),
        };
        let mut job = Job::new(scale, Format::Orc, place);
        job.tables = vec![Table::Lineitem, Table::Nation];
        job.mode = Mode::Baseline;
        job.layout.compression = Compression::Zstd(7);
        job.layout.group_rows = Some(5);
        job.split = Split::Part { part: 2, parts: 9 };
        job.sink = SinkKind::Direct;
        job.overwrite = true;
        let line = serde_json::to_string(&job).expect("it is JSON");
        let other: Job = serde_json::from_str(&line).expect("it is a job");
        assert_eq!(format!("{job:?}"), format!("{other:?}"));
    }

    #[test]
    fn a_program_that_ends_at_once_is_reported_with_how_it_ended() {
        let scale = Scale::new(0.01).expect("a scale");
        let job = Job::new(scale, Format::Csv, Destination::Nowhere);
        let mut program = Command::new("sh");
        program.args(["-c", "exit 7"]);
        let error = run_in(program, &job, &Progress::default()).expect_err("it ends");
        assert!(error.to_string().contains("exit status: 7"), "{error}");
    }

    #[test]
    fn the_wish_to_stop_reaches_the_program() {
        let scale = Scale::new(0.01).expect("a scale");
        let job = Job::new(scale, Format::Csv, Destination::Nowhere);
        let mut program = Command::new("sh");
        // Reads the order and then to the end, which is the wish, and answers over the same socket.
        program.args(["-c", "cat > /dev/null; echo '\"Stopped\"' >&0"]);
        let progress = Progress::default();
        progress.stop();
        let stopped = run_in(program, &job, &progress);
        assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    }
}
