//! The reference of the command line, from the definitions that parse it.

use clap::{Arg, Command};

use super::Document;
use super::markdown::paragraph;
use crate::command_line;

/// What stands at the head of every page, so that a reader does not edit it.
const MADE: &str = "<!-- Made by `dyno documents` from the definitions of the commands. -->\n";

/// The page of the commands that measure, which are not below a command of their own.
const LAB: &str = "lab";

/// Commands of the lab that have others below them.
const OF_THE_LAB: [&str; 2] = ["peers", "history"];

/// One page for each engine, and one for the commands of the lab.
pub fn documents() -> Vec<Document> {
    let root = command_line::command();
    let mut lab = page("Commands of the lab");
    let mut documents = Vec::new();
    for command in visible(&root) {
        // A command with others below it that can also be used alone, such as `history`, belongs to
        // the lab's page. An engine always has a command below it.
        let engine = command.has_subcommands() && !OF_THE_LAB.contains(&command.get_name());
        if engine {
            let mut text = page(&format!("`dyno {}`", command.get_name()));
            describe(command, "dyno", &mut text);
            documents.push(document(command.get_name(), text));
        } else {
            describe(command, "dyno", &mut lab);
        }
    }
    documents.push(document(LAB, lab));
    documents
}

fn page(title: &str) -> String {
    format!("# {title}\n\n{MADE}")
}

fn document(name: &str, text: String) -> Document {
    Document {
        path: format!("docs/reference/commands/{name}.md").into(),
        text,
    }
}

/// Subcommands that help shows, without the one that prints help.
fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

/// Appends a command and all below it, each under a heading of its own.
fn describe(command: &Command, parent: &str, text: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    text.push_str(&format!("\n## {name}\n\n"));
    if let Some(about) = command.get_about() {
        text.push_str(&paragraph("", &sentence(&about.to_string())));
    }
    if !command.is_subcommand_required_set() {
        text.push_str(&format!("\n```text\n{}\n```\n", usage(command, &name)));
    }
    arguments(command, text);
    after(command, text);
    for below in visible(command) {
        describe(below, &name, text);
    }
}

/// The first form of use, under the command's full name.
fn usage(command: &Command, name: &str) -> String {
    let usage = command.clone().render_usage().to_string();
    let own = usage
        .split_once(command.get_name())
        .map_or("", |(_, arguments)| arguments);
    // A command that can do without those below it has a second form, for them.
    let forms = if command.has_subcommands() {
        1
    } else {
        usize::MAX
    };
    let lines: Vec<&str> = own.lines().map(str::trim).take(forms).collect();
    format!("{name} {}", lines.join(" ")).trim_end().to_owned()
}

fn arguments(command: &Command, text: &mut String) {
    let shown = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()));
    let mut any = false;
    for arg in shown {
        if !any {
            text.push('\n');
        }
        any = true;
        text.push_str(&paragraph("- ", &argument(arg)));
    }
}

/// What help says of an argument: its form, its meaning, its values and its default.
fn argument(arg: &Arg) -> String {
    let mut line = format!("`{}`", form(arg));
    if let Some(help) = arg.get_help() {
        line.push_str(&format!(": {}", help.to_string().replace('\n', " ")));
    }
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if arg.get_action().takes_values() && !values.is_empty() {
        line.push_str(&format!(". One of {}", values.join(", ")));
    }
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        line.push_str(&format!(" [default: `{}`]", defaults.join(" ")));
    }
    line
}

/// How an argument is written: `--out DIR`, `NAME`.
fn form(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    let values = match (values.is_empty(), arg.get_action().takes_values()) {
        (true, true) => arg.get_id().as_str().to_uppercase(),
        (_, true) => values.join(" "),
        (_, false) => String::new(),
    };
    match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => format!("--{long} {values}").trim_end().to_owned(),
        (None, Some(short)) => format!("-{short} {values}").trim_end().to_owned(),
        (None, None) => values,
    }
}

/// The text behind the options: paragraphs, and examples as they can be pasted.
fn after(command: &Command, text: &mut String) {
    let Some(help) = command.get_after_help() else {
        return;
    };
    // An indented line is an example and goes into a block, where Markdown changes nothing of it.
    // Any other line is a paragraph.
    let mut in_examples = false;
    for line in help.to_string().lines() {
        let example = line.starts_with("  ");
        if example != in_examples {
            text.push_str(if example { "\n```text\n" } else { "```\n" });
            in_examples = example;
        }
        match line.trim() {
            "" => {}
            line if example => text.push_str(&format!("{line}\n")),
            line => text.push_str(&format!("\n{}", paragraph("", line))),
        }
    }
    if in_examples {
        text.push_str("```\n");
    }
}

/// `about` with a full stop, since help has none.
fn sentence(about: &str) -> String {
    let about = about.replace('\n', " ");
    if about.ends_with(['.', '?']) {
        about
    } else {
        format!("{about}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_shown_with_its_values_and_its_default() {
        let arg = Arg::new("codec")
            .long("codec")
            .value_name("CODEC")
            .help("Pack pages with CODEC")
            .value_parser(["auto", "lz4"])
            .default_value("auto");
        assert_eq!(
            argument(&arg),
            "`--codec CODEC`: Pack pages with CODEC. One of `auto`, `lz4` [default: `auto`]"
        );
    }

    #[test]
    fn examples_are_blocks_and_paragraphs_are_not() {
        let command = Command::new("x").after_help("Examples:\n  x --a\n  x --b\n\nIt ends.");
        let mut text = String::new();
        after(&command, &mut text);
        assert_eq!(
            text,
            "\nExamples:\n\n```text\nx --a\nx --b\n```\n\nIt ends.\n"
        );
    }
}
