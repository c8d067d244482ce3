//! `${size.rows}`, `${size.rows.last}`, `${axis}`, `${axis.label}`, `${data.NAME}` and counted
//! nouns such as `${axis:worker}` or `${size.rows:row}` in a suite's values.
//!
//! That is the whole language: no arithmetic, no conditions. A string that is one reference and
//! nothing else takes the type of what it refers to. References nest
//! (`${data.rows-${axis.label}}`), and `${data...}` stays as it is until an invocation knows where
//! the data lies, so that a record holds no path of one machine.

use toml::Value;

use crate::definition::SizeParams;
use crate::sweep::{AxisPoint, label};

/// What references may refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The parameters of the chosen size.
    pub(crate) size: &'a SizeParams,
    /// The point of a sweep, inside one.
    pub(crate) axis: Option<&'a AxisPoint>,
}

// Stand in for the braces of a reference that is kept, so that the search does not find it again.
const KEPT_OPEN: char = '\u{1}';
const KEPT_CLOSE: char = '\u{2}';

impl Scope<'_> {
    /// Replaces every reference in a value and all below it. The reason names the reference.
    pub(crate) fn apply(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => self.apply_text(text)?,
            Value::Array(items) => Value::Array(
                items
                    .iter()
                    .map(|item| self.apply(item))
                    .collect::<Result<_, _>>()?,
            ),
            Value::Table(table) => Value::Table(
                table
                    .iter()
                    .map(|(key, item)| Ok((key.clone(), self.apply(item)?)))
                    .collect::<Result<_, String>>()?,
            ),
            other => other.clone(),
        })
    }

    /// Replaces references in a text and keeps it a text.
    pub(crate) fn text(&self, text: &str) -> Result<String, String> {
        Ok(match self.apply_text(text)? {
            Value::String(text) => text,
            other => other.to_string(),
        })
    }

    fn apply_text(&self, text: &str) -> Result<Value, String> {
        if let Some(key) = whole_reference(text)
            && !key.starts_with("data.")
        {
            return self.resolve(key);
        }
        let mut text = text.to_string();
        // The first closing brace ends the innermost reference, whose value then stands inside the
        // outer one: `${data.rows-${axis.label}}` is resolved from the inside out.
        while let Some(close) = text.find('}') {
            let Some(open) = text[..close].rfind("${") else {
                return Err(format!("`{}` closes nothing", &text[..=close]));
            };
            let key = &text[open + 2..close];
            let replacement = if key.starts_with("data.") {
                format!("{KEPT_OPEN}{key}{KEPT_CLOSE}")
            } else {
                match self.resolve(key)? {
                    Value::String(s) => s,
                    Value::Integer(n) => n.to_string(),
                    Value::Float(x) => x.to_string(),
                    other => {
                        return Err(format!(
                            "`${{{key}}}` is neither text nor a number: {other}"
                        ));
                    }
                }
            };
            text.replace_range(open..=close, &replacement);
        }
        if let Some(open) = text.find("${") {
            return Err(format!("`{}` is never closed", &text[open..]));
        }
        Ok(Value::String(
            text.replace(KEPT_OPEN, "${").replace(KEPT_CLOSE, "}"),
        ))
    }

    fn resolve(&self, key: &str) -> Result<Value, String> {
        if let Some((of, one)) = key.split_once(':') {
            let many = number(&format!("`${{{key}}}`"), &self.resolve(of)?)?;
            return Ok(Value::String(counted(many, one)));
        }
        if let Some(name) = key.strip_prefix("size.") {
            return self.of_size(key, name);
        }
        match (key, self.axis) {
            ("axis", Some(point)) => Ok(toml_number(point.value)),
            ("axis.label", Some(point)) => Ok(Value::String(point.label.clone())),
            ("axis" | "axis.label", None) => Err(format!("`${{{key}}}` stands outside a sweep")),
            _ => Err(format!(
                "`${{{key}}}` refers to nothing; there are size.NAME, size.NAME.last, axis, \
                 axis.label, data.NAME, and size.NAME:NOUN and axis:NOUN, which count"
            )),
        }
    }

    /// A parameter of the size, or the last value of one that is a list.
    fn of_size(&self, key: &str, name: &str) -> Result<Value, String> {
        let (list, as_label) = match name.strip_suffix(".last.label") {
            Some(list) => (Some(list), true),
            None => (name.strip_suffix(".last"), false),
        };
        let name = list.unwrap_or(name);
        let value = self.size.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.size.keys().map(String::as_str).collect();
            let known = known.join(", ");
            format!("`${{{key}}}`: the size has no `{name}`, only {known}")
        })?;
        if list.is_none() {
            return Ok(value.clone());
        }
        let last = value.as_array().and_then(|values| values.last());
        let last = last.ok_or_else(|| format!("`${{{key}}}`: `{name}` is not a list"))?;
        if as_label {
            Ok(Value::String(label(number(name, last)?)))
        } else {
            Ok(last.clone())
        }
    }
}

