//! Settings of the processor that make equal programs differ.

use dyno_record::MachineCheck;

use super::{Trouble, good, judged, spoils, unknown};
use crate::facts::{cpu, system};
use crate::root::Root;

pub(super) fn governor(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "the clock climbs after the work starts: short runs look 10-50% slower, uneven ones more",
        mend: "cpupower frequency-set -g performance",
    };
    match cpu::governor(root) {
        Some(governor) => judged("governor", governor == "performance", governor, &trouble),
        None => unknown(
            "governor",
            "not shown here (usual in virtual machines); the host decides",
            &trouble,
        ),
    }
}

pub(super) fn turbo(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "one busy core is clocked higher than all together, and heat lowers the clock in long runs",
        mend: "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > /sys/devices/system/cpu/cpufreq/boost",
    };
    match cpu::turbo(root) {
        Some(true) => spoils("turbo", "on", &trouble),
        Some(false) => good("turbo", "off"),
        None => unknown("turbo", "not shown here; the host decides", &trouble),
    }
}

pub(super) fn smt(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "two threads of one core share it: all-core figures do not scale from one-core figures",
        mend: "echo off > /sys/devices/system/cpu/smt/control, or give the run one thread per core",
    };
    match cpu::threads_per_core(root) {
        Some(1) => good("smt", "one thread per core"),
        Some(n) => spoils("smt", format!("{n} threads per core"), &trouble),
        None => unknown("smt", "the topology is not shown here", &trouble),
    }
}

pub(super) fn mitigations(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "system calls and context switches cost more: runs with other mitigations do not compare",
        mend: "compare only machines with the same list; do not switch them off on a machine in use",
    };
    match cpu::mitigations(root) {
        // They are how the machine is used, so they are a fact to compare and not a fault.
        Some(list) => good("mitigations", list),
        None => unknown("mitigations", "the kernel does not tell", &trouble),
    }
}

pub(super) fn clock_source(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "each reading of the clock is a system call or slower: about 1 us instead of 25 ns",
        mend: "boot with clocksource=tsc where the processor has a constant one",
    };
    match system::clock_source(root) {
        Some(source) => {
            let fast = [
                "tsc",
                "kvm-clock",
                "arch_sys_counter",
                "hyperv_clocksource_tsc_page",
            ];
            judged(
                "clock-source",
                fast.contains(&source.as_str()),
                source,
                &trouble,
            )
        }
        None => unknown("clock-source", "the kernel does not tell", &trouble),
    }
}

pub(super) fn throttling(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "the processor has lowered its clock because of heat since the machine started",
        mend: "better cooling, or a pause between runs",
    };
    let base = "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count";
    match root.number(base) {
        Some(count) => judged(
            "throttling",
            count == 0,
            format!("{count} times since boot"),
            &trouble,
        ),
        None => unknown("throttling", "no counter here", &trouble),
    }
}
