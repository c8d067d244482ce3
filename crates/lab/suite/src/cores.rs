//! Parameters that follow the machine: `cores`, `cores/2`, `cores/4` and `1..cores` in the sizes of
//! a suite.

use toml::Value;

use crate::definition::Definition;

/// Begins a text that stands for a sweep from one up to a number of cores.
const FROM_ONE: &str = "1..";

/// The number that a text stands for: all of the machine's cores; half of them, for workloads that
/// have as many clients as servers and spin on both sides; or a quarter, for two servers beside
/// their clients.
fn number_of(text: &str, cores: i64) -> Option<i64> {
    match text {
        "cores" => Some(cores),
        "cores/2" => Some((cores / 2).max(1)),
        "cores/4" => Some((cores / 4).max(1)),
        _ => None,
    }
}

impl Definition {
    /// Fills in every parameter that follows the number of cores, in all sizes. Without this call
    /// such a parameter stays a text, which no sweep accepts.
    #[must_use]
    pub fn on_cores(mut self, cores: usize) -> Definition {
        let cores = i64::try_from(cores.max(1)).unwrap_or(i64::MAX);
        self.cores = Some(cores);
        let sizes = &mut self.body.sizes;
        for size in [&mut sizes.tiny, &mut sizes.quick, &mut sizes.full] {
            for value in size.params.values_mut() {
                *value = filled_in(value, cores);
            }
        }
        self
    }
}

/// The value with `cores` replaced by a number and `1..cores` by a list. A list loses the values
/// that it has twice then, because two cases of one name could not be told apart.
pub(crate) fn filled_in(value: &Value, cores: i64) -> Value {
    match value {
        Value::String(text) => {
            let most = text.strip_prefix(FROM_ONE);
            match number_of(most.unwrap_or(text), cores) {
                None => value.clone(),
                Some(number) if most.is_none() => Value::Integer(number),
                Some(most) => {
                    let doubled = std::iter::successors(Some(1i64), |n| n.checked_mul(2));
                    let below = doubled.take_while(|n| *n < most);
                    Value::Array(below.chain([most]).map(Value::Integer).collect())
                }
            }
        }
        Value::Array(items) if items.iter().any(Value::is_str) => {
            let mut there: Vec<Value> = Vec::new();
            for item in items.iter().map(|item| filled_in(item, cores)) {
                if !there.contains(&item) {
                    there.push(item);
                }
            }
            there.sort_by_key(toml::Value::as_integer);
            Value::Array(there)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, cores: i64, expected: &str) {
        let parsed = |text: &str| -> Value {
            let table: toml::Table = format!("v = {text}").parse().expect("TOML");
            table["v"].clone()
        };
        assert_eq!(filled_in(&parsed(text), cores), parsed(expected), "{text}");
    }

    #[test]
    fn a_sweep_doubles_up_to_the_cores_and_ends_with_all_of_them() {
        check("\"1..cores\"", 1, "[1]");
        check("\"1..cores\"", 2, "[1, 2]");
        check("\"1..cores\"", 12, "[1, 2, 4, 8, 12]");
        check("\"1..cores\"", 16, "[1, 2, 4, 8, 16]");
    }

    #[test]
    fn cores_stand_for_their_number_once() {
        check("\"cores\"", 24, "24");
        check("[1, 2, \"cores\"]", 24, "[1, 2, 24]");
        check("[1, 2, \"cores\"]", 2, "[1, 2]");
        check("[1, 2, \"cores\"]", 1, "[1, 2]");
        check("\"cores/2\"", 1, "1");
        check("\"1..cores/2\"", 20, "[1, 2, 4, 8, 10]");
        check("\"cores/4\"", 24, "6");
        check("\"1..cores/4\"", 2, "[1]");
        check("\"1..cores/4\"", 24, "[1, 2, 4, 6]");
        check("\"all cores\"", 24, "\"all cores\"");
        check("[4, 1]", 24, "[4, 1]");
    }
}