/// A number and what is counted: `1 worker`, `2 workers`, `20,000 pages`.
fn counted(number: f64, one: &str) -> String {
    let plural = if number == 1.0 { "" } else { "s" };
    let mut text = number.to_string();
    let digits = text.find('.').unwrap_or(text.len());
    // From the right, so that a comma does not move the places of those to its left.
    for at in (1..digits)
        .rev()
        .filter(|at| (digits - at).is_multiple_of(3))
    {
        text.insert(at, ',');
    }
    format!("{text} {one}{plural}")
}

/// The key of a text that is one reference and nothing else.
fn whole_reference(text: &str) -> Option<&str> {
    let key = text.strip_prefix("${")?.strip_suffix('}')?;
    (!key.contains(['$', '{', '}'])).then_some(key)
}

/// Whole numbers stay integers, so that a child can read them as counts.
fn toml_number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        Value::Integer(value as i64)
    } else {
        Value::Float(value)
    }
}

/// A finite number, whole or not.
pub(crate) fn number(what: &str, value: &Value) -> Result<f64, String> {
    match value {
        Value::Integer(n) => Ok(*n as f64),
        Value::Float(x) if x.is_finite() => Ok(*x),
        other => Err(format!("{what} is not a number: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<Value, &str>) {
        let size: SizeParams = [
            ("rows".to_string(), Value::Integer(20_000)),
            ("kind".to_string(), Value::String("gz".into())),
            (
                "steps".to_string(),
                Value::Array(vec![Value::Integer(1), Value::Integer(4000)]),
            ),
        ]
        .into();
        let point = AxisPoint {
            name: "rows".into(),
            value: 1e6,
            label: "1e6".into(),
        };
        let scope = Scope {
            size: &size,
            axis: Some(&point),
        };
        match (scope.apply(&Value::String(text.into())), expected) {
            (Ok(got), Ok(want)) => assert_eq!(got, want, "{text}"),
            (Err(got), Err(want)) => assert!(got.contains(want), "{text}: {got}"),
            (got, want) => panic!("{text}: {got:?} against {want:?}"),
        }
    }

    #[test]
    fn references() {
        check("${size.rows}", Ok(Value::Integer(20_000)));
        check("${axis}", Ok(Value::Integer(1_000_000)));
        check("a-${size.kind}-${size.rows}", Ok("a-gz-20000".into()));
        check("${data.x}/*.gz", Ok("${data.x}/*.gz".into()));
        check("${data.x}", Ok("${data.x}".into()));
        check(
            "${data.rows-${axis.label}}/*",
            Ok("${data.rows-1e6}/*".into()),
        );
        check("plain", Ok("plain".into()));
        check("${size.steps.last}", Ok(Value::Integer(4000)));
        check("load-${size.steps.last.label}", Ok("load-4e3".into()));
        check("${axis:worker}", Ok("1,000,000 workers".into()));
        check("${size.rows:row}", Ok("20,000 rows".into()));
        check("${size.steps.last:step}", Ok("4,000 steps".into()));
        check(
            "${size.kind:row}",
            Err("`${size.kind:row}` is not a number"),
        );
        check("${size.rows.last}", Err("`rows` is not a list"));
        check("${size.nothing}", Err("only kind, rows"));
        check("${sise.rows}", Err("refers to nothing"));
        check("x ${size.rows", Err("never closed"));
        check("x }", Err("closes nothing"));
    }
}
