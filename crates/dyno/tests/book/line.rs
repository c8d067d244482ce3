//! One command of a page.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A command, and the exit codes that are good.
pub struct Line {
    pub command: String,
    pub codes: Vec<i32>,
}

impl Line {
    /// A comment `# exits N` or `# may exit N` states another code than 0.
    pub fn parse(text: &str) -> Option<Line> {
        let (command, comment) = if text.trim_start().starts_with('#') {
            ("", text)
        } else {
            text.split_once(" #").unwrap_or((text, ""))
        };
        if command.trim().is_empty() {
            return None;
        }
        let code = |words: &str| {
            let digits = comment.split_once(words)?.1.trim_start();
            let end = digits.find(|c: char| !c.is_ascii_digit());
            digits[..end.unwrap_or(digits.len())].parse().ok()
        };
        let codes = match (code("may exit"), code("exits")) {
            (Some(also), _) => vec![0, also],
            (None, Some(only)) => vec![only],
            (None, None) => vec![0],
        };
        Some(Line {
            command: command.trim().to_owned(),
            codes,
        })
    }

    /// Whether `scripts/demo` runs it, or it is a script of the tree or a build.
    pub fn is_of_demo(&self, demo: &str) -> bool {
        let arguments = self.command.strip_prefix("dyno ");
        let runs = |words: String| demo.contains(&words);
        self.command.starts_with("scripts/")
            || arguments.is_some_and(|words| runs(format!("run \"$dyno\" {words}\n")))
            || self.command.starts_with("cargo ") && runs(format!("run {}\n", self.command))
    }

    /// Runs it to its end, and returns what it printed to standard output.
    pub fn check(&self, folder: &Path, page: &str) -> String {
        let output = shell(&self.command, folder).output().unwrap();
        let code = output.status.code();
        assert!(
            code.is_some_and(|code| self.codes.contains(&code)),
            "{page}: `{}` ended with {code:?}, not {:?}\n{}",
            self.command,
            self.codes,
            said(&output)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// A command line in `folder`, with the programs under test before all others.
pub fn shell(command: &str, folder: &Path) -> Command {
    let mut shell = Command::new("bash");
    shell
        .args(["-euo", "pipefail", "-c", command])
        .current_dir(folder)
        .env("PATH", path())
        // Peers stay where they are installed; everything else is made anew.
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("DYNO_PAGES_DIR", folder.join("stores"));
    shell
}

pub fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_dyno"))
}

fn path() -> std::ffi::OsString {
    let own = program().parent().unwrap().to_owned();
    let inherited = env::var_os("PATH").unwrap_or_default();
    env::join_paths([own].into_iter().chain(env::split_paths(&inherited))).unwrap()
}

pub fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}
