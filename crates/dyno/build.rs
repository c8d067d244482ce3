//! Puts the git revision into the program, so that a record can say what made it, and lists the
//! files of `suites` and `peers`, so that each becomes a part of the program by lying in its
//! folder.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
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
    built_in()
}

/// Writes the contents of both folders as constants, for `src/built_in.rs`.
fn built_in() -> io::Result<()> {
    // Read when the script runs: checkouts that share a target folder share its executable.
    let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = Path::new(&manifest).join("../..").canonicalize()?;
    let suites = listed(&root.join("suites"), &["toml"])?;
    let peers = listed(&root.join("peers"), &["toml", "py", "sql"])?;
    let code = format!(
        "const SUITES: &[(&str, &str)] = &{suites};\nconst PEERS: &[(&str, &str)] = &{peers};\n"
    );
    fs::write(
        Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("built_in.rs"),
        code,
    )
}

/// An array of file names and contents, in the order of the names: the order in which suites are
/// listed must not depend on the file system.
fn listed(folder: &Path, extensions: &[&str]) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|found| extensions.iter().any(|wanted| found == *wanted))
        {
            files.push(path);
        }
    }
    files.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
    let mut array = String::from("[\n");
    for path in files {
        let name = path.file_name().unwrap_or_default();
        let _ = writeln!(array, "({:?}, include_str!({:?})),", name, path);
    }
    array.push(']');
    Ok(array)
}

/// What git prints, if it works here and prints something.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (output.status.success() && !text.is_empty()).then_some(text)
}
