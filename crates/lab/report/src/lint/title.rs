//! A heading says what was measured below it.

use dyno_record::{Figures, Heading};

use super::{Finding, Severity};
use crate::units::number;

/// What headings count, in the singular, and the parameters that say how many there were. A heading
/// is right if one of them has its number.
const COUNTED: [(&str, &[&str]); 16] = [
    ("worker", &["workers"]),
    ("thread", &["threads", "jobs"]),
    ("core", &["cores", "server-cores"]),
    ("warehouse", &["warehouses"]),
    ("client", &["clients"]),
    ("terminal", &["terminals", "clients"]),
    ("connection", &["connections"]),
    ("server", &["servers"]),
    ("node", &["nodes"]),
    ("partition", &["partitions"]),
    ("group", &["groups"]),
    ("writer", &["writers"]),
    ("reader", &["readers"]),
    ("row", &["rows"]),
    ("page", &["pages", "batch"]),
    (
        "message",
        &["messages", "before", "write-batch", "read-batch"],
    ),
];

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for finding in figures.headings.iter().flat_map(judge) {
        // A table over ten cases would say the same ten times.
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings
}

fn judge(heading: &Heading) -> Vec<Finding> {
    let contradicted = counts(&heading.text).filter_map(|(stated, noun)| {
        let (_, names) = COUNTED.iter().find(|(known, _)| *known == noun)?;
        let values = names
            .iter()
            .filter_map(|name| heading.parameters.get(*name));
        let values: Vec<f64> = values.copied().collect();
        // A case that does not have the parameter may do as the heading says by another one.
        if values.is_empty() || values.contains(&stated) {
            return None;
        }
        let had: Vec<String> = values.iter().map(|value| number(*value)).collect();
        Some(Finding::new(
            "title",
            Severity::Error,
            &heading.text,
            format!(
                "it says {} {noun}s, and {} ran with {}",
                number(stated),
                heading.case,
                had.join(" and ")
            ),
            "A figure is quoted under its heading, and this one is of something else.",
            "Name what was run in the heading, or run what the heading names.",
        ))
    });
    contradicted.collect()
}

/// The numbers of a heading, each with the word behind it in the singular: `12 warehouses` gives 12
/// and `warehouse`. A number of things a second is a rate and does not count them.
fn counts(text: &str) -> impl Iterator<Item = (f64, String)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let found = words.windows(2).enumerate().filter_map(|(at, pair)| {
        let stated: f64 = pair[0].replace(',', "").parse().ok()?;
        let word = pair[1].trim_end_matches(|c: char| !c.is_alphanumeric());
        let ends_phrase = word.len() < pair[1].len();
        let follows = words.get(at + 2).copied().unwrap_or_default();
        if !ends_phrase && ["a", "per", "each"].contains(&follows) {
            let unit = words.get(at + 3).copied().unwrap_or_default();
            if unit.starts_with("second") {
                return None;
            }
        }
        let word = word.to_lowercase();
        let singular = word.strip_suffix('s').unwrap_or(&word);
        Some((stated, singular.to_owned()))
    });
    found.collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, parameters: &[(&str, f64)]) -> Vec<String> {
        let parameters = parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        let heading = Heading {
            text: text.to_owned(),
            case: "cores-1".to_owned(),
            parameters: parameters.collect(),
        };
        judge(&heading)
            .into_iter()
            .map(|finding| finding.seen)
            .collect()
    }

    #[test]
    fn a_number_that_the_case_does_not_have_is_an_error() {
        let four = [("warehouses", 4.0), ("cores", 1.0)];
        let text = "TPC-C, 1 core, 12 warehouses";
        let expected = "it says 12 warehouses, and cores-1 ran with 4";
        assert_eq!(said(text, &four), [expected]);
        assert_eq!(said("Load 1,000 rows", &[("rows", 100.0)]).len(), 1);
        assert_eq!(said("ORC, 2 threads", &[("jobs", 1.0)]).len(), 1);
    }

    #[test]
    fn a_number_that_it_has_or_that_is_no_parameter_is_right() {
        let check = |text, parameters: &[(&str, f64)]| {
            assert_eq!(said(text, parameters), Vec::<String>::new(), "{text}");
        };
        check("12 warehouses", &[("warehouses", 12.0)]);
        check("64 pages a call", &[("pages", 24_000.0), ("batch", 64.0)]);
        check("5,000 messages a second", &[("messages", 20_000.0)]);
        check("8 terminals", &[("clients", 8.0)]);
        check("One core", &[("cores", 4.0)]);
        check("2 warehouses", &[]);
    }
}
