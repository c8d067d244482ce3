//! The report as Markdown: the answer, then as much of the rest as fits.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};

use super::view::{TableView, View};
use crate::error::ReportError;
use crate::model::Report;

const NAME: &str = "report.md";
const TEMPLATE: &str = include_str!("../templates/report.md");

/// A page that is longer is not read. The template bounds each of its lists, and tables are left
/// out until the page fits; the HTML and the JSON have everything.
pub(super) const LINES_MAX: usize = 250;

pub(super) fn print(report: &Report) -> Result<String, ReportError> {
    let failed = |source| ReportError::Template { name: NAME, source };
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Escaping for HTML would put entities into plain text, so each expression that holds text of a
    // record passes through `cell` or `line` instead.
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_syntax(super::template_syntax().map_err(failed)?);
    environment.add_filter("cell", |text: String| markdown_cell(&text));
    environment.add_filter("line", |text: String| one_line(&text));
    environment.add_template(NAME, TEMPLATE).map_err(failed)?;
    let mut view = View::from_report(report);
    let all = std::mem::take(&mut view.tables);
    let page = |tables: &[TableView], left_out: &[&str]| {
        let values = context! {
            r => Serde(&view),
            tables => Serde(tables),
            left_out => Serde(left_out),
        };
        let template = environment.get_template(NAME);
        template.and_then(|template| template.render(values))
    };
    // The titles take a line whether there are any or not, so that the sum is right in both cases.
    let shortest = page(&[], &["one"]).map_err(failed)?;
    let (tables, left_out) = fitting(all, LINES_MAX.saturating_sub(shortest.lines().count()));
    let titles: Vec<&str> = left_out.iter().map(|table| table.title()).collect();
    page(&tables, &titles).map_err(failed)
}

/// The tables that fit into `room` lines, guides first, and those that do not.
fn fitting(tables: Vec<TableView>, mut room: usize) -> (Vec<TableView>, Vec<TableView>) {
    let (guides, others): (Vec<_>, Vec<_>) = tables.into_iter().partition(|table| table.guide);
    guides.into_iter().chain(others).partition(|table| {
        let fits = table.markdown_lines() <= room;
        room -= if fits { table.markdown_lines() } else { 0 };
        fits
    })
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

/// Markdown of a suite in one line, without the power to bring HTML along.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('<', "&lt;")
}
