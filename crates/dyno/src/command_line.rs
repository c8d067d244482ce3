//! Parses the command line, prints help, and suggests what was meant by a word that is unknown.
//!
//! The text behind a command's options has paragraphs, a line each, and indented examples. Clap
//! wraps every line that is too long for the terminal. That is right for a paragraph, but an
//! example that is broken in two cannot be pasted, so [`shaped`] joins the words of indented lines
//! with a character that clap does not break at; printing turns it back into a space.

use std::env;
use std::process;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, FromArgMatches};
use dyno_suite::nearest;

use crate::args::Args;
use crate::exit::Exit;
use crate::terminal;

/// Stands for a space of an example until the text is printed, because clap breaks lines only at
/// spaces.
const HELD: char = '\u{a0}';
/// The value names of options that take a number with a unit.
const NUMBERS: [&str; 5] = ["TIME", "SIZE", "SHARE", "RATE", "TOTAL"];

/// Parses the command line. On a mistake, and for `--help`, it prints a text and ends the program.
pub fn parse() -> Args {
    let mut command = shaped(Args::command());
    let parsed = command
        .try_get_matches_from_mut(env::args_os())
        .and_then(|matches| Args::from_arg_matches(&matches))
        .map_err(|error| error.format(&mut command));
    match parsed {
        Ok(args) => args,
        Err(error) => end(error, &command),
    }
}

/// The definitions of all commands, for manuals and completions.
pub fn command() -> Command {
    Args::command()
}

fn end(mut error: clap::Error, command: &Command) -> ! {
    suggest(&mut error, command, env::args().skip(1));
    // The text of an error has no held spaces, but help that stands for an error has.
    if !matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        error.exit();
    }
    // Only help goes through the code below. An error that clap prints itself has the right exit
    // code and stream already.
    let styled = error.render();
    if error.use_stderr() {
        eprint!("{}", released(&styled, terminal::colours_stderr()));
        process::exit(error.exit_code());
    }
    let exit = match terminal::print(&released(&styled, terminal::colours_stdout())) {
        Ok(()) => Exit::Done,
        Err(error) => Exit::from_error(&error),
    };
    process::exit(exit.code());
}

/// The help as text, in which held spaces are spaces again.
fn released(styled: &StyledStr, colours: bool) -> String {
    let text = if colours {
        styled.ansi().to_string()
    } else {
        styled.to_string()
    };
    text.replace(HELD, " ")
}

/// Prepares a command and all below it. Spaces in indented lines of its text are held together.
/// Negative numbers with a unit reach the parser of their option, which refuses them with a reason;
/// clap would take `-5s` for options.
fn shaped(command: Command) -> Command {
    let after = command.get_after_help().map(|help| held(&help.to_string()));
    let command = match after {
        Some(after) => command.after_help(after),
        None => command,
    };
    command
        .mut_args(|arg| {
            if takes_number(&arg) {
                arg.allow_hyphen_values(true)
            } else {
                arg
            }
        })
        .mut_subcommands(shaped)
}

fn takes_number(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    arg.get_action().takes_values() && names.iter().any(|name| NUMBERS.contains(&name.as_str()))
}

