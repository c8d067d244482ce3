//! Every limit is measured, with tiny inputs: this proves that they run, and measures nothing.

use std::sync::atomic::AtomicBool;

use dyno_machine::{Inflate, LimitOptions, Root, limits};
use dyno_record::Size;

fn options<'a>(scratch: &'a std::path::Path, now_utc: &'a dyn Fn() -> String) -> LimitOptions<'a> {
    LimitOptions {
        scratch,
        size: Size::Tiny,
        inflaters: Vec::new(),
        now_utc,
        stop: None,
    }
}

/// An inflater that only reads the length that the gzip trailer promises.
fn trailer() -> Inflate {
    Box::new(|packed| {
        let tail = &packed[packed.len() - 4..];
        u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]))
    })
}

#[test]
fn every_limit_is_measured() {
    let scratch = tempfile::tempdir().unwrap();
    let now = || "2026-11-21T00:00:00Z".to_owned();
    let mut seen = Vec::new();
    let options = LimitOptions {
        inflaters: vec![("trailer", trailer())],
        ..options(scratch.path(), &now)
    };
    let found = limits(&Root::system(), &options, &mut |p| {
        seen.push(p.name.to_owned());
        assert!(p.done < p.of);
    });
    for limit in &found.limits {
        assert!(
            limit.value > 0.0 && limit.low <= limit.value && limit.value <= limit.high,
            "{limit:?}"
        );
        assert!(
            limit.n >= 1 && limit.method.len() > 20 && limit.measured_at == now(),
            "{limit:?}"
        );
    }
    let missing: Vec<&str> = found.missing.iter().map(|m| m.0.as_str()).collect();
    for name in &seen {
        let there = found.limits.iter().any(|limit| &limit.name == name);
        assert!(
            there || missing.contains(&name.as_str()),
            "{name} is neither measured nor missing"
        );
    }
    assert!(found.limits.len() >= 19, "{missing:?}");
    let left = std::fs::read_dir(scratch.path()).unwrap().count();
    assert_eq!(left, 0, "files were left in the scratch directory");
}

#[test]
fn a_wrong_inflater_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let now = String::new;
    let wrong: Inflate = Box::new(|_| 1);
    let options = LimitOptions {
        inflaters: vec![("wrong", wrong)],
        ..options(scratch.path(), &now)
    };
    let found = limits(&Root::system(), &options, &mut |_| {});
    let (_, reason) = found.missing.iter().find(|m| m.0 == "inflate-1").unwrap();
    assert!(
        reason.contains("wrong gave 1 bytes instead of "),
        "{reason}"
    );
}

#[test]
fn a_raised_flag_ends_the_measuring() {
    let scratch = tempfile::tempdir().unwrap();
    let now = String::new;
    let stop = AtomicBool::new(true);
    let options = LimitOptions {
        stop: Some(&stop),
        ..options(scratch.path(), &now)
    };
    let found = limits(&Root::system(), &options, &mut |_| {});
    assert!(found.limits.is_empty() && found.missing.len() >= 19);
}
