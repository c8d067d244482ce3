//! `GET /spots`: the spots of WSPR that pass the usual filters, the newest first.

use std::sync::Arc;

use datafusion::common::{ParamValues, ScalarValue};
use datafusion::sql::sqlparser::ast::Statement;

use super::answer::Answer;
use super::forms::Form;
use super::request::Request;
use crate::serve::engine::{Engine, Question};
use crate::serve::reads;
use crate::serve::refusal::{Kind, Refusal};

/// Rows of an answer when the request does not say how many.
const ROWS: usize = 100;
/// What an answer has of each spot.
const COLUMNS: &str = "timestamp, callsign, grid, reporter, reporter_grid, band, frequency, snr, \
                       power, drift, distance, azimuth";
/// The names of bands, by wavelength, with their codes in the table.
pub(super) const BANDS: [(&str, i32); 23] = [
    ("2200m", 100),
    ("630m", 101),
    ("160m", 102),
    ("80m", 103),
    ("60m", 104),
    ("40m", 105),
    ("30m", 106),
    ("20m", 107),
    ("17m", 108),
    ("15m", 109),
    ("12m", 110),
    ("10m", 111),
    ("6m", 200),
    ("4m", 201),
    ("2m", 202),
    ("1.25m", 203),
    ("70cm", 300),
    ("33cm", 301),
    ("23cm", 302),
    ("13cm", 303),
    ("9cm", 400),
    ("6cm", 401),
    ("3cm", 402),
];

/// The filters of a request as SQL. Values are parameters of the statement and never part of its
/// text, so that no value can change what is asked.
pub(super) struct Filters {
    conditions: Vec<String>,
    values: Vec<ScalarValue>,
}

