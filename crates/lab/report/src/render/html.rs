//! The report as one HTML file.

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::plots::Plots;
use super::view::View;
use super::{json, rich_text};
use crate::error::ReportError;
use crate::model::Report;

/// The name ends in `.html`, which turns escaping on for every expression.
const NAME: &str = "report.html";
const TEMPLATE: &str = include_str!("../templates/report.html");
const STYLE: &str = include_str!("../templates/report.css");
/// The plots: our own script, in the order that its parts need.
const SCRIPTS: [&str; 4] = [
    include_str!("../templates/scale.js"),
    include_str!("../templates/chart.js"),
    include_str!("../templates/plots.js"),
    include_str!("../templates/main.js"),
];

pub(super) fn print(report: &Report) -> Result<String, ReportError> {
    let failed = |source| ReportError::Template { name: NAME, source };
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(super::template_syntax().map_err(failed)?);
    environment.add_filter("rich", |text: String| {
        Value::from_safe_string(rich_text::to_html(&text))
    });
    environment.add_template(NAME, TEMPLATE).map_err(failed)?;
    let values = context! {
        r => Serde(View::of(report)),
        style => Value::from_safe_string(STYLE.to_owned()),
        scripts => Value::from_safe_string(SCRIPTS.join("\n")),
        data => Value::from_safe_string(json::inline(&Plots::of(report))?),
    };
    environment
        .get_template(NAME)
        .and_then(|template| template.render(values))
        .map_err(failed)
}
