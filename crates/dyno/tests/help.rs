//! The help of every command: two examples, lines that fit, plain words, and flags that mean the
//! same everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The width of help where there is no terminal.
const COLUMNS: usize = 100;

/// Words that help does not use: they say that something is absent in a way that reads as if
/// translated, or name an actor that is not there.
const BANNED: [&str; 5] = ["is no ", "nobody", "somebody", "whoever", "Which;"];

/// Flags whose value is called differently in some commands, and why.
const EXCEPTIONS: [(&str, &str); 7] = [
    (
        "--resume",
        "the name of a producer for `pubsub produce`, the directory of a record for `run`",
    ),
    (
        "--link",
        "`serve` has an address to listen on when none is given, `limits` has none to connect to",
    ),
    (
        "--from",
        "a position in a log for `pubsub consume`, a backup's directory for `txn restore`",
    ),
    (
        "--to",
        "a position in a log for `pubsub group reset`, a backup's directory for `txn backup`",
    ),
    (
        "--listen",
        "a broker listens on a Unix socket too, a transaction server only on TCP",
    ),
    (
        "--into",
        "a table may be on a server, a download goes into a directory",
    ),
    (
        "--out",
        "`ingest features` makes one file, the others fill a directory",
    ),
];

struct Help {
    /// The words of the command, without `dyno`.
    command: Vec<String>,
    text: String,
}

impl Help {
    fn from_command(command: Vec<String>) -> Help {
        let output = Command::new(env!("CARGO_BIN_EXE_dyno"))
            .args(&command)
            .arg("--help")
            .output()
            .expect("dyno runs");
        assert!(output.status.success(), "{command:?} --help");
        let text = String::from_utf8(output.stdout).expect("help is UTF-8");
        Help { command, text }
    }

    fn name(&self) -> String {
        format!("dyno {}", self.command.join(" "))
    }

    /// The commands below it.
    fn below(&self) -> Vec<Vec<String>> {
        let Some((_, rest)) = self.text.split_once("\nCommands:\n") else {
            return Vec::new();
        };
        let list = rest.split("\n\n").next().unwrap_or_default().lines();
        let names = list
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| *name != "help");
        names
            .map(|name| [self.command.clone(), vec![name.to_owned()]].concat())
            .collect()
    }

    /// Each flag with what its value is called; nothing for a switch.
    fn flags(&self) -> impl Iterator<Item = (String, String)> {
        self.text.lines().filter_map(|line| {
            // A flag with a short form stands as `  -o, --out`.
            let with_short = || line.strip_prefix("  -")?.split_once(", --");
            let alone = line.strip_prefix("      --");
            let flag = alone.or_else(|| with_short().map(|(_, flag)| flag))?;
            let (form, _) = flag.split_once("  ").unwrap_or((flag, ""));
            let (name, value) = form.split_once(' ').unwrap_or((form, ""));
            Some((format!("--{name}"), value.to_owned()))
        })
    }
}

/// The help of all commands that are shown.
fn helps() -> Vec<Help> {
    let mut found = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(command) = open.pop() {
        let help = Help::from_command(command);
        open.extend(help.below());
        found.push(help);
    }
    assert!(found.len() > 60, "{} commands", found.len());
    found
}

#[test]
fn every_command_shows_two_examples() {
    for help in helps() {
        let (_, after) = help.text.split_once("\nExamples:\n").unwrap_or_default();
        let examples = after.lines().take_while(|line| line.starts_with("  "));
        let commands = examples.filter(|line| line.starts_with("  dyno ")).count();
        assert!(commands >= 2, "{} shows {commands} examples", help.name());
    }
}

#[test]
fn every_line_fits_and_is_in_plain_words() {
    for help in helps() {
        for line in help.text.lines() {
            let columns = line.chars().count();
            assert!(columns <= COLUMNS, "{}: {line:?}", help.name());
        }
        let words: Vec<&str> = help.text.split_whitespace().collect();
        let text = words.join(" ");
        for banned in BANNED {
            assert!(!text.contains(banned), "{}: {banned:?}", help.name());
        }
    }
}

#[test]
fn a_flag_takes_the_same_value_in_every_command() {
    let mut seen: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for help in helps() {
        for (flag, value) in help.flags() {
            let values = seen.entry(flag).or_default();
            values.entry(value).or_default().insert(help.name());
        }
    }
    for (flag, values) in &seen {
        let excepted = EXCEPTIONS.iter().any(|(name, _)| name == flag);
        assert_eq!(values.len() > 1, excepted, "{flag}: {values:?}");
    }
}

#[test]
fn old_names_of_flags_are_accepted_and_not_shown() {
    for (old, flag, command) in [
        ("--workers", "--threads", "ingest load"),
        ("--workers", "--threads", "ingest gen"),
        ("--workers", "--threads", "ingest bench"),
        ("--report", "--out", "ingest bench"),
        ("--jobs", "--threads", "tpch gen"),
        ("--report", "--out", "tpch bench"),
        ("--report", "--report-every", "pubsub bench"),
        ("--on", "--way", "pubsub check"),
        ("--loaders", "--threads", "tpcc load"),
        ("--carrier", "--transport", "txn bench"),
        ("--for", "--duration", "txn check soak"),
        ("--for", "--engine", "doctor"),
    ] {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let help = Help::from_command(words.clone());
        let names: Vec<String> = help.flags().map(|(name, _)| name).collect();
        assert!(names.contains(&flag.to_owned()), "{command} has {flag}");
        assert!(!names.contains(&old.to_owned()), "{command} shows {old}");
        // The second flag is unknown, so that nothing is run.
        let output = Command::new(env!("CARGO_BIN_EXE_dyno"))
            .args(&words)
            .args([&format!("{old}=1"), "--nothing-of-the-kind"])
            .output()
            .expect("dyno runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        let refused = format!("unexpected argument '{old}'");
        assert!(!said.contains(&refused), "{command}: {said}");
    }
}

#[test]
fn flags_are_where_they_mean_something() {
    for (command, flag, shown) in [
        ("txn status", "--durability", false),
        ("txn status", "--isolation", false),
        ("txn status", "--memory", true),
        ("txn shell", "--durability", true),
        ("tpcc run", "--isolation", true),
        ("pages bench", "--quiet", true),
        ("pubsub bench", "--quiet", true),
        ("txn bench", "--quiet", true),
    ] {
        let help = Help::from_command(command.split(' ').map(str::to_owned).collect());
        let has = help.flags().any(|(name, _)| name == flag);
        assert_eq!(has, shown, "{command} {flag}");
    }
}
