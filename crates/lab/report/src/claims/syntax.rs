//! Claims as they stand in a Markdown document.
//!
//! ```text
//! <!-- dyno:claim RECORD#CASE [KEY=VALUE]... -->4.26<!-- /claim -->
//! ```
//!
//! Both comments are invisible in every Markdown renderer, also inside a table. Comments in code,
//! such as the ones above, bind nothing.

use std::ops::Range;

/// Begins a claim; what it is bound to follows.
const OPEN: &str = "<!-- dyno:claim";
const OPEN_END: &str = "-->";
/// Ends the text of a claim.
const CLOSE: &str = "<!-- /claim -->";

/// A claim that can be read.
#[derive(Debug, PartialEq)]
pub(super) struct Written {
    pub(super) line: usize,
    /// Where the text between the two comments stands.
    pub(super) range: Range<usize>,
    pub(super) binding: Binding,
}

/// What a claim is bound to.
#[derive(Debug, PartialEq)]
pub(super) struct Binding {
    /// Path of the record below the records' root.
    pub(super) record: String,
    pub(super) case: String,
    pub(super) show: Show,
    /// `None` stands for our own program.
    pub(super) system: Option<String>,
    /// `None` stands for the metric that ranks the case.
    pub(super) metric: Option<String>,
    /// The system that a ratio is to; `None` stands for the best peer where a ratio is shown.
    pub(super) against: Option<String>,
}

/// What of a figure is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    Value,
    Low,
    High,
    Spread,
    N,
    Share,
    Limit,
    Ratio,
    Verdict,
    Row,
}

impl Show {
    const ALL: [(&str, Show); 10] = [
        ("value", Show::Value),
        ("low", Show::Low),
        ("high", Show::High),
        ("spread", Show::Spread),
        ("n", Show::N),
        ("share", Show::Share),
        ("limit", Show::Limit),
        ("ratio", Show::Ratio),
        ("verdict", Show::Verdict),
        ("row", Show::Row),
    ];

    pub(super) fn name(self) -> &'static str {
        let found = Show::ALL.iter().find(|(_, show)| *show == self);
        found.map_or("", |(name, _)| name)
    }

    /// Whether it may be of two systems.
    fn compares(self) -> bool {
        matches!(self, Show::Ratio | Show::Low | Show::High | Show::Verdict)
    }
}

/// A claim that binds nothing, because its comment cannot be read or its record has no such figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenClaim {
    /// Line of the document, from 1.
    pub line: usize,
    /// What is wrong, without the line, in words for the author of the document.
    pub reason: String,
}

/// The claims of a document in their order, or every one that is broken.
pub(super) fn parse(text: &str) -> Result<Vec<Written>, Vec<BrokenClaim>> {
    let plain = without_code(text);
    let mut claims = Vec::new();
    let mut broken = Vec::new();
    let mut from = 0;
    while let Some(begin) = find(&plain, OPEN, from) {
        let line = text[..begin].matches('\n').count() + 1;
        let mut fail = |reason: String| broken.push(BrokenClaim { line, reason });
        let Some(inner_end) = find(&plain, OPEN_END, begin) else {
            // What follows is inside the open comment, so no later claim can be told apart.
            fail("the comment does not end with -->".to_owned());
            break;
        };
        let start = inner_end + OPEN_END.len();
        from = start;
        // A claim that was never closed must not take the closing comment of the next claim: its
        // text would then be everything in between, and renewing it would delete that.
        let next = find(&plain, OPEN, start).unwrap_or(text.len());
        let Some(end) = find(&plain, CLOSE, start).filter(|end| *end < next) else {
            fail(format!("no {CLOSE} follows"));
            continue;
        };
        // Offsets are found in the text without code and applied to the original: both have the
        // same length.
        match binding(&text[begin + OPEN.len()..inner_end]) {
            Ok(binding) => claims.push(Written {
                line,
                range: start..end,
                binding,
            }),
            Err(reason) => fail(reason),
        }
    }
    if broken.is_empty() {
        Ok(claims)
    } else {
        Err(broken)
    }
}