/// Holds the spaces of indented lines together.
fn held(text: &str) -> String {
    let lines = text.lines().map(|line| {
        if line.starts_with(' ') {
            line.replace(' ', &HELD.to_string())
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Names the command or the flag that was probably meant. Clap does this too, but its measure does
/// not find short names in which two letters changed places, or finds another name; what it says
/// stays where ours finds nothing.
fn suggest(error: &mut clap::Error, root: &Command, arguments: impl Iterator<Item = String>) {
    let (unknown, suggested) = match error.kind() {
        ErrorKind::InvalidSubcommand => (
            ContextKind::InvalidSubcommand,
            ContextKind::SuggestedSubcommand,
        ),
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        _ => return,
    };
    let Some(ContextValue::String(word)) = error.get(unknown) else {
        return;
    };
    let command = command_before(word, arguments, root);
    let meant = match word.strip_prefix("--") {
        Some(flag) => {
            let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
            nearest(flag, shown.filter_map(Arg::get_long))
                .map(|flag| ContextValue::String(format!("--{flag}")))
        }
        None => {
            let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
            nearest(word, shown.map(Command::get_name))
                .map(|name| ContextValue::Strings(vec![name.to_owned()]))
        }
    };
    if let Some(meant) = meant {
        error.insert(suggested, meant);
    }
}

/// The innermost command that the arguments before `word` name.
fn command_before<'a>(
    word: &str,
    arguments: impl Iterator<Item = String>,
    root: &'a Command,
) -> &'a Command {
    // Only the words before the unknown one name commands. Flags and values among them name none,
    // so they are passed over.
    let before = arguments.take_while(|given| given.split('=').next() != Some(word));
    before.fold(root, |above, given| {
        above.find_subcommand(&given).unwrap_or(above)
    })
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
        let mut command = shaped(Args::command()).term_width(width);
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

    /// The commands in the examples of a help text, in words as a shell splits them. What stands
    /// behind an operator of the shell is a command of its own, as is the file of a redirection.
    fn examples(help: &str) -> Vec<Vec<String>> {
        let block = help.split("\n\n").next().unwrap_or_default();
        let block = block.strip_prefix("Examples:\n").unwrap_or_default();
        let mut commands = vec![vec![String::new()]];
        // The character that ends a quotation or a comment, and whether its text counts.
        let mut until: Option<(char, bool)> = None;
        for c in block.replace("\\\n", " ").chars() {
            let words = commands.last_mut().expect("one at least");
            let word = words.last_mut().expect("one at least");
            match (until, c) {
                (Some((end, counts)), c) if c != end => {
                    if counts {
                        word.push(c);
                    }
                }
                (Some(_), '\'' | '"') => until = None,
                (None, '\'' | '"') => until = Some((c, true)),
                (None, '#') if word.is_empty() => until = Some(('\n', false)),
                (_, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '\n') => {
                    until = None;
                    commands.push(vec![String::new()]);
                }
                (None, ' ') => words.push(String::new()),
                (_, c) => word.push(c),
            }
        }
        for words in &mut commands {
            words.retain(|word| !word.is_empty());
        }
        commands
    }

    #[test]
    fn every_example_is_accepted_by_the_parser() {
        let root = shaped(Args::command());
        let mut parsed = 0;
        for (name, help, _) in helps(100) {
            let examples = examples(&help);
            let of_dyno = |words: &Vec<String>| words.first().is_some_and(|it| it == "dyno");
            for words in examples.into_iter().filter(of_dyno) {
                let read = root.clone().try_get_matches_from(&words);
                let read = read.and_then(|matches| Args::from_arg_matches(&matches));
                if let Err(error) = read
                    && error.kind() != ErrorKind::DisplayHelp
                {
                    panic!("help of {name}: {words:?}: {error}");
                }
                parsed += 1;
            }
        }
        assert!(parsed > 150, "{parsed} examples");
    }

    #[test]
    fn examples_are_split_as_a_shell_does() {
        let help = "Examples:
  zcat a | dyno x - --as 'b c'   # said \"of it\"
  dyno y 1#2 \\
    --out d > f

  dyno z";
        let found = examples(help);
        let of_dyno = found
            .iter()
            .filter(|words| words.iter().any(|it| it == "dyno"));
        let of_dyno: Vec<String> = of_dyno.map(|words| words.join("|")).collect();
        assert_eq!(of_dyno, ["dyno|x|-|--as|b c", "dyno|y|1#2|--out|d"]);
    }

    /// The message for a command line that clap refuses.
    fn refused(words: &str) -> String {
        let root = shaped(Args::command());
        let words = || words.split(' ').map(str::to_owned);
        let given = std::iter::once("dyno".to_owned()).chain(words());
        let mut error = root.clone().try_get_matches_from(given).unwrap_err();
        suggest(&mut error, &root, words());
        error.to_string()
    }

    #[test]
    fn what_was_meant_is_named_also_where_letters_changed_places() {
        for (words, meant) in [
            ("rnu", "'run'"),
            ("ingest laod", "'load'"),
            ("pubsub topic crate", "'create'"),
            ("doctor --josn", "'--json'"),
            ("run wspr --otu", "'--out'"),
            ("txn bench --thtea=0.5", "'--theta'"),
            ("pubsub group reset a --ot", "'--to'"),
        ] {
            let message = refused(words);
            assert!(message.contains(meant), "{words}: {message}");
        }
        let message = refused("doctor --nothing-of-the-kind");
        assert!(!message.contains("similar"), "{message}");
    }
}
