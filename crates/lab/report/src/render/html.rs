//! The report as one HTML file.

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use serde::Serialize;

use super::index::Index;
use super::plots::Plots;
use super::view::View;
use super::{json, rich_text};
use crate::error::ReportError;
use crate::model::Report;

/// The name ends in `.html`, which turns escaping on for every expression.
const NAME: &str = "report.html";
const SITE: &str = "site.html";
const HISTORY: &str = "history.html";
/// What our pages are made of; `parts.html` holds what several of them show.
const TEMPLATES: [(&str, &str); 4] = [
    (NAME, include_str!("../templates/report.html")),
    (SITE, include_str!("../templates/site.html")),
    (HISTORY, include_str!("../templates/history.html")),
    ("parts.html", include_str!("../templates/parts.html")),
];
const STYLE: &str = include_str!("../templates/report.css");
/// The plots: our own script, in the order that its parts need.
const SCRIPTS: [&str; 5] = [
    include_str!("../templates/scale.js"),
    include_str!("../templates/chart.js"),
    include_str!("../templates/plots.js"),
    include_str!("../templates/flame.js"),
    include_str!("../templates/main.js"),
];

/// `home` is where the page links back to, when it is one of a site.
pub(super) fn print(report: &Report, home: Option<&str>) -> Result<String, ReportError> {
    let values = context! {
        r => Serde(View::from_report(report)),
        home,
        scripts => Value::from_safe_string(SCRIPTS.join("\n")),
        data => Value::from_safe_string(json::inline(&Plots::from_report(report))?),
    };
    render(NAME, values)
}

/// The first page of a site.
pub(super) fn print_index(index: &Index) -> Result<String, ReportError> {
    let script = include_str!("../templates/site.js");
    render(
        SITE,
        context! { s => Serde(index), scripts => Value::from_safe_string(script.to_owned()) },
    )
}

/// The page of a history, which has no script.
pub(super) fn print_history(page: &impl Serialize) -> Result<String, ReportError> {
    render(HISTORY, context! { h => Serde(page) })
}

/// A quantity that no line break takes apart: it may break after a name in front of it, before a
/// bracket and after a comma, and nowhere inside a number with its unit. The reason behind a colon
/// breaks like any other sentence.
fn whole(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let (mut before, mut is_reason) = (' ', false);
    let mut is_name = !text.starts_with(|first: char| first.is_ascii_digit());
    while let Some(letter) = letters.next() {
        is_reason |= before == ':';
        let may_break = is_name || is_reason || before == ',' || letters.peek() == Some(&'(');
        out.push(if letter == ' ' && !may_break {
            '\u{a0}'
        } else {
            letter
        });
        is_name &= letter != ' ';
        before = letter;
    }
    out
}

/// Renders a template with our style.
fn render(name: &'static str, values: Value) -> Result<String, ReportError> {
    let failed = |source| ReportError::Template { name, source };
    let mut environment = Environment::new();
    // A misspelt field is an error in the tests and not an empty place on a page that readers see.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(super::template_syntax().map_err(failed)?);
    environment.add_filter("rich", |text: String| {
        Value::from_safe_string(rich_text::to_html(&text))
    });
    environment.add_filter("whole", |text: String| whole(&text));
    for (name, source) in TEMPLATES {
        environment.add_template(name, source).map_err(failed)?;
    }
    let style = Value::from_safe_string(STYLE.to_owned());
    let values = context! { style, ..values };
    environment
        .get_template(name)
        .and_then(|template| template.render(values))
        .map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_unit_and_its_interval_together() {
        let shown = whole("9.61 M rows/s (n = 1, not judged)").replace('\u{a0}', "_");
        assert_eq!(shown, "9.61_M_rows/s (n_=_1, not_judged)");
        let shown = whole("161 k (not judged: it scatters)").replace('\u{a0}', "_");
        assert_eq!(shown, "161_k (not_judged: it scatters)");
        let shown = whole("redis-always 64.4 k req/s (not steady)").replace('\u{a0}', "_");
        assert_eq!(shown, "redis-always 64.4_k_req/s (not_steady)");
    }
}
