//! A node's clock, wrong within a promised bound.

use dyno_random::Random;

/// What a clock may do wrong. The default is a clock that is right.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockFaults {
    /// What the clock shows never differs from true time by more: the promise that users rely on.
    pub bound_ns: u64,
    /// It runs too fast or too slow by at most this, in parts per million.
    pub drift_ppm: u32,
    /// About how often its drift changes, where 0 stands for never; half of the times it also
    /// steps, forwards or backwards.
    pub change_every_ns: u64,
}

/// Shows the time of one node. It reads the same whether it is asked often or seldom.
#[derive(Debug, Clone)]
pub struct SimClock {
    faults: ClockFaults,
    random: Random,
    since_ns: u64,
    offset_ns: i64,
    drift_ppm: i64,
    next_change_ns: u64,
}

impl SimClock {
    /// A clock whose faults come from `random`.
    pub fn new(faults: ClockFaults, random: Random) -> Self {
        let mut clock = Self {
            faults,
            random,
            since_ns: 0,
            offset_ns: 0,
            drift_ppm: 0,
            next_change_ns: 0,
        };
        // A faulty clock is wrong from the first moment on, or a test that ends early would meet
        // only right clocks.
        clock.change(0, true);
        clock
    }

    /// What it shows at `true_ns`. True time never goes back between calls; what is shown may.
    pub fn wall_ns(&mut self, true_ns: u64) -> u64 {
        // Changes that fell between two calls are made up one by one, each at its own time, so that
        // the clock shows the same however often it is asked.
        while self.next_change_ns <= true_ns {
            let at = self.next_change_ns;
            self.offset_ns = self.offset_at(at);
            let steps = self.random.one_in(2);
            self.change(at, steps);
        }
        true_ns.saturating_add_signed(self.offset_at(true_ns))
    }

    /// How long the node waits, in true time, when it means to wait `for_ns`.
    pub fn stretch_ns(&mut self, true_ns: u64, for_ns: u64) -> u64 {
        // This brings the drift up to date before it is used.
        self.wall_ns(true_ns);
        // A clock that runs fast reaches its deadline early, hence the minus. In 128 bits the
        // product cannot overflow.
        let extra = i128::from(for_ns) * i128::from(-self.drift_ppm) / 1_000_000;
        for_ns.saturating_add_signed(extra.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    fn offset_at(&self, true_ns: u64) -> i64 {
        let bound = i128::from(self.faults.bound_ns.min(i64::MAX as u64));
        let gone = i128::from(true_ns - self.since_ns);
        let drifted = gone * i128::from(self.drift_ppm) / 1_000_000;
        (i128::from(self.offset_ns) + drifted).clamp(-bound, bound) as i64
    }

    fn change(&mut self, at_ns: u64, steps: bool) {
        // A quarter, so that twice the bound still fits.
        let bound = self.faults.bound_ns.min(i64::MAX as u64 / 4);
        if steps {
            self.offset_ns = self.random.between(0, 2 * bound) as i64 - bound as i64;
        }
        let most = u64::from(self.faults.drift_ppm);
        self.drift_ppm = self.random.between(0, 2 * most) as i64 - most as i64;
        self.since_ns = at_ns;
        let every = self.faults.change_every_ns;
        self.next_change_ns = match every {
            0 => u64::MAX,
            _ => at_ns.saturating_add(self.random.between(every / 2, every / 2 + every).max(1)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAULTS: ClockFaults = ClockFaults {
        bound_ns: 1_000_000,
        drift_ppm: 500,
        change_every_ns: 10_000_000,
    };

    #[test]
    fn it_keeps_its_promise_and_does_go_wrong() {
        let mut clock = SimClock::new(FAULTS, Random::new(3));
        let (mut back, mut before) = (0, 0);
        for step in 0..100_000u64 {
            let now = 5_000_000 + step * 7_000;
            let shown = clock.wall_ns(now);
            assert!(shown.abs_diff(now) <= FAULTS.bound_ns);
            back += u32::from(shown < before);
            before = shown;
        }
        assert!(back > 5, "{back} steps backwards");
    }

    #[test]
    fn reading_does_not_change_it() {
        let mut often = SimClock::new(FAULTS, Random::new(9));
        let mut seldom = often.clone();
        for now in (0..200_000_000).step_by(1_000) {
            often.wall_ns(now);
        }
        assert_eq!(often.wall_ns(200_000_000), seldom.wall_ns(200_000_000));
    }

    #[test]
    fn without_faults_it_is_right() {
        let mut clock = SimClock::new(ClockFaults::default(), Random::new(1));
        assert_eq!(clock.wall_ns(77), 77);
        assert_eq!(clock.stretch_ns(77, 1_000), 1_000);
    }
}
