//! Parameters of a size, set from outside: `--set sf=10`.

use std::collections::BTreeMap;

use toml::Value;

use crate::Error;
use crate::cores::filled_in;
use crate::definition::{Definition, SizeParams};

impl Definition {
    /// Sets parameters in every size, and those that the suite says go with them. `settings` are
    /// names and values as they were written.
    ///
    /// # Errors
    /// [`Error::Unknown`] when the suite has no such parameter; [`Error::Definition`] when the
    /// value has another type, and when other parameters depend on it and neither the suite nor
    /// `settings` gives them.
    pub fn set(&mut self, settings: &BTreeMap<String, String>) -> Result<(), Error> {
        for (name, text) in settings {
            let follow = self.following(name, text, settings)?;
            for size in [0, 1, 2] {
                let old = self.size_number(size).get(name).cloned();
                let old = old.ok_or_else(|| self.no_parameter(name))?;
                let value = typed(text, &old, self.cores)
                    .map_err(|reason| self.error(format!("--set {name}={text}: {reason}")))?;
                let params = self.size_number_mut(size);
                params.insert(name.clone(), value);
                // A parameter that the user sets as well keeps the user's value, whichever of the
                // two is set first.
                for (key, value) in &follow {
                    if !settings.contains_key(key) {
                        params.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        self.set.extend(settings.clone());
        Ok(())
    }

    /// A parameter must be there in every size, so that a suite can be set before its size is
    /// chosen.
    fn no_parameter(&self, name: &str) -> Error {
        let in_all = |key: &&String| (0..3).all(|size| self.size_number(size).contains_key(*key));
        let known: Vec<&str> = self
            .size_number(0)
            .keys()
            .filter(in_all)
            .map(String::as_str)
            .collect();
        Error::unknown("parameter of the suite", name, &known)
    }

    fn following(
        &self,
        name: &str,
        text: &str,
        settings: &BTreeMap<String, String>,
    ) -> Result<SizeParams, Error> {
        let Some(known) = self.body.given.get(name) else {
            return Ok(SizeParams::new());
        };
        if let Some(follow) = known.get(text) {
            return Ok(follow.clone());
        }
        let keys = known.values().flat_map(SizeParams::keys);
        match keys.into_iter().find(|key| !settings.contains_key(*key)) {
            None => Ok(SizeParams::new()),
            Some(key) => {
                let values: Vec<&str> = known.keys().map(String::as_str).collect();
                Err(self.error(format!(
                    "--set {name}={text}: the suite knows what follows from {name} of {}; for \
                     another, --set {key}=... must say it",
                    values.join(", ")
                )))
            }
        }
    }

    fn size_number(&self, number: usize) -> &SizeParams {
        let sizes = &self.body.sizes;
        &[&sizes.tiny, &sizes.quick, &sizes.full][number].params
    }

    fn size_number_mut(&mut self, number: usize) -> &mut SizeParams {
        let sizes = &mut self.body.sizes;
        let size = match number {
            0 => &mut sizes.tiny,
            1 => &mut sizes.quick,
            _ => &mut sizes.full,
        };
        &mut size.params
    }
}

/// The text as a value of the type that stands there. A list is written with commas, and takes a
/// single value as well.
fn typed(text: &str, old: &Value, cores: Option<i64>) -> Result<Value, String> {
    // What the suite's file may say of the machine's cores may be said here too.
    let of_cores = Value::String(text.to_string());
    let of_cores = cores.map(|cores| filled_in(&of_cores, cores));
    match (old, of_cores) {
        (Value::Integer(_), Some(all @ Value::Integer(_)))
        | (Value::Array(_), Some(all @ Value::Array(_))) => Ok(all),
        (Value::String(_), _) => Ok(Value::String(text.to_string())),
        (Value::Integer(_) | Value::Float(_), _) => number(text),
        (Value::Array(_), _) => {
            let mut values = Vec::new();
            for item in text.split(',') {
                let item = item.trim();
                let value = typed(item, &Value::Integer(0), cores)?;
                // `1,2,cores` is right on every machine, also where the cores are two.
                let is_written_out = item.parse::<i64>().is_ok();
                if !values.contains(&value) {
                    values.push(value);
                } else if is_written_out {
                    return Err(format!("it has {item} twice"));
                }
            }
            // The last value of a list is its largest wherever a suite refers to it.
            values.sort_by(|a, b| numeric(a).total_cmp(&numeric(b)));
            Ok(Value::Array(values))
        }
        (other, _) => Err(format!("it is a {}, which cannot be set", other.type_str())),
    }
}

fn numeric(value: &Value) -> f64 {
    let whole = value.as_integer().map(|whole| whole as f64);
    whole.or(value.as_float()).unwrap_or(f64::NAN)
}

fn number(text: &str) -> Result<Value, String> {
    match text.replace('_', "").parse::<f64>() {
        Ok(x) if x.fract() == 0.0 && x.abs() < 9e15 => Ok(Value::Integer(x as i64)),
        Ok(x) if x.is_finite() => Ok(Value::Float(x)),
        _ => Err(format!("{text:?} is not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::Size;

    const SUITE: &str = r#"
title = "T"
purpose = "P"
order_seed = 7
[sizes.tiny]
sf = 0.01
rows = 86805
points = [1]
budget_s = 10
[sizes.quick]
sf = 1
rows = 8661245
points = [1]
budget_s = 10
[sizes.full]
sf = 1
rows = 8661245
points = [1]
budget_s = 10
[given.sf.10]
rows = 86586082
[[case]]
name = "write"
title = "Write"
workload = "fake"
params = { sf = "${size.sf}", mode = "fast" }
variants = { slow = { mode = "slow" } }
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = 3
time_limit_s = 5
expected_count = "${size.rows}"
analysis = "A"
estimate = { units_per_s = { other = 1e6 } }
"#;

    fn set(settings: &[(&str, &str)]) -> Result<Definition, Error> {
        let mut suite = Definition::parse("x", "suites/x.toml", SUITE)?;
        let owned = settings.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        suite.set(&owned.collect()).map(|()| suite)
    }

    #[test]
    fn what_follows_from_a_parameter_is_set_with_it() {
        let suite = set(&[("sf", "10")]).expect("known");
        let planned = crate::Planned::new(&suite, Size::Quick, &[]).expect("good");
        let case = &planned.plan.cases[0];
        assert_eq!(case.params["sf"], 10);
        assert_eq!(case.expected_count, Some(86_586_082));
        assert_eq!(case.systems, ["dyno", "slow"]);
        assert_eq!(case.variants["slow"]["mode"], "slow");
        assert_eq!(planned.plan.set["sf"], "10");
        assert_eq!(
            planned.systems(),
            ["dyno"],
            "a variant is not a program of its own"
        );
    }

    #[test]
    fn a_list_is_set_with_commas_and_may_follow_the_cores() {
        let check = |text: &str, expected: &[i64]| {
            let mut suite = Definition::parse("x", "x.toml", SUITE).expect("good");
            suite = suite.on_cores(6);
            let settings = [("points".to_string(), text.to_string())];
            suite.set(&settings.into()).expect("a list");
            let expected: Vec<Value> = expected.iter().map(|n| Value::Integer(*n)).collect();
            assert_eq!(suite.size(Size::Full).params["points"], expected.into());
        };
        check("1,2, 4", &[1, 2, 4]);
        check("4,1", &[1, 4]);
        check("8", &[8]);
        check("1..cores", &[1, 2, 4, 6]);
        check("1,cores", &[1, 6]);
        check("1,6,cores", &[1, 6]);
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        let check = |settings: &[(&str, &str)], reason: &str| {
            let said = set(settings).expect_err("must be refused").to_string();
            assert!(said.contains(reason), "{said}");
        };
        check(
            &[("fs", "10")],
            "no parameter of the suite is called `fs`; did you mean `sf`? there are: ",
        );
        check(&[("rows", "many")], "\"many\" is not a number");
        check(&[("points", "1,x")], "\"x\" is not a number");
        check(&[("points", "1,2,1")], "it has 1 twice");
        check(&[("sf", "7")], "--set rows=... must say it");
        let suite = set(&[("sf", "7"), ("rows", "60")]).expect("both are said");
        assert_eq!(suite.size(Size::Tiny).params["rows"].as_integer(), Some(60));
    }

    #[test]
    fn a_variant_of_an_unknown_parameter_is_refused() {
        let text = SUITE.replace("mode = \"slow\"", "mood = \"slow\"");
        let suite = Definition::parse("x", "x.toml", &text).expect("it reads");
        let e = crate::Planned::new(&suite, Size::Tiny, &[]).expect_err("refused");
        assert!(e.to_string().contains("sets `mood`"), "{e}");
    }
}
