//! A case's parameters, read with their types.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::RigError;

/// The parameters of a request. Each must be read, so that a misspelt name is an error instead of a
/// measurement with the default.
#[derive(Debug)]
pub struct Params<'a> {
    values: &'a BTreeMap<String, Value>,
    taken: Vec<&'static str>,
}

impl<'a> Params<'a> {
    /// Wraps the values of a request; none of them counts as read yet.
    pub fn new(values: &'a BTreeMap<String, Value>) -> Params<'a> {
        Params {
            values,
            taken: Vec::new(),
        }
    }

    /// A count that must be there.
    ///
    /// # Errors
    /// When it is missing or no count.
    pub fn count(&mut self, name: &'static str) -> Result<u64, RigError> {
        self.take(name)?
            .as_u64()
            .ok_or_else(|| wrong(name, "is not a count"))
    }

    /// A count, or `otherwise` if it is absent.
    ///
    /// # Errors
    /// When it is there and no count.
    pub fn count_or(&mut self, name: &'static str, otherwise: u64) -> Result<u64, RigError> {
        if self.values.contains_key(name) {
            self.count(name)
        } else {
            self.taken.push(name);
            Ok(otherwise)
        }
    }

    /// A count that must be there, or `all`, which returns `None`.
    ///
    /// # Errors
    /// When it is missing, another text, or no count.
    pub fn count_or_all(&mut self, name: &'static str) -> Result<Option<u64>, RigError> {
        let value = self.take(name)?;
        match (value.as_u64(), value.as_str()) {
            (Some(count), _) => Ok(Some(count)),
            (None, Some("all")) => Ok(None),
            _ => Err(wrong(name, "is neither `all` nor a count")),
        }
    }

    /// A number that must be there, whole or not.
    ///
    /// # Errors
    /// When it is missing or no number.
    pub fn number(&mut self, name: &'static str) -> Result<f64, RigError> {
        self.take(name)?
            .as_f64()
            .ok_or_else(|| wrong(name, "is not a number"))
    }

    /// A number, or `None` if it is absent.
    ///
    /// # Errors
    /// When it is there and is not a number.
    pub fn number_or_none(&mut self, name: &'static str) -> Result<Option<f64>, RigError> {
        if self.values.contains_key(name) {
            self.number(name).map(Some)
        } else {
            self.taken.push(name);
            Ok(None)
        }
    }

    /// A time in seconds that must be there, clamped to 0.01 to 36,000.
    ///
    /// # Errors
    /// When it is missing or no number.
    pub fn seconds(&mut self, name: &'static str) -> Result<Duration, RigError> {
        self.number(name).map(bounded)
    }

    /// A time in seconds, clamped like that of `seconds`, or `None` if it is absent.
    ///
    /// # Errors
    /// When it is there and is not a number.
    pub fn seconds_or_none(&mut self, name: &'static str) -> Result<Option<Duration>, RigError> {
        Ok(self.number_or_none(name)?.map(bounded))
    }

    /// Accepts a parameter that other systems need and this one does not.
    pub fn ignore(&mut self, name: &'static str) {
        self.taken.push(name);
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// When it is missing or no text.
    pub fn text(&mut self, name: &'static str) -> Result<&'a str, RigError> {
        self.take(name)?
            .as_str()
            .ok_or_else(|| wrong(name, "is not text"))
    }

    /// A text, or `None` if it is absent.
    ///
    /// # Errors
    /// When it is there and no text.
    pub fn text_or_none(&mut self, name: &'static str) -> Result<Option<&'a str>, RigError> {
        if self.values.contains_key(name) {
            self.text(name).map(Some)
        } else {
            self.taken.push(name);
            Ok(None)
        }
    }

    /// A list of paths that must be there.
    ///
    /// # Errors
    /// When it is missing or no list of texts.
    pub fn paths(&mut self, name: &'static str) -> Result<Vec<PathBuf>, RigError> {
        let list = self.take(name)?.as_array();
        list.and_then(|items| {
            items
                .iter()
                .map(|item| item.as_str().map(PathBuf::from))
                .collect()
        })
        .ok_or_else(|| wrong(name, "is not a list of paths"))
    }

    /// A list of texts that must be there, or `all`, which returns `None`.
    ///
    /// # Errors
    /// When it is missing, another text, or no list of texts.
    pub fn names_or_all(&mut self, name: &'static str) -> Result<Option<Vec<&'a str>>, RigError> {
        let value = self.take(name)?;
        if value.as_str() == Some("all") {
            return Ok(None);
        }
        let names = value
            .as_array()
            .and_then(|items| items.iter().map(Value::as_str).collect());
        match names {
            Some(names) => Ok(Some(names)),
            None => Err(wrong(name, "is neither `all` nor a list of names")),
        }
    }

    /// An error about a parameter whose value makes no sense.
    pub fn wrong(&self, name: &str, reason: String) -> RigError {
        wrong(name, &reason)
    }

    /// Checks that every parameter was read.
    ///
    /// # Errors
    /// Naming the first parameter that the workload does not know.
    pub fn finish(self) -> Result<(), RigError> {
        match self
            .values
            .keys()
            .find(|key| !self.taken.contains(&key.as_str()))
        {
            None => Ok(()),
            Some(name) => Err(wrong(
                name,
                &format!("is not known; there are: {}", self.taken.join(", ")),
            )),
        }
    }

    fn take(&mut self, name: &'static str) -> Result<&'a Value, RigError> {
        self.taken.push(name);
        self.values
            .get(name)
            .ok_or_else(|| wrong(name, "is missing"))
    }
}

/// Clamps the time of a load. A shorter one, such as 0, has no rate; one over ten hours would not
/// end.
fn bounded(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.01, 36_000.0))
}

fn wrong(name: &str, reason: &str) -> RigError {
    RigError::Param {
        name: name.to_string(),
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_typed_and_none_is_left_over() {
        let values: BTreeMap<String, Value> = [
            ("rows".to_string(), Value::from(5)),
            ("files".to_string(), serde_json::json!(["a", "b"])),
            ("sorce".to_string(), Value::from("gz")),
        ]
        .into();
        let mut params = Params::new(&values);
        assert_eq!(params.count("rows").expect("there"), 5);
        assert_eq!(params.count_or("rows", 7).expect("there"), 5);
        assert_eq!(params.count_or("columns", 7).expect("not said"), 7);
        assert_eq!(params.text_or_none("name").expect("not said"), None);
        assert!(params.text_or_none("rows").is_err());
        assert_eq!(params.paths("files").expect("there").len(), 2);
        let e = params.text("source").expect_err("misspelt").to_string();
        assert_eq!(e, "parameter `source`: is missing");
        let e = params.finish().expect_err("left over").to_string();
        assert!(e.starts_with("parameter `sorce`: is not known"), "{e}");
    }

    #[test]
    fn a_time_is_neither_too_short_for_a_rate_nor_without_end() {
        let values: BTreeMap<String, Value> = [
            ("short".to_string(), Value::from(0)),
            ("long".to_string(), Value::from(1e300)),
            ("some".to_string(), Value::from(1.5)),
            ("text".to_string(), Value::from("5")),
        ]
        .into();
        let mut params = Params::new(&values);
        let mut seconds = |name| params.seconds(name).map(|time| time.as_secs_f64()).ok();
        assert_eq!(seconds("short"), Some(0.01));
        assert_eq!(seconds("long"), Some(36_000.0));
        assert_eq!(seconds("some"), Some(1.5));
        assert_eq!(seconds("text"), None);
        assert_eq!(params.seconds_or_none("other").expect("not said"), None);
        assert!(params.seconds_or_none("some").expect("said").is_some());
    }
}
