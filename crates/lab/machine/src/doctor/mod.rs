//! What will spoil a measurement here, what it costs and how to mend it.

mod activity;
mod processor;
mod surroundings;

use std::path::Path;

use dyno_record::MachineCheck;

use crate::root::Root;

/// Runs every check. `path` is where the data will live; `pause` is called once between the two
/// readings of the processor counters.
pub fn doctor(root: &Root, path: &Path, pause: &mut dyn FnMut()) -> Vec<MachineCheck> {
    let [steal, busy] = activity::checks(root, pause);
    vec![
        processor::governor(root),
        processor::turbo(root),
        processor::smt(root),
        processor::mitigations(root),
        processor::clock_source(root),
        processor::throttling(root),
        surroundings::virtualisation(root),
        surroundings::cpu_limit(root),
        surroundings::memory_limit(root),
        surroundings::memory_free(root),
        surroundings::swap(root),
        surroundings::huge_pages(root),
        steal,
        busy,
        activity::load(root),
        surroundings::file_system(root, path),
        surroundings::free_disk(path),
        surroundings::counters(root),
    ]
}

/// What a check says when it is not good.
struct Trouble {
    cost: &'static str,
    mend: &'static str,
}

fn good(name: &str, seen: impl Into<String>) -> MachineCheck {
    check(
        name,
        "good",
        seen.into(),
        &Trouble {
            cost: "none",
            mend: "",
        },
    )
}

fn spoils(name: &str, seen: impl Into<String>, trouble: &Trouble) -> MachineCheck {
    check(name, "spoils", seen.into(), trouble)
}

fn unknown(name: &str, seen: impl Into<String>, trouble: &Trouble) -> MachineCheck {
    check(name, "unknown", seen.into(), trouble)
}

fn judged(name: &str, fine: bool, seen: impl Into<String>, trouble: &Trouble) -> MachineCheck {
    if fine {
        good(name, seen)
    } else {
        spoils(name, seen, trouble)
    }
}

fn check(name: &str, state: &str, seen: String, trouble: &Trouble) -> MachineCheck {
    MachineCheck {
        name: name.to_owned(),
        state: state.to_owned(),
        seen,
        cost: trouble.cost.to_owned(),
        mend: trouble.mend.to_owned(),
    }
}
