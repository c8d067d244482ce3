//! From the words of the command line to arguments, with help that can be read and pasted.
//!
//! The text behind a command's options is written by hand in lines of the source. On its way to a terminal of any
//! width a paragraph must be wrapped, and an example must not: a command that is broken in two cannot be pasted.
//! Clap wraps every line that is too long, so [`shaped`] prepares all texts here, in one place: the lines of a
//! paragraph are joined, for clap to wrap, and the spaces of a line that is indented are held together.

use std::env;
use std::process;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, FromArgMatches};

use crate::args::Args;
use crate::exit::Exit;
use crate::terminal;

/// Stands for a space of an example until the text is printed, because clap breaks lines at spaces only.
const HELD: char = '\u{a0}';
/// What the values are called of options that take a number with a unit.
const NUMBERS: [&str; 5] = ["TIME", "SIZE", "SHARE", "RATE", "TOTAL"];

/// Reads the command line; on a mistake, and when help is asked for, it prints that and ends the program.
pub fn parse() -> Args {
    let mut command = shaped(Args::command(), &held);
    let parsed = command
        .try_get_matches_from_mut(env::args_os())
        .and_then(|matches| Args::from_arg_matches(&matches))
        .map_err(|error| error.format(&mut command));
    match parsed {
        Ok(args) => args,
        Err(error) => end(error, &command),
    }
}

/// The commands for manuals and completions, whose readers wrap paragraphs themselves.
pub fn command() -> Command {
    shaped(Args::command(), &joined)
}

fn end(mut error: clap::Error, command: &Command) -> ! {
    if error.kind() == ErrorKind::InvalidSubcommand {
        suggest(&mut error, command);
    }
    // An error's own text has nothing that is held together, but the help that stands for one has.
    if !matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        error.exit();
    }
    let styled = error.render();
    if error.use_stderr() {
        eprint!("{}", released(&styled, terminal::colours_stderr()));
        process::exit(error.exit_code());
    }
    let exit = match terminal::print(&released(&styled, terminal::colours_stdout())) {
        Ok(()) => Exit::Done,
        Err(error) => Exit::of_error(&error),
    };
    process::exit(exit.code());
}

/// The help as text, in which held spaces are spaces again.
fn released(styled: &StyledStr, colours: bool) -> String {
    let text = match colours {
        true => styled.ansi().to_string(),
        false => styled.to_string(),
    };
    text.replace(HELD, " ")
}

/// Gives the texts of a command and of all below it the form that `text` makes, and lets negative numbers with a
/// unit reach the parser that refuses them with a reason; clap would take `-5s` for options.
fn shaped(command: Command, text: &dyn Fn(&str) -> String) -> Command {
    let after = command.get_after_help().map(|help| text(&help.to_string()));
    let command = match after {
        Some(after) => command.after_help(after),
        None => command,
    };
    command
        .mut_args(|arg| match takes_number(&arg) {
            true => arg.allow_hyphen_values(true),
            false => arg,
        })
        .mut_subcommands(|below| shaped(below, text))
}

fn takes_number(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    arg.get_action().takes_values() && names.iter().any(|name| NUMBERS.contains(&name.as_str()))
}

/// Joins the lines of each paragraph. An indented line stays as it is, and so does a line that ends in a colon,
/// which heads what follows.
fn joined(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let of_paragraph = !line.is_empty() && !line.starts_with(' ');
        match lines.last_mut() {
            Some(last) if open && of_paragraph => {
                last.push(' ');
                last.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
        open = of_paragraph && !line.ends_with(':');
    }
    lines.join("\n")
}

/// As [`joined`], and the spaces of indented lines are held together.
fn held(text: &str) -> String {
    let joined = joined(text);
    let lines = joined.lines().map(|line| match line.starts_with(' ') {
        true => line.replace(' ', &HELD.to_string()),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Names the command that was meant where two letters changed places, which clap's own measure does not find in
/// short names.
fn suggest(error: &mut clap::Error, command: &Command) {
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let (mut above, mut likely) = (command, None);
    for given in env::args().skip(1) {
        if given == *word {
            likely = above
                .get_subcommands()
                .find(|below| changed_places(&given, below.get_name()));
            break;
        }
        if let Some(below) = above.find_subcommand(&given) {
            above = below;
        }
    }
    if let Some(likely) = likely {
        let names = vec![likely.get_name().to_owned()];
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(names),
        );
    }
}

/// Whether one word becomes the other when two neighbouring letters change places.
fn changed_places(word: &str, other: &str) -> bool {
    let (word, other) = (word.as_bytes(), other.as_bytes());
    let Some(first) = word.iter().zip(other).position(|(a, b)| a != b) else {
        return false;
    };
    word.len() == other.len()
        && word.len() > first + 1
        && (word[first], word[first + 1]) == (other[first + 1], other[first])
        && word[first + 2..] == other[first + 2..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names and the help of every command, at so many columns.
    fn helps(width: usize) -> Vec<(String, String, String)> {
        fn collect(command: &mut Command, into: &mut Vec<(String, String, String)>) {
            let source = command.get_after_help().map(ToString::to_string);
            let shown = released(&command.render_long_help(), false);
            let source = source.unwrap_or_default().replace(HELD, " ");
            into.push((command.get_name().to_owned(), source, shown));
            for below in command.get_subcommands_mut() {
                collect(below, into);
            }
        }
        let mut command = shaped(Args::command(), &held).term_width(width);
        command.build();
        let mut helps = Vec::new();
        collect(&mut command, &mut helps);
        helps
    }

    #[test]
    fn no_example_is_broken_and_no_paragraph_has_a_line_of_its_own_for_a_word() {
        for width in [80, 100] {
            let helps = helps(width);
            assert!(helps.len() > 60, "{} commands", helps.len());
            for (name, source, shown) in helps {
                for line in source.lines() {
                    if line.starts_with(' ') {
                        assert!(
                            shown.lines().any(|it| it == line),
                            "{name} at {width}: {line:?} is not whole in\n{shown}"
                        );
                    } else {
                        // The next word would not have fitted on any line but the last.
                        let wrapped = wrapped(line, width);
                        assert!(
                            shown.contains(&wrapped),
                            "{name} at {width}: {wrapped:?} is not in\n{shown}"
                        );
                    }
                }
            }
        }
    }

    /// A paragraph with as many words on each line as fit.
    fn wrapped(paragraph: &str, width: usize) -> String {
        let mut lines = vec![String::new()];
        for word in paragraph.split(' ') {
            let line = lines.last_mut().expect("one at least");
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(word.to_owned());
            } else {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
        }
        lines.join("\n")
    }

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        let text =
            "Examples:\n  dyno a\n  dyno b\n\nA sentence that\nwas broken.\nAnd more.\n\nLast.";
        assert_eq!(
            joined(text),
            "Examples:\n  dyno a\n  dyno b\n\nA sentence that was broken. And more.\n\nLast."
        );
    }

    #[test]
    fn letters_that_changed_places_are_found() {
        assert!(changed_places("rnu", "run"));
        assert!(changed_places("plna", "plan"));
        assert!(!changed_places("run", "run"));
        assert!(!changed_places("rn", "run"));
        assert!(!changed_places("nur", "run"));
    }
}
