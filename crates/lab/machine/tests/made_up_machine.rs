//! Facts and checks of machines that exist only as files.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

use std::fs;
use std::path::Path;

use dyno_machine::{Root, doctor, machine};
use dyno_record::MachineCheck;
use tempfile::TempDir;

const CPUINFO: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n\
    model name\t: Intel(R) Xeon(R) Gold\nstepping\t: 8\nflags\t\t: fpu sse4_2 avx2 hypervisor\n\n\
    processor\t: 1\nmodel name\t: Intel(R) Xeon(R) Gold\nflags\t\t: fpu sse4_2 avx2 hypervisor\n";
const MEMINFO: &str = "MemTotal:       16777216 kB\nMemAvailable:    4194304 kB\nSwapTotal: 1048576 kB\n\
    SwapFree:  524288 kB\nHugePages_Total:       4\nHugepagesize:       2048 kB\n";
const MOUNTS: &str = "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
    21 20 0:30 / /tmp rw,nosuid - tmpfs tmpfs rw\n22 20 0:31 / /data\\040disk rw - xfs /dev/sdb rw\n";
const CPU: &str = "sys/devices/system/cpu";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Two threads of one core in a limited container on a busy host.
fn laptop() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| write(directory.path(), path, text);
    put("proc/cpuinfo", CPUINFO);
    put("proc/meminfo", MEMINFO);
    put("proc/self/mountinfo", MOUNTS);
    put("proc/loadavg", "3.50 1.00 0.50 1/100 42\n");
    put("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\n");
    put("proc/sys/kernel/osrelease", "6.1.0-test\n");
    put("proc/sys/kernel/perf_event_paranoid", "4\n");
    put("proc/self/cgroup", "0::/user/session\n");
    put("sys/fs/cgroup/user/cpu.max", "150000 100000\n");
    put("sys/fs/cgroup/user/session/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/user/session/memory.max", "2147483648\n");
    put(
        "etc/os-release",
        "NAME=\"Test\"\nPRETTY_NAME=\"Test Linux 12\"\n",
    );
    for cpu in 0..2 {
        put(
            &format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"),
            "0-1\n",
        );
        put(
            &format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor"),
            "powersave\n",
        );
    }
    put(&format!("{CPU}/cpu0/cache/index0/level"), "1\n");
    put(&format!("{CPU}/cpu0/cache/index0/type"), "Data\n");
    put(&format!("{CPU}/cpu0/cache/index0/size"), "48K\n");
    put(
        &format!("{CPU}/cpu0/thermal_throttle/core_throttle_count"),
        "3\n",
    );
    put(&format!("{CPU}/intel_pstate/no_turbo"), "0\n");
    put(
        &format!("{CPU}/vulnerabilities/spectre_v2"),
        "Mitigation: Retpolines\n",
    );
    put(&format!("{CPU}/vulnerabilities/meltdown"), "Not affected\n");
    put(
        "sys/kernel/mm/transparent_hugepage/enabled",
        "[always] madvise never\n",
    );
    put(
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "hpet\n",
    );
    put("sys/dev/block/8:1/queue/rotational", "0\n");
    put("sys/dev/block/8:1/queue/scheduler", "none [mq-deadline]\n");
    put_devices(directory.path());
    directory
}

fn put_devices(root: &Path) {
    let put = |path: &str, text: &str| write(root, path, text);
    for gpu in ["0000:01:00.0", "0000:02:00.0"] {
        let information = "Model: \t\t NVIDIA H100\nIRQ: 16\n";
        put(
            &format!("proc/driver/nvidia/gpus/{gpu}/information"),
            information,
        );
    }
    for (module, place) in ["channel 0 slot 0", "channel 0 slot 1", "channel 1 slot 0"]
        .iter()
        .enumerate()
    {
        let place = format!("{place}\n");
        put(
            &format!("sys/devices/system/edac/mc/mc0/dimm{module}/dimm_location"),
            &place,
        );
    }
    for (name, speed) in [("eth0", "25000\n"), ("eth1", "-1\n")] {
        put(&format!("sys/class/net/{name}/device/vendor"), "0x1af4\n");
        put(&format!("sys/class/net/{name}/speed"), speed);
    }
    put("sys/class/net/lo/speed", "1\n");
    put("proc/sys/kernel/io_uring_disabled", "2\n");
    put("dev/fuse", "a device\n");
}

fn found<'a>(checks: &'a [MachineCheck], name: &str) -> &'a MachineCheck {
    checks.iter().find(|check| check.name == name).unwrap()
}

