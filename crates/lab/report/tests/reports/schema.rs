//! The published JSON Schema, held against every record that is committed and the reports made from
//! them, by a validator that is not ours.

use crate::made_up;

use std::path::Path;

use boon::{Compiler, SchemaIndex, Schemas};
use dyno_record::{
    Around, Experiment, Gives, RUN_FILE, RunDir, SAMPLES_FILE, Sensed, Span, Target, find_runs,
};
use dyno_report::{JSON_SCHEMA, build, build_stored};
use serde_json::{Value, json};

struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    fn new(schema: Value) -> Validator {
        let mut compiler = Compiler::new();
        compiler.add_resource("dyno.json", schema).unwrap();
        let mut schemas = Schemas::new();
        let index = compiler.compile("dyno.json", &mut schemas).unwrap();
        Validator { schemas, index }
    }

    /// Readers may meet fields of a later program; this one must not write any that the schema does
    /// not describe.
    fn strict() -> Validator {
        let mut schema: Value = serde_json::from_str(JSON_SCHEMA).unwrap();
        for definition in schema["$defs"].as_object_mut().unwrap().values_mut() {
            close(definition);
        }
        Validator::new(schema)
    }

    fn check(&self, value: &Value, what: &str) {
        if let Err(error) = self.schemas.validate(value, self.index) {
            panic!("{what}: {error:#}");
        }
    }

    fn refuses(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_err()
    }
}

/// Lets no object of a definition have a field that it does not name.
fn close(definition: &mut Value) {
    match definition {
        Value::Object(fields) => {
            // A condition names only what it asks for.
            fields.values_mut().for_each(close);
            if fields.contains_key("required") && fields.contains_key("properties") {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn results() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../results")
}

#[test]
fn every_committed_record_and_its_report_is_as_the_schema_says() {
    let validator = Validator::strict();
    let mut samples = 0;
    let dirs = find_runs(&results()).unwrap();
    for dir in &dirs {
        let name = dir.display().to_string();
        let run: Value = serde_json::from_str(&read(&dir.join(RUN_FILE))).unwrap();
        validator.check(&run, &name);
        for line in read(&dir.join(SAMPLES_FILE)).lines() {
            validator.check(&serde_json::from_str(line).unwrap(), &name);
            samples += 1;
        }
        let report = build_stored(&RunDir::open(dir).unwrap()).to_json().unwrap();
        validator.check(
            &serde_json::from_str(&report).unwrap(),
            &format!("report of {name}"),
        );
    }
    assert!(
        dirs.len() >= 14 && samples > 3_000,
        "{} runs, {samples} samples",
        dirs.len()
    );
}

/// Records of today, which have the fields that no committed record has yet.
#[test]
fn what_is_written_today_is_as_the_schema_says() {
    let validator = Validator::strict();
    let mut stored = made_up::stored();
    stored.run.beside = Some("stress-ng".into());
    stored.run.command = Some("dyno txn bench".into());
    stored.run.plan.cases[0].no_limit = Some("none is known".into());
    stored.run.plan.cases[0].baselines = vec!["zstd".into()];
    stored.run.plan.cases[0].target = Some(Target {
        of: "limit".into(),
        at_least: 0.5,
    });
    let case = &mut stored.run.plan.cases[0];
    let less = &mut case.promises_less;
    less.insert("chdb".into(), "it forgets".into());
    // The peer of the case stands for the program with a change, so that there are samples of it.
    case.experiments.insert(
        "duckdb".into(),
        Experiment {
            resource: "disk".into(),
            change: "files in memory".into(),
            gives: Gives::More,
            around: Some(Around::ScratchInMemory),
            keeps_nothing: true,
        },
    );
    let untried = &mut case.untried;
    untried.insert("batch size".into(), "the case has no parameter".into());
    stored.samples[0].window_s = Some(0.5);
    stored
        .run
        .unread
        .insert("temperature".into(), "no sensor".into());
    stored.samples[0].sensors = Sensed {
        clock_mhz: Span::from_values([2_400.0]),
        temperature_c: Span::from_values([60.0]),
    };
    stored.run.plan.only = vec!["load-*".into()];
    stored.run.plan.skip = vec!["load-once".into()];
    let names = || vec!["memory".to_owned()];
    stored.run.plan.left_out.cases = names();
    let variants = &mut stored.run.plan.left_out.variants;
    variants.insert("load-gz-2".into(), names());
    validator.check(&serde_json::to_value(&stored.run).unwrap(), "run");
    for sample in &stored.samples {
        validator.check(&serde_json::to_value(sample).unwrap(), "sample");
    }
    let report = build(&stored.run, &stored.samples).to_json().unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["cases"][0]["target"]["of"], "inflate-1");
    let trial = &report["cases"][0]["cause"]["trials"][0];
    assert_eq!(trial["ratio"]["verdict"], "slower");
    validator.check(&report, "report");
}

#[test]
fn a_changed_field_is_refused_and_an_added_one_is_not() {
    let validator = Validator::new(serde_json::from_str(JSON_SCHEMA).unwrap());
    let run = serde_json::to_value(made_up::stored().run).unwrap();
    let changed = |pointer: &str, value: Value| {
        let mut run = run.clone();
        *run.pointer_mut(pointer).unwrap() = value;
        run
    };
    for (pointer, value) in [
        ("/started_at", json!("yesterday")),
        ("/schema_version", json!(4)),
        ("/plan/size", json!("huge")),
        ("/plan/cases/0/better", json!(1)),
        ("/plan/cases/0/repeats", json!(-1)),
        ("/plan/cases/0/axis", json!(["rows"])),
        ("/machine/facts/0", json!(["cpu", "x", "y"])),
        ("/limits/0/value", json!("fast")),
        ("/program", json!({})),
        ("/plan/cases/0", json!({"name": "x"})),
    ] {
        assert!(validator.refuses(&changed(pointer, value)), "{pointer}");
    }
    let mut later = run.clone();
    later["of_a_later_program"] = json!(1);
    validator.check(&later, "a field more");
    // Since version 2 a record says of each case whether it ends.
    let mut without = run.clone();
    without["plan"]["cases"][0]
        .as_object_mut()
        .unwrap()
        .remove("load");
    assert!(validator.refuses(&without));
    let sample = serde_json::to_value(&made_up::stored().samples[0]).unwrap();
    let mut broken = sample.clone();
    broken["outcome"] = json!({"kind": "failed"});
    assert!(validator.refuses(&broken) && !validator.refuses(&sample));
}
