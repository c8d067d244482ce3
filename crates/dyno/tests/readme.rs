//! The README's commands do what it says, run as they stand there.
//!
//! Every block of shell is run line by line in a fresh directory, where `suites` leads to the tree's
//! and `dyno` is on the PATH. A comment `# exits N` or `# may exit N` states another code than 0. What
//! `scripts/demo` runs is not run twice; the scripts themselves are only parsed. A command that ends with
//! `&` is waited for until it says that it listens, and gets a Ctrl-C at the end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use dyno_ingest_clickhouse::private_server::{Config, Ports, PrivateServer};
use tempfile::TempDir;

/// Commands that start the SQL engine, which may not be built. A report needs the run before it.
const NEED_SQL: [&str; 4] = [
    "dyno ingest query",
    "dyno tpch query",
    "dyno tpch verify",
    "dyno run ",
];

#[test]
fn every_command_of_the_readme_works() {
    let readme = fs::read_to_string(tree().join("README.md")).unwrap();
    let demo = joined_lines(&fs::read_to_string(tree().join("scripts/demo")).unwrap());
    let blocks = blocks(&readme);
    assert!(blocks.len() >= 5, "the README lost its examples");
    let dir = tempfile::tempdir().unwrap();
    // Root lends PostgreSQL to another user, who has to get in.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(tree().join("suites"), dir.path().join("suites")).unwrap();
    let mut running = Vec::new();
    for block in blocks {
        let Some((server, block)) = with_clickhouse(block) else {
            continue;
        };
        let lines: Vec<Line> = block.lines().filter_map(Line::of).collect();
        if lines.iter().all(|line| line.is_of_demo(&demo)) {
            continue;
        }
        let needs_sql = |line: &&Line| NEED_SQL.iter().any(|start| line.command.starts_with(start));
        if let Some(line) = lines.iter().find(needs_sql)
            && !sql_program().is_file()
        {
            println!(
                "skipped: README: {}: {} is not built",
                line.command,
                sql_program().display()
            );
            continue;
        }
        if block.contains("dyno pubsub") && !has_postgres() {
            println!("skipped: README: dyno pubsub: no PostgreSQL");
            continue;
        }
        for line in &lines {
            match line.command.strip_suffix('&') {
                Some(command) => running.push(Running::start(command, dir.path())),
                None => line.check(dir.path()),
            }
        }
        drop(server);
    }
}

/// A ClickHouse server for a block that wants one, at another port than the block says; `None` where
/// there is no such program.
fn with_clickhouse(block: String) -> Option<(Option<(PrivateServer, TempDir)>, String)> {
    const AT: &str = "127.0.0.1:8123";
    if !block.contains(AT) {
        return Some((None, block));
    }
    if let Some(missing) = PrivateServer::missing() {
        println!("skipped: README: {missing}");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let ports = Ports::free().unwrap();
    let server = PrivateServer::start(folder.path(), ports, &Config::default()).unwrap();
    let block = block.replace(AT, &server.http());
    Some((Some((server, folder)), block))
}

#[test]
fn the_scripts_of_the_readme_exist_and_parse() {
    let readme = fs::read_to_string(tree().join("README.md")).unwrap();
    for name in ["scripts/demo", "scripts/test"] {
        assert!(
            blocks(&readme).iter().any(|block| block.contains(name)),
            "the README does not show {name}"
        );
        let parsed = Command::new("bash")
            .arg("-n")
            .arg(tree().join(name))
            .output()
            .unwrap();
        assert!(parsed.status.success(), "{name}: {}", said(&parsed));
    }
}

/// A command, and the exit codes that are good.
struct Line {
    command: String,
    codes: Vec<i32>,
}

impl Line {
    fn of(text: &str) -> Option<Line> {
        let (command, comment) = text.split_once(" #").unwrap_or((text, ""));
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

    /// Whether the demo runs it, or it is the demo or the tests.
    fn is_of_demo(&self, demo: &str) -> bool {
        let arguments = self.command.strip_prefix("dyno ");
        self.command.starts_with("scripts/")
            || arguments.is_some_and(|words| demo.contains(&format!("run \"$dyno\" {words}\n")))
    }

    fn check(&self, folder: &Path) {
        let output = shell(&self.command, folder).output().unwrap();
        let code = output.status.code();
        assert!(
            code.is_some_and(|code| self.codes.contains(&code)),
            "`{}` ended with {code:?}, not {:?}\n{}",
            self.command,
            self.codes,
            said(&output)
        );
    }
}

/// A command that goes on while others run.
struct Running(Child);

impl Running {
    fn start(command: &str, folder: &Path) -> Running {
        // The command itself, not a shell around it, gets the Ctrl-C.
        let mut child = shell(&format!("exec {command}"), folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().expect(command).unwrap();
        assert!(first.starts_with("listening at "), "{command}: {first}");
        Running(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        // Whatever came of the test, nothing is left running.
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.0.wait();
    }
}

fn shell(command: &str, folder: &Path) -> Command {
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

fn has_postgres() -> bool {
    let asked = Command::new(program())
        .args(["doctor", "--for", "pubsub"])
        .output();
    asked.unwrap().status.success()
}

/// The texts between fences marked `sh`, with continued lines joined.
fn blocks(readme: &str) -> Vec<String> {
    let starts = readme.split("\n```sh\n").skip(1);
    starts
        .map(|rest| joined_lines(rest.split("\n```").next().unwrap()))
        .collect()
}

fn joined_lines(text: &str) -> String {
    text.replace("\\\n", " ")
}

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_dyno"))
}

fn sql_program() -> PathBuf {
    program().with_file_name("dyno-sql")
}

/// The programs under test before everything else.
fn path() -> std::ffi::OsString {
    let own = program().parent().unwrap().to_owned();
    let inherited = env::var_os("PATH").unwrap_or_default();
    env::join_paths([own].into_iter().chain(env::split_paths(&inherited))).unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

#[test]
fn comments_state_exit_codes() {
    let codes = |text: &str| Line::of(text).map(|line| line.codes);
    assert_eq!(codes("dyno lint x   # exits 1: wrong"), Some(vec![1]));
    assert_eq!(codes("dyno doctor # may exit 1"), Some(vec![0, 1]));
    assert_eq!(codes("dyno plan wspr # fine"), Some(vec![0]));
    assert_eq!(codes("  "), None);
}
