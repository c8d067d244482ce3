//! What must agree for a difference to be the program's.

use dyno_record::Run;

/// One line per thing that differs.
pub(super) fn marks(base: &Run, new: &Run) -> Vec<String> {
    let beside = |run: &Run| run.beside.clone().unwrap_or_else(|| "nothing".to_owned());
    let size = |run: &Run| format!("{:?}", run.plan.size).to_lowercase();
    let pairs = [
        (
            "machine",
            base.machine.fingerprint.clone(),
            new.machine.fingerprint.clone(),
        ),
        (
            "build profile",
            base.program.profile.clone(),
            new.program.profile.clone(),
        ),
        ("suite", base.plan.suite.clone(), new.plan.suite.clone()),
        ("size", size(base), size(new)),
        ("load beside", beside(base), beside(new)),
    ];
    let mut marks: Vec<String> = pairs
        .into_iter()
        .filter(|(_, a, b)| a != b)
        .map(|(what, a, b)| format!("{what} differs: {a}, then {b}"))
        .collect();
    marks.extend(new.systems.iter().filter_map(|system| {
        let before = base.systems.iter().find(|s| s.name == system.name)?;
        let ours = system.name == crate::model::OURS;
        // Our own version is what the comparison is about, so it is not a mark.
        let differs = before.version != system.version && !ours;
        differs.then(|| {
            format!(
                "version of {} differs: {}, then {}",
                system.name, before.version, system.version
            )
        })
    }));
    marks
}
