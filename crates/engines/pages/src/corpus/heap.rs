//! The memory of a live process: an interpreter that has loaded modules and built tables and text.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::CorpusError;
use crate::PAGE_BYTES;

/// Builds tables of records, strings and numbers until they take about the requested bytes, says so
/// and waits for its input to end.
const PYTHON: &str = r#"
import sys, json, collections, random, decimal, datetime, email, html, http.client, unittest
need = int(sys.argv[1]); r = random.Random(7); rows = []; names = {}
words = [w for m in list(sys.modules.values()) for w in dir(m)]
for i in range(need // 1100 + 1):
    w = r.choice(words) + str(i)
    names[w] = {"id": i, "name": w, "price": r.random() * 1000, "tags": r.sample(words, 4)}
    rows.append((i, r.randrange(1 << 30), w, [r.randrange(100) for _ in range(8)]))
    if i % 8 == 0: rows.append(json.dumps(names[w]))
print("ready", flush=True); sys.stdin.read()
"#;

const PERL: &str = r#"
my $need = shift; my %names; my @rows; srand 7; $| = 1;
for my $i (0 .. $need / 900) {
  my $w = "name" . int(rand 1e6) . "_$i";
  $names{$w} = {id => $i, name => $w, price => rand(1000), tags => [map {"t" . int rand 99} 1..4]};
  push @rows, [$i, int(rand 1 << 30), $w];
}
print "ready\n"; <STDIN>;
"#;

/// Up to `pages` pages from the memory of the first of `interpreters` that exists.
pub fn dump(interpreters: &[PathBuf], pages: usize) -> Result<Vec<u8>, CorpusError> {
    let Some(program) = interpreters.iter().find(|program| program.exists()) else {
        return Err(CorpusError::Nothing {
            class: "heap",
            reason: format!("none of {interpreters:?} is there"),
        });
    };
    let mut child = start(program, pages * PAGE_BYTES)?;
    let read = wait_ready(&mut child, program).and_then(|()| memory(child.id(), pages));
    // The end of its input is what the script waits for; it ends by itself, so no signal is needed
    // even if reading its memory failed.
    drop(child.stdin.take());
    let ended = child.wait();
    ended.map_err(|e| CorpusError::read("wait for", program, e))?;
    read
}

fn start(program: &Path, bytes: usize) -> Result<Child, CorpusError> {
    let perl = program.ends_with("perl");
    let (flag, script) = if perl { ("-e", PERL) } else { ("-c", PYTHON) };
    Command::new(program)
        .args([flag, script, &bytes.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| CorpusError::read("start", program, e))
}

fn wait_ready(child: &mut Child, program: &Path) -> Result<(), CorpusError> {
    let mut line = String::new();
    if let Some(output) = child.stdout.as_mut() {
        BufReader::new(output)
            .read_line(&mut line)
            .map_err(|e| CorpusError::read("listen to", program, e))?;
    }
    if let Some(input) = child.stdin.as_mut() {
        let _nothing_to_send = input.flush();
    }
    if line.trim() == "ready" {
        return Ok(());
    }
    Err(CorpusError::Nothing {
        class: "heap",
        reason: format!("{} did not get ready", program.display()),
    })
}

/// The private, writable, anonymous memory of process `id`, without pages of zeros: those are a
/// class of their own.
fn memory(id: u32, pages: usize) -> Result<Vec<u8>, CorpusError> {
    let maps = PathBuf::from(format!("/proc/{id}/maps"));
    let text = std::fs::read_to_string(&maps).map_err(|e| CorpusError::read("read", &maps, e))?;
    let path = PathBuf::from(format!("/proc/{id}/mem"));
    let file = File::open(&path).map_err(|e| CorpusError::read("open", &path, e))?;
    let mut bytes = Vec::new();
    for line in text.lines() {
        let Some((from, to)) = anonymous(line) else {
            continue;
        };
        for at in (from..to).step_by(PAGE_BYTES) {
            if bytes.len() == pages * PAGE_BYTES {
                return Ok(bytes);
            }
            let mut page = [0; PAGE_BYTES];
            // A page that cannot be read does not hold data of the process (a guard, a device).
            if file.read_exact_at(&mut page, at).is_ok() && page != [0; PAGE_BYTES] {
                bytes.extend_from_slice(&page);
            }
        }
    }
    Ok(bytes)
}

fn anonymous(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let writable = fields.next()?.starts_with("rw-p");
    let inode = fields.nth(2)?;
    if !writable || inode != "0" {
        return None;
    }
    Some((
        u64::from_str_radix(from, 16).ok()?,
        u64::from_str_radix(to, 16).ok()?,
    ))
}