#[test]
fn facts_are_read_from_the_tree() {
    let directory = laptop();
    let seen = machine(&Root::at(directory.path()), Path::new("/"), &mut || {});
    let fact = |name: &str| seen.facts.iter().find(|f| f.0 == name).unwrap().1.as_str();
    assert_eq!(
        fact("cpu"),
        "Intel(R) Xeon(R) Gold (family 6, model 143, stepping 8)"
    );
    assert_eq!((fact("logical cpus"), fact("physical cores")), ("2", "1"));
    assert_eq!((fact("threads per core"), fact("caches")), ("2", "L1d 48K"));
    assert_eq!((fact("memory"), fact("swap")), ("16.0 GiB", "1.0 GiB"));
    assert_eq!(
        (fact("cpu limit"), fact("memory limit")),
        ("1.50 cores", "2.0 GiB")
    );
    assert_eq!(
        (fact("kernel"), fact("os")),
        ("6.1.0-test", "Test Linux 12")
    );
    assert_eq!(fact("file system"), "ext4 (rw,relatime)");
    assert_eq!(
        fact("disk"),
        "/dev/sda1, not rotational, scheduler mq-deadline"
    );
    assert_eq!(fact("reserved huge pages"), "4 of 2048 KiB");
    assert_eq!((fact("turbo"), fact("mitigations")), ("on", "spectre_v2"));
    assert_eq!(
        (fact("gpus"), fact("memory channels")),
        ("2 of NVIDIA H100", "2")
    );
    assert_eq!(
        fact("network"),
        "eth0 at 25000 Mbit/s; eth1, which does not tell its speed"
    );
    assert_eq!(
        fact("kernel interfaces"),
        "FUSE; without io_uring, ublk, zram, userfaultfd"
    );
}

#[test]
fn trouble_is_found_with_its_cost_and_its_mend() {
    let directory = laptop();
    let mut pause = || {
        write(
            directory.path(),
            "proc/stat",
            "cpu 160 0 100 820 0 0 0 20 0 0\n",
        )
    };
    let checks = doctor(&Root::at(directory.path()), Path::new("/"), &mut pause);
    for name in [
        "governor",
        "turbo",
        "smt",
        "clock-source",
        "throttling",
        "virtualisation",
        "cpu-limit",
        "memory-limit",
        "memory",
        "swap",
        "huge-pages",
        "steal",
        "busy",
        "load",
    ] {
        let check = found(&checks, name);
        assert_eq!(check.state, "spoils", "{check:?}");
        assert!(
            !check.cost.is_empty() && !check.mend.is_empty(),
            "{check:?}"
        );
    }
    assert_eq!(found(&checks, "steal").seen, "20.0% stolen");
    assert_eq!(found(&checks, "busy").seen, "processors 60% busy");
    assert_eq!(found(&checks, "file-system").state, "good");
    assert_eq!(found(&checks, "counters").state, "unknown");
}

#[test]
fn the_fingerprint_follows_the_machine_and_not_its_mood() {
    let directory = laptop();
    let fingerprint =
        || machine(&Root::at(directory.path()), Path::new("/"), &mut || {}).fingerprint;
    let first = fingerprint();
    assert_eq!(first.len(), 16);
    write(directory.path(), "proc/loadavg", "0.00 0.00 0.00 1/1 1\n");
    // The same kernel with a correction, built again.
    write(
        directory.path(),
        "proc/sys/kernel/osrelease",
        "6.1.9-other\n",
    );
    assert_eq!(fingerprint(), first);
    write(
        directory.path(),
        "proc/sys/kernel/osrelease",
        "6.2.0-test\n",
    );
    assert_ne!(fingerprint(), first);
    write(
        directory.path(),
        "proc/sys/kernel/osrelease",
        "6.1.0-test\n",
    );
    assert_eq!(fingerprint(), first);
    write(
        directory.path(),
        &format!("{CPU}/intel_pstate/no_turbo"),
        "1\n",
    );
    assert_ne!(fingerprint(), first);
}

#[test]
fn an_empty_machine_is_unknown_and_not_zero() {
    let directory = tempfile::tempdir().unwrap();
    let seen = machine(&Root::at(directory.path()), directory.path(), &mut || {});
    let cpu = seen.facts.iter().find(|f| f.0 == "cpu").unwrap();
    assert_eq!(cpu.1, "not available: the kernel does not tell");
    assert_eq!(found(&seen.checks, "steal").state, "unknown");
    assert_eq!(found(&seen.checks, "governor").state, "unknown");
}

#[test]
fn the_innermost_mount_holds_a_path() {
    let directory = laptop();
    let root = Root::at(directory.path());
    let seen = machine(&root, Path::new("/data disk/table"), &mut || {});
    assert!(
        seen.facts.iter().any(|f| f.1 == "xfs (rw)"),
        "{:?}",
        seen.facts
    );
}

#[test]
fn this_machine_can_be_read() {
    let seen = machine(&Root::system(), Path::new("."), &mut || {});
    let unknown = seen
        .facts
        .iter()
        .filter(|f| f.1.starts_with("not available"))
        .count();
    assert!(unknown < seen.facts.len() / 2, "{:?}", seen.facts);
}
