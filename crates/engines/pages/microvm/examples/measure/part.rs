//! Processes of this program in another part, and figures about them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::Result;

/// A process of this program in another part.
pub struct Part {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Part {
    pub fn start(arguments: &[&str]) -> Result<Part> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = child.stdin.take().ok_or("a pipe")?;
        let answers = BufReader::new(child.stdout.take().ok_or("a pipe")?);
        Ok(Part {
            child,
            orders,
            answers,
        })
    }

    pub fn heard(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Err("a part has ended".into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    pub fn told(&mut self, order: &str) -> Result<String> {
        writeln!(self.orders, "{order}")?;
        self.heard()
    }

    /// Private and proportional memory in KiB, page tables included.
    pub fn memory_kib(&self) -> Result<u64> {
        let id = self.child.id();
        let field = |text: &str, name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            number.unwrap_or(0)
        };
        let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup"))?;
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        Ok(field(&rollup, "Pss:") + field(&status, "VmPTE:"))
    }

    /// Processor time so far, in seconds.
    pub fn cpu_s(&self) -> Result<f64> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()))?;
        let mut sum_ns = 0.0;
        for thread in threads.flatten() {
            let text = fs::read_to_string(thread.path().join("schedstat"))?;
            let first = text.split(' ').next().unwrap_or_default();
            sum_ns += first.parse::<f64>()?;
        }
        Ok(sum_ns / 1e9)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Figures of all rounds, by name.
#[derive(Default)]
pub struct Figures(BTreeMap<String, Vec<f64>>);

impl Figures {
    pub fn add(&mut self, way: &str, what: &str, value: f64) {
        let name = format!("{what:<34} {way}");
        self.0.entry(name).or_default().push(value);
    }

    pub fn print(&mut self) {
        println!("| figure | way | n | median | least | most |\n|---|---|---|---|---|---|");
        for (name, values) in &mut self.0 {
            values.sort_by(f64::total_cmp);
            let (what, way) = name.split_at(34);
            println!(
                "| {} | {} | {} | {:.2} | {:.2} | {:.2} |",
                what.trim(),
                way.trim(),
                values.len(),
                values[values.len() / 2],
                values[0],
                values[values.len() - 1]
            );
        }
    }
}
