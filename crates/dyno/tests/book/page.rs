//! A page: its blocks of shell, and what they need.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use dyno_ingest_clickhouse::private_server::{Config, Ports, PrivateServer};
use tempfile::TempDir;

use crate::line::{Line, program};
use crate::output;
use crate::running::Running;
use crate::tree;

/// Commands that start the SQL engine, which may not be built.
const NEED_SQL: [&str; 9] = [
    "dyno ingest features",
    "dyno ingest query",
    "dyno ingest serve",
    // Clients of the server that the line above starts.
    "psql -h 127.0.0.1 -p 15432",
    "curl -s --data 'SELECT",
    "dyno tpch query",
    "dyno tpch verify",
    "dyno run sage",
    "dyno run wspr",
];
/// Commands that need a run that a page made before.
const NEED_RUN: [&str; 3] = ["dyno report runs", "dyno lint runs", "dyno compare runs"];

/// A Markdown file of the tree.
pub struct Page {
    path: String,
    text: String,
}

/// A block of shell, and what it prints where the page says so.
pub struct Block {
    pub shell: String,
    pub printed: Option<String>,
    /// Files that the page shows before it: name and text.
    files: Vec<(String, String)>,
}

impl Page {
    pub fn read(path: &str) -> Page {
        let text = fs::read_to_string(tree().join(path)).unwrap();
        Page {
            path: path.to_owned(),
            text,
        }
    }

    /// The fences marked `sh`, with continued lines joined. A fence whose first line is
    /// `# file: NAME` is a file that the commands behind it find.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut files = Vec::new();
        let mut behind_shell = false;
        for (at, piece) in self.text.split("\n```").enumerate() {
            // Text outside of fences lies between two of them.
            if at % 2 == 0 {
                let prose = piece.split_once('\n').map_or("", |(_, prose)| prose);
                behind_shell &= prose.trim().is_empty();
                continue;
            }
            let (language, text) = piece.split_once('\n').unwrap_or((piece, ""));
            if let Some(block) = blocks.last_mut()
                && language == "text"
                && behind_shell
            {
                block.printed = Some(format!("{text}\n"));
            } else if language == "sh" {
                blocks.push(Block {
                    shell: joined_lines(text),
                    printed: None,
                    files: std::mem::take(&mut files),
                });
            } else if let Some((first, rest)) = text.split_once('\n')
                && let Some(name) = first.strip_prefix("# file: ")
            {
                files.push((name.to_owned(), format!("{rest}\n")));
            }
            behind_shell = language == "sh";
        }
        blocks
    }

    /// Runs all blocks in a directory of their own.
    pub fn run(&self) {
        let demo = joined_lines(&fs::read_to_string(tree().join("scripts/demo")).unwrap());
        let dir = tempfile::tempdir().unwrap();
        // Root lends PostgreSQL to another user, who has to get in.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["suites", "results"] {
            std::os::unix::fs::symlink(tree().join(name), dir.path().join(name)).unwrap();
        }
        let mut running = Vec::new();
        let mut without_run = false;
        for block in self.blocks() {
            for (name, text) in &block.files {
                let path = dir.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let Some((server, shell)) = self.with_clickhouse(&block.shell) else {
                continue;
            };
            let lines: Vec<Line> = shell.lines().filter_map(Line::parse).collect();
            if lines.iter().all(|line| line.is_of_demo(&demo)) {
                continue;
            }
            if self.skips(&lines) || without_run && starts(&lines, &NEED_RUN).is_some() {
                without_run |= shell.contains("dyno run ");
                continue;
            }
            let mut said = String::new();
            for line in &lines {
                match line.command.strip_suffix('&') {
                    Some(command) => running.push(Running::start(command, dir.path())),
                    None => said.push_str(&line.check(dir.path(), &self.path)),
                }
            }
            if let Some(printed) = &block.printed {
                output::compare(&self.path, &shell, printed, &said);
            }
            drop(server);
        }
    }

    /// Whether this machine lacks what a block needs; says so.
    fn skips(&self, lines: &[Line]) -> bool {
        if let Some(line) = starts(lines, &NEED_SQL)
            && !sql_program().is_file()
        {
            let sql = sql_program();
            println!(
                "skipped: {}: {}: {} is not built",
                self.path,
                line.command,
                sql.display()
            );
            return true;
        }
        let needs_postgres = lines
            .iter()
            .any(|line| line.command.contains("dyno pubsub"));
        if needs_postgres && !has_postgres() {
            println!("skipped: {}: dyno pubsub: no PostgreSQL", self.path);
            return true;
        }
        let profiles = |line: &&Line| line.command.contains("--flamegraph");
        if let Some(line) = lines.iter().find(profiles)
            && let Err(reason) = dyno_suite::Profiler::find()
        {
            println!("skipped: {}: {}: {reason}", self.path, line.command);
            return true;
        }
        false
    }

    /// A ClickHouse server for a block that wants one, at another port than the block says; `None`
    /// where there is no such program.
    fn with_clickhouse(&self, block: &str) -> Option<(Option<(PrivateServer, TempDir)>, String)> {
        const AT: &str = "127.0.0.1:8123";
        if !block.contains(AT) {
            return Some((None, block.to_owned()));
        }
        if let Some(missing) = PrivateServer::missing() {
            println!("skipped: {}: {missing}", self.path);
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let ports = Ports::free().unwrap();
        let server = PrivateServer::start(folder.path(), ports, &Config::default()).unwrap();
        let block = block.replace(AT, &server.http());
        Some((Some((server, folder)), block))
    }
}

/// The first line that begins with one of `starts`.
fn starts<'a>(lines: &'a [Line], starts: &[&str]) -> Option<&'a Line> {
    let begins = |line: &&Line| starts.iter().any(|start| line.command.starts_with(start));
    lines.iter().find(begins)
}

fn has_postgres() -> bool {
    let asked = Command::new(program())
        .args(["doctor", "--engine", "pubsub"])
        .output();
    asked.unwrap().status.success()
}

fn joined_lines(text: &str) -> String {
    text.replace("\\\n", " ")
}

fn sql_program() -> PathBuf {
    program().with_file_name("dyno-sql")
}