fn find(text: &str, what: &str, from: usize) -> Option<usize> {
    text[from..].find(what).map(|at| from + at)
}

fn binding(inner: &str) -> Result<Binding, String> {
    let mut words = inner.split_whitespace();
    let place = words.next().unwrap_or_default();
    let (record, case) = place
        .split_once('#')
        .filter(|(record, case)| !record.is_empty() && !case.is_empty())
        .ok_or_else(|| format!("{place:?} is not RECORD#CASE, such as results/run#load"))?;
    let mut bound = Binding {
        record: record.to_owned(),
        case: case.to_owned(),
        show: Show::Value,
        system: None,
        metric: None,
        against: None,
    };
    let mut show = None;
    for word in words {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("{word:?} is not KEY=VALUE"))?;
        match key {
            "show" => show = Some(shown(value)?),
            "system" => bound.system = Some(value.to_owned()),
            "metric" => bound.metric = Some(value.to_owned()),
            "vs" => bound.against = Some(value.to_owned()).filter(|peer| peer != "best-peer"),
            _ => {
                return Err(format!(
                    "{key:?} is not a key; use show, system, metric or vs"
                ));
            }
        }
    }
    // `against` cannot tell whether `vs` was written, because `vs=best-peer` leaves it `None`.
    let compared = inner.split_whitespace().any(|word| word.starts_with("vs="));
    bound.show = show.unwrap_or(if compared { Show::Ratio } else { Show::Value });
    if compared && !bound.show.compares() {
        let name = bound.show.name();
        return Err(format!("show={name} is of one system, so it takes no vs"));
    }
    let ends = matches!(bound.show, Show::Low | Show::High);
    if ends && compared && bound.against.is_none() {
        bound.against = Some(BEST.to_owned());
    }
    Ok(bound)
}

/// Stands for the best peer where a missing `vs` would mean the figure itself.
pub(super) const BEST: &str = "best-peer";

fn shown(value: &str) -> Result<Show, String> {
    let found = Show::ALL.iter().find(|(name, _)| *name == value);
    found.map(|(_, show)| *show).ok_or_else(|| {
        let names: Vec<&str> = Show::ALL.iter().map(|(name, _)| *name).collect();
        format!("show={value} is not known; use one of {}", names.join(", "))
    })
}

/// The text with every byte of code replaced by a space, so that offsets stay what they are.
fn without_code(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut blank = |range: Range<usize>| {
        let code = bytes[range].iter_mut().filter(|byte| **byte != b'\n');
        code.for_each(|byte| *byte = b' ');
    };
    let mut fence: Option<&str> = None;
    let (mut at, mut paragraph) = (0, 0);
    for line in text.split_inclusive('\n') {
        let begin = at;
        at += line.len();
        let mark = fence_of(line);
        // A code span cannot reach over an empty line or into a fenced block, so the spans of each
        // paragraph are found by themselves. A lone backquote then hides no claim of another
        // paragraph.
        let is_code = fence.is_some() || mark.is_some();
        if is_code || line.trim().is_empty() {
            spans(&text[paragraph..begin])
                .for_each(|s| blank(paragraph + s.start..paragraph + s.end));
            paragraph = at;
        }
        if is_code {
            blank(begin..at);
        }
        fence = match (fence, mark) {
            (None, mark) => mark.map(|(marks, _)| marks),
            // A block ends with as many of its marks or more and nothing behind them, so that it
            // can show a shorter fence, or the beginning of one.
            (Some(open), Some((marks, ""))) if marks.starts_with(open) => None,
            (open, _) => open,
        };
    }
    spans(&text[paragraph..]).for_each(|s| blank(paragraph + s.start..paragraph + s.end));
    // Every byte of a character that stands in code was replaced, so what is left is UTF-8.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The marks of a line that may begin or end a fenced block, and what stands behind them.
fn fence_of(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| ['`', '~'].contains(c))?;
    let behind = line.trim_start_matches(mark);
    let marks = &line[..line.len() - behind.len()];
    // A code span such as ```a``` may begin a line too.
    let is_span = mark == '`' && behind.contains('`');
    (marks.len() >= 3 && !is_span).then_some((marks, behind.trim()))
}

