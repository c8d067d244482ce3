//! Puts the git revision into the program, so that a record can say what made it.

use std::process::Command;

fn main() {
    // Commits, checkouts and staged changes touch these; a path that does not exist is harmless.
    for file in ["HEAD", "index", "logs/HEAD"] {
        if let Some(dir) = git(&["rev-parse", "--git-dir"]) {
            println!("cargo:rerun-if-changed={dir}/{file}");
        }
    }
    let revision = match git(&["rev-parse", "--short=12", "HEAD"]) {
        Some(revision) if git(&["status", "--porcelain", "-uno"]).is_some() => {
            format!("{revision}+")
        }
        Some(revision) => revision,
        None => "unknown".to_string(),
    };
    println!("cargo:rustc-env=DYNO_GIT_REVISION={revision}");
}

/// What git prints, if it works here and prints something.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (output.status.success() && !text.is_empty()).then_some(text)
}
