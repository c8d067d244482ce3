//! `dyno-pubsub-check job JSON`: one child process of a check, for tests, which cannot run
//! themselves as a child.

#[macro_use]
extern crate dyno_messages;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [word, job] = arguments.as_slice() else {
        eprintln!("usage: dyno-pubsub-check job JSON (checks are run by 'dyno pubsub check')");
        return ExitCode::from(2);
    };
    if word != "job" {
        eprintln!("unknown word {word:?}: it is 'job'");
        return ExitCode::from(2);
    }
    match dyno_pubsub_check::child::run(job) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
