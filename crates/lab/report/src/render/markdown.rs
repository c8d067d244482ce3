//! The report as Markdown.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use super::view::View;
use crate::error::ReportError;
use crate::model::Report;

const NAME: &str = "report.md";
const TEMPLATE: &str = include_str!("../templates/report.md");

pub(super) fn print(report: &Report) -> Result<String, ReportError> {
    let failed = |source| ReportError::Template { name: NAME, source };
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_syntax(super::template_syntax().map_err(failed)?);
    environment.add_filter("cell", |text: String| markdown_cell(&text));
    environment.add_filter("prose", |text: String| prose(&text));
    environment.add_template(NAME, TEMPLATE).map_err(failed)?;
    environment
        .get_template(NAME)
        .and_then(|template| template.render(Serde(View::of(report))))
        .map_err(failed)
}

/// Text for a table cell or a line: one line, with nothing that Markdown or HTML would act on.
pub(crate) fn markdown_cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '`' | '*' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// Markdown of a suite, passed through without the power to bring HTML along.
fn prose(text: &str) -> String {
    text.trim().replace('<', "&lt;")
}