/// Code spans of one paragraph: from a run of backquotes to the next run of as many.
fn spans(paragraph: &str) -> impl Iterator<Item = Range<usize>> + use<> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in paragraph.match_indices('`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    let mut spans = Vec::new();
    let mut next = 0;
    while next < runs.len() {
        let same = |run: &Range<usize>| run.len() == runs[next].len();
        match runs[next + 1..].iter().position(same) {
            Some(skipped) => {
                let close = next + 1 + skipped;
                spans.push(runs[next].start..runs[close].end);
                next = close + 1;
            }
            None => next += 1,
        }
    }
    spans.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Binding {
        let mut claims = parse(text).unwrap();
        assert_eq!(claims.len(), 1, "{text}");
        claims.remove(0).binding
    }

    fn reason(text: &str) -> String {
        let broken = parse(text).unwrap_err();
        assert_eq!(broken.len(), 1, "{broken:?}");
        broken[0].reason.clone()
    }

    #[test]
    fn a_claim_names_record_case_and_what_it_shows() {
        let text = "It is <!-- dyno:claim results/a/b#load vs=chdb -->4.26<!-- /claim --> times.";
        let claims = parse(text).unwrap();
        assert_eq!(&text[claims[0].range.clone()], "4.26");
        let bound = one(text);
        assert_eq!(
            (bound.record.as_str(), bound.case.as_str()),
            ("results/a/b", "load")
        );
        assert_eq!(
            (bound.show, bound.against.as_deref()),
            (Show::Ratio, Some("chdb"))
        );
        let bound = one("<!-- dyno:claim\nr#c metric=cpu\nsystem=x show=n -->\n6<!-- /claim -->");
        assert_eq!(
            (bound.show, bound.metric.as_deref()),
            (Show::N, Some("cpu"))
        );
        assert_eq!(bound.system.as_deref(), Some("x"));
        let best = one("<!-- dyno:claim r#c vs=best-peer show=low -->3.6<!-- /claim -->");
        assert_eq!(best.against.as_deref(), Some(BEST));
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        let broken =
            parse("a\n<!-- dyno:claim r -->1<!-- /claim -->\n<!-- dyno:claim").unwrap_err();
        let lines: Vec<usize> = broken.iter().map(|claim| claim.line).collect();
        assert_eq!(lines, [2, 3]);
        let wrapped = |inner: &str| reason(&format!("<!-- dyno:claim {inner} -->1<!-- /claim -->"));
        assert!(
            wrapped("r#c show=best").contains("value, low"),
            "{}",
            wrapped("r#c show=best")
        );
        assert!(wrapped("r#c of=x").contains("not a key"));
        assert!(wrapped("r#c word").contains("KEY=VALUE"));
        assert!(wrapped("r#c show=n vs=x").contains("takes no vs"));
        let open = "<!-- dyno:claim r#c -->1 <!-- dyno:claim r#d -->2<!-- /claim -->";
        assert!(reason(open).contains("follows"));
    }

    #[test]
    fn code_binds_nothing() {
        let claim = "<!-- dyno:claim r#c -->1<!-- /claim -->";
        for text in [
            format!("`{claim}`"),
            format!("a ``x ` {claim}`` b"),
            format!("```text\n{claim}\n```\n"),
            format!("~~~\n```\n{claim}\n~~~\n"),
            format!("````md\n```\n{claim}\n```\n{claim}\n````\n"),
            format!("```text\n```rust\n{claim}\n```\n"),
        ] {
            assert_eq!(parse(&text).unwrap(), [], "{text}");
        }
        // A backquote that is never closed begins no code, and a paragraph ends every span.
        for text in [
            format!("` é {claim}"),
            format!("`a\n\n{claim} `b`"),
            format!("```a``` is a span and no fence\n\n{claim}\n"),
        ] {
            assert_eq!(parse(&text).unwrap().len(), 1, "{text}");
        }
    }
}