impl Filters {
    pub(super) fn new() -> Self {
        Self {
            conditions: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds a condition, in which `?` stands for the value, as often as it comes.
    pub(super) fn add(&mut self, condition: &str, value: impl Into<ScalarValue>) {
        self.values.push(value.into());
        let number = format!("${}", self.values.len());
        self.conditions.push(condition.replace('?', &number));
    }

    /// The statement with these filters, and the values of its parameters.
    pub(super) fn statement(
        self,
        select: &str,
        rest: &str,
    ) -> Result<(Statement, ParamValues), Refusal> {
        let mut sql = select.to_owned();
        for (index, condition) in self.conditions.iter().enumerate() {
            sql.push_str(if index == 0 { " WHERE " } else { " AND " });
            sql.push_str(condition);
        }
        sql.push(' ');
        sql.push_str(rest);
        let values: Vec<ScalarValue> = self.values;
        Ok((reads::one(&sql)?, ParamValues::from(values)))
    }
}

pub(super) async fn answer(engine: &Arc<Engine>, request: &Request) -> Answer {
    match asked(request, engine.row_limit()) {
        Ok((form, question)) => Answer::rows(engine, question, form).await,
        Err(refusal) => Answer::refused(&refusal),
    }
}

fn asked(request: &Request, most: usize) -> Result<(Form, Question), Refusal> {
    const KNOWN: [&str; 10] = [
        "band", "call", "reporter", "callsign", "grid", "from", "to", "limit", "format", "snr",
    ];
    // A filter that is misspelt would otherwise be answered as if it were not there.
    if let Some(name) = request
        .parameters
        .keys()
        .find(|name| !KNOWN.contains(&name.as_str()))
    {
        return Err(wrong(format!(
            "no parameter {name:?}: there are {}",
            KNOWN.join(", ")
        )));
    }
    let form = Form::from_request(request)?;
    let filters = filters(request)?;
    let limit = match request.parameter("limit") {
        None => ROWS.min(most),
        Some(text) => match text.parse() {
            Ok(limit) if limit <= most => limit,
            _ => {
                return Err(wrong(format!(
                    "limit={text}: a number up to {most} is needed"
                )));
            }
        },
    };
    let select = format!("SELECT {COLUMNS} FROM spots");
    let rest = format!("ORDER BY timestamp DESC LIMIT {limit}");
    let (statement, values) = filters.statement(&select, &rest)?;
    let mut question = Question::from_statement(statement);
    question.parameters = Some(values);
    Ok((form, question))
}

fn filters(request: &Request) -> Result<Filters, Refusal> {
    let mut filters = Filters::new();
    if let Some(text) = request.parameter("band") {
        filters.add("band = ?", band(text)?);
    }
    let calls = [
        ("call", "(callsign = ? OR reporter = ?)"),
        ("callsign", "callsign = ?"),
        ("reporter", "reporter = ?"),
    ];
    for (name, condition) in calls {
        if let Some(call) = request.parameter(name) {
            filters.add(condition, call.to_uppercase());
        }
    }
    if let Some(grid) = request.parameter("grid") {
        // The larger square stands first in a locator, so its beginning is a filter by area.
        filters.add(
            "(starts_with(upper(grid), ?) OR starts_with(upper(reporter_grid), ?))",
            grid.to_uppercase(),
        );
    }
    if let Some(snr) = request.parameter("snr") {
        let least: i16 = snr
            .parse()
            .map_err(|_| wrong(format!("snr={snr}: a number of dB is needed")))?;
        filters.add("snr >= ?", least);
    }
    for (name, condition) in [("from", "timestamp >= ?"), ("to", "timestamp < ?")] {
        if let Some(text) = request.parameter(name) {
            filters.add(condition, moment(name, text)?);
        }
    }
    Ok(filters)
}

/// The code of a band, by its wavelength or by the code itself.
fn band(text: &str) -> Result<i32, Refusal> {
    let named = BANDS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    if let Some((_, code)) = named {
        return Ok(*code);
    }
    text.parse().map_err(|_| {
        let names: Vec<&str> = BANDS.iter().map(|(name, _)| *name).collect();
        wrong(format!("no band {text:?}: there are {}", names.join(", ")))
    })
}

/// A time, as seconds since 1970 or as the text of a timestamp in UTC.
fn moment(name: &str, text: &str) -> Result<ScalarValue, Refusal> {
    let utc = Some("UTC".into());
    if let Ok(seconds) = text.parse::<i64>() {
        let ms = seconds
            .checked_mul(1000)
            .ok_or_else(|| wrong(format!("{name}={text}: it is not a time")))?;
        return Ok(ScalarValue::TimestampMillisecond(Some(ms), utc));
    }
    let kind = datafusion::arrow::datatypes::DataType::Timestamp(
        datafusion::arrow::datatypes::TimeUnit::Millisecond,
        utc,
    );
    ScalarValue::try_from_string(text.to_owned(), &kind).map_err(|_| {
        wrong(format!(
            "{name}={text}: write a time as 2026-11-26T03:00:00Z, or in seconds since 1970"
        ))
    })
}

fn wrong(message: String) -> Refusal {
    Refusal::new(Kind::Value, message)
}

#[cfg(test)]
mod tests {
    use dyno_ingest::contract::bands;

    use super::*;

    fn ask(query: &str) -> Result<String, String> {
        let head = format!("GET /spots?{query} HTTP/1.1\r\n\r\n");
        let request = Request::parse(head.as_bytes()).unwrap();
        let asked = asked(&request, 1000);
        asked
            .map(|(_, question)| question.statement.to_string())
            .map_err(|refusal| refusal.message)
    }

    #[test]
    fn filters_become_conditions_and_values_parameters() {
        let sql = ask("band=20m&call=dk1ug&from=1700000000&to=2023-11-15&limit=5").unwrap();
        assert!(sql.contains("band = $1"), "{sql}");
        assert!(sql.contains("callsign = $2 OR reporter = $2"), "{sql}");
        assert!(sql.contains("timestamp >= $3"), "{sql}");
        assert!(sql.contains("timestamp < $4"), "{sql}");
        assert!(sql.ends_with("LIMIT 5"), "{sql}");
        let sql = ask("callsign=x'%20OR%20'1'='1").unwrap();
        assert!(!sql.contains("'1'"), "{sql}");
    }

    #[test]
    fn a_wrong_filter_is_named() {
        for (query, said) in [
            ("band=19m", "no band"),
            ("from=yesterday", "write a time"),
            ("limit=5000", "up to 1000"),
            ("limit=-1", "up to 1000"),
            ("bnad=20m", "no parameter \"bnad\""),
            ("format=xml", "json, csv"),
        ] {
            let message = ask(query).unwrap_err();
            assert!(message.contains(said), "{query}: {message}");
        }
    }

    #[test]
    fn the_bands_are_those_of_the_table() {
        let codes: Vec<i32> = bands().iter().map(|(.., code)| *code).collect();
        assert_eq!(codes, BANDS.map(|(_, code)| code));
    }
}
