//! Who else is at work.

use dyno_record::{MachineCheck, STEAL_MAX};

use super::{Trouble, judged, unknown};
use crate::facts::cpu;
use crate::root::Root;
use crate::usage::CpuTicks;

const BUSY_MAX: f64 = 0.10;

const STEAL: Trouble = Trouble {
    cost: "other guests of the host take processor time in bursts; medians survive, tails do not",
    mend: "measure at another hour, or on a dedicated host",
};
const BUSY: Trouble = Trouble {
    cost: "other work shares cores, caches and memory bandwidth with the measurement",
    mend: "stop other work (builds, updates, browsers) and run doctor again",
};

/// Steal and processor use of the whole machine across `pause`.
pub(super) fn checks(root: &Root, pause: &mut dyn FnMut()) -> [MachineCheck; 2] {
    let read = || {
        root.text("proc/stat")
            .and_then(|stat| CpuTicks::parse(&stat))
    };
    let before = read();
    pause();
    let Some((before, after)) = before.zip(read()) else {
        let seen = "/proc/stat cannot be read";
        return [unknown("steal", seen, &STEAL), unknown("busy", seen, &BUSY)];
    };
    // A share of a few ticks is 0 or very large by chance, and 0 would read as a quiet machine.
    let Some(steal) = after.steal_since(&before) else {
        let seen = "too little time passed between two readings";
        return [unknown("steal", seen, &STEAL), unknown("busy", seen, &BUSY)];
    };
    let busy = after.busy_since(&before);
    [
        judged(
            "steal",
            steal <= STEAL_MAX,
            format!("{:.1}% stolen", steal * 100.0),
            &STEAL,
        ),
        judged(
            "busy",
            busy <= BUSY_MAX,
            format!("processors {:.0}% busy", busy * 100.0),
            &BUSY,
        ),
    ]
}

pub(super) fn load(root: &Root) -> MachineCheck {
    let first = |text: String| {
        text.split(' ')
            .next()
            .and_then(|load| load.parse::<f64>().ok())
    };
    match (
        root.text("proc/loadavg").and_then(first),
        cpu::logical(root),
    ) {
        (Some(load), Some(cpus)) => {
            let fine = load <= 0.25 * cpus as f64;
            judged(
                "load",
                fine,
                format!("{load:.2} on {cpus} processors, last minute"),
                &BUSY,
            )
        }
        _ => unknown("load", "/proc/loadavg cannot be read", &BUSY),
    }
}
