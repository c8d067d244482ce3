//! Checks on the source tree that no compiler makes: `cargo run -p xtask -- tidy`, and how it is
//! written: `cargo run -p xtask -- words`.

#![allow(
    clippy::disallowed_macros,
    reason = "a tool of the tree that no long work waits for"
)]

use std::env;
use std::process::ExitCode;

mod tidy;
mod words;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => run_tidy(),
        ["words"] => match tidy::tree::Tree::read() {
            Ok(tree) => {
                print!("{}", words::table(&tree));
                ExitCode::SUCCESS
            }
            Err(reason) => {
                eprintln!("words: {reason}");
                ExitCode::from(2)
            }
        },
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy|words");
            ExitCode::from(2)
        }
    }
}

fn run_tidy() -> ExitCode {
    let findings = match tidy::check_workspace() {
        Ok(findings) => findings,
        Err(reason) => {
            eprintln!("tidy: {reason}");
            return ExitCode::from(2);
        }
    };
    for finding in &findings {
        println!("{finding}");
    }
    let breaches = findings.iter().filter(|finding| finding.breach).count();
    println!(
        "tidy: breaches: {breaches}, warnings: {}",
        findings.len() - breaches
    );
    if breaches == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
