//! What the whole machine did meanwhile, from /proc/stat and /proc/loadavg.

use std::fs;

/// Clock ticks of all processors since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTicks {
    /// Working: user, nice, system, interrupts.
    pub busy: u64,
    /// Taken away by the hypervisor.
    pub steal: u64,
    /// All of the above, idle and waiting for I/O.
    pub total: u64,
}

/// Below this many ticks a share of them says nothing.
const TICKS_MIN: u64 = 10;
/// USER_HZ: the unit of /proc/stat, 100 on every Linux system since 2.4.
const TICKS_PER_S: f64 = 100.0;

impl CpuTicks {
    /// Reads the counters now; `None` when /proc/stat cannot be read.
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads the `cpu` line of a /proc/stat text.
    pub fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .map_while(|t| t.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal; guest time is part of user.
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else {
            return None;
        };
        let busy = user + nice + system + irq + softirq;
        Some(Self {
            busy,
            steal,
            total: busy + steal + idle + iowait,
        })
    }

    /// Share of the machine's time stolen since `earlier`, 0 to 1; `None` when too little passed.
    pub fn steal_since(&self, earlier: &Self) -> Option<f64> {
        // The counters of waiting for I/O may step back (proc(5)), so a total may be less than
        // before. Such a pair of readings is not used.
        let total = self.total.checked_sub(earlier.total)?;
        (total >= TICKS_MIN).then(|| self.steal.saturating_sub(earlier.steal) as f64 / total as f64)
    }

    /// Share of the machine's time spent working since `earlier`, 0 to 1.
    pub fn busy_since(&self, earlier: &Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total).max(1);
        self.busy.saturating_sub(earlier.busy) as f64 / total as f64
    }

    /// Cores kept busy since `earlier` by anyone but those who used `known_cpu_s`; `None` when too
    /// little passed.
    pub fn other_cores_since(&self, earlier: &Self, known_cpu_s: f64, wall_s: f64) -> Option<f64> {
        let total = self.total.checked_sub(earlier.total)?;
        let busy_s = self.busy.saturating_sub(earlier.busy) as f64 / TICKS_PER_S;
        (total >= TICKS_MIN && wall_s > 0.0).then(|| ((busy_s - known_cpu_s) / wall_s).max(0.0))
    }
}

/// One-minute load average; `None` when it cannot be read.
pub fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg")
        .ok()?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_come_from_differences() {
        let before = CpuTicks::parse("cpu  100 0 50 800 10 0 5 20 0 0\ncpu0 1 2 3\n").unwrap();
        let after = CpuTicks::parse("cpu  300 0 90 850 10 0 5 60 0 0\n").unwrap();
        assert_eq!(
            before,
            CpuTicks {
                busy: 155,
                steal: 20,
                total: 985
            }
        );
        // 330 ticks passed, 40 of them stolen and 240 of them busy.
        assert!((after.steal_since(&before).unwrap() - 40.0 / 330.0).abs() < 1e-12);
        let others = after.other_cores_since(&before, 0.4, 1.65).unwrap();
        assert!((others - 2.0 / 1.65).abs() < 1e-12, "{others}");
        assert_eq!(before.steal_since(&before), None);
        assert_eq!(CpuTicks::parse("cpu 1 2 3"), None);
    }
}
