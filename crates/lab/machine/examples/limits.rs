//! Prints what this machine is and can do: `cargo run --release -p dyno-machine --example limits`.

#![allow(clippy::disallowed_macros, reason = "an example on a terminal")]

use std::time::{Duration, Instant};

use dyno_machine::{LimitOptions, Root, limits, machine};
use dyno_record::Size;

fn main() {
    let root = Root::system();
    let scratch = std::env::temp_dir();
    let seen = machine(&root, &scratch, &mut || {
        std::thread::sleep(Duration::from_millis(500))
    });
    println!("fingerprint {}", seen.fingerprint);
    for (name, value) in &seen.facts {
        println!("{name:>24}  {value}");
    }
    for check in &seen.checks {
        println!("{:>24}  {:8} {}", check.name, check.state, check.seen);
    }
    let full = std::env::args().any(|argument| argument == "--full");
    let options = LimitOptions {
        scratch: &scratch,
        size: if full { Size::Full } else { Size::Quick },
        inflaters: Vec::new(),
        now_utc: &String::new,
        stop: None,
    };
    let started = Instant::now();
    let found = limits(&root, &options, &mut |p| {
        eprintln!(
            "{:5.1} s  {} of {}: {}",
            started.elapsed().as_secs_f64(),
            p.done,
            p.of,
            p.name
        );
    });
    for l in &found.limits {
        let tool = l
            .independent
            .as_ref()
            .map(|(name, value)| format!("; {name} {value:.4e}"));
        let tool = tool.unwrap_or_default();
        println!(
            "{:>20} {:.4e} {} [{:.4e}, {:.4e}] n {}{tool}; {}",
            l.name, l.value, l.unit, l.low, l.high, l.n, l.method
        );
    }
    for (name, reason) in &found.missing {
        println!("{name:>20} missing: {reason}");
    }
    println!("{:.1} s", started.elapsed().as_secs_f64());
}
