//! Simulated runs whose truth is known, invocation by invocation and as slow and obvious as can be,
//! and how often the verdicts are wrong about them.

use dyno_random::Random;

use crate::compare::{Better, Block, Verdict, compare};
use crate::noise::{NoiseBand, noise_band};

/// What a machine does to the logarithm of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Each invocation scatters by 3%, on its own.
    Lognormal,
    /// One invocation in three lies in a mode that is 10% slower.
    Bimodal,
    /// A mood of 4% that lasts for several invocations.
    Autocorrelated,
    /// Each invocation is 0.5% slower than the one before, with 2% of scatter.
    Drifting,
}

impl Noise {
    /// Every kind, in the order of the printed score.
    pub const ALL: [Noise; 4] = [
        Noise::Lognormal,
        Noise::Bimodal,
        Noise::Autocorrelated,
        Noise::Drifting,
    ];

    /// The kind in words, as the score prints it.
    pub fn name(self) -> &'static str {
        match self {
            Noise::Lognormal => "each by itself, 3%",
            Noise::Bimodal => "one in three 10% slower",
            Noise::Autocorrelated => "lasting moods of 4%",
            Noise::Drifting => "drift by 0.5% from run to run",
        }
    }

    /// The logarithms of the times of `len` invocations, one after the other.
    pub fn series(self, random: &mut Random, len: usize) -> Vec<f64> {
        // The first mood is drawn from the distribution that the series keeps: 0.8 squared and 0.6
        // squared make 1, so its variance stays 1 from the first invocation on.
        let mut mood = normal(random);
        let logs = (0..len).map(|i| match self {
            Noise::Lognormal => 0.03 * normal(random),
            Noise::Bimodal if random.fraction() < 1.0 / 3.0 => 0.10 + 0.01 * normal(random),
            Noise::Bimodal => 0.01 * normal(random),
            Noise::Autocorrelated => {
                mood = 0.8 * mood + 0.6 * normal(random);
                0.04 * mood
            }
            Noise::Drifting => 0.005 * i as f64 + 0.02 * normal(random),
        });
        logs.collect()
    }
}

/// Nearly normal with mean 0 and deviation 1: the sum of twelve uniforms.
pub fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.fraction()).sum::<f64>() - 6.0
}

/// One run of a case: the times of ours, of its control arm and of a peer, block by block.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedRun {
    /// Times of our program, one for each block.
    pub ours: Vec<f64>,
    /// Times of the same program again, in the same blocks.
    pub control: Vec<f64>,
    /// Times of the other program, in the same blocks.
    pub peer: Vec<f64>,
}

impl SimulatedRun {
    /// A run of `n` blocks in random order, the second of each pair the reverse of the first. Ours
    /// is better by `effect`.
    pub fn new(random: &mut Random, noise: Noise, n: usize, effect: f64) -> SimulatedRun {
        let times = noise.series(random, 3 * n);
        let mut arms = [const { Vec::new() }; 3];
        let mut order = [0, 1, 2];
        for (block, times) in times.chunks_exact(3).enumerate() {
            match block % 2 {
                0 => random.shuffle(&mut order),
                _ => order.reverse(),
            }
            for (arm, time) in order.iter().zip(times) {
                arms[*arm].push(time.exp());
            }
        }
        let [mut ours, mut control, peer] = arms;
        for time in ours.iter_mut().chain(&mut control) {
            *time /= 1.0 + effect;
        }
        SimulatedRun {
            ours,
            control,
            peer,
        }
    }

    /// Pairs ours with the peer, block by block.
    pub fn blocks(&self) -> Vec<Block> {
        paired(&self.ours, &self.peer)
    }

    /// What the control arm says of the noise. Times are above zero, so it always says something.
    pub fn band(&self) -> Option<NoiseBand> {
        noise_band(&paired(&self.ours, &self.control)).ok()
    }
}

fn paired(a: &[f64], b: &[f64]) -> Vec<Block> {
    a.iter().zip(b).map(|(&a, &b)| Block { a, b }).collect()
}

/// What verdicts say of two equal programs; each field is a share of the trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EqualPrograms {
    /// Share in which one was called better.
    pub alarms: f64,
    /// Share in which the interval alone, with no control arm, would have called one better.
    pub alone: f64,
    /// Share in which the 95% interval holds the truth.
    pub covered: f64,
}

/// Compares two equal programs `trials` times.
pub fn equal_programs(random: &mut Random, noise: Noise, n: usize, trials: usize) -> EqualPrograms {
    let (mut alarms, mut covered) = (0, 0);
    for _ in 0..trials {
        let run = SimulatedRun::new(random, noise, n, 0.0);
        let Ok(seen) = compare(&run.blocks(), Better::Lower, run.band().as_ref()) else {
            continue;
        };
        alarms += usize::from(matches!(seen.verdict, Verdict::Faster | Verdict::Slower));
        covered += usize::from(seen.interval.contains(1.0));
    }
    let share = |count: usize| count as f64 / trials as f64;
    EqualPrograms {
        alarms: share(alarms),
        alone: share(trials - covered),
        covered: share(covered),
    }
}

/// Runs from which the stated smallest effect is taken: half of them state a smaller one.
const STATED: usize = 201;

/// The smallest effect that runs state, and how often a program that is better by so much is called
/// better.
pub fn smallest_effect_seen(
    random: &mut Random,
    noise: Noise,
    n: usize,
    trials: usize,
) -> (f64, f64) {
    let bands = (0..STATED).filter_map(|_| SimulatedRun::new(random, noise, n, 0.0).band());
    let mut effects: Vec<f64> = bands.map(|band| band.smallest_effect()).collect();
    effects.sort_unstable_by(f64::total_cmp);
    let effect = effects[effects.len() / 2];
    let seen = (0..trials).filter(|_| {
        let run = SimulatedRun::new(random, noise, n, effect);
        let seen = compare(&run.blocks(), Better::Lower, run.band().as_ref());
        seen.is_ok_and(|seen| seen.verdict == Verdict::Faster)
    });
    (effect, seen.count() as f64 / trials as f64)
}

/// How good the verdicts are for one kind of noise and number of blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VerdictScore {
    /// Share of equal programs of which one was called better.
    pub false_alarms: f64,
    /// Share of 95% intervals that hold the truth.
    pub coverage: f64,
    /// The smallest effect that runs state: 0.05 is 5%.
    pub smallest_effect: f64,
    /// Share of programs better by that effect that were called better.
    pub power: f64,
}

/// Runs both simulations from `seed`, so that a score can be had again.
pub fn verdict_score(noise: Noise, n: usize, trials: usize, seed: u64) -> VerdictScore {
    let mut random = Random::new(seed);
    let equal = equal_programs(&mut random, noise, n, trials);
    let (smallest_effect, power) = smallest_effect_seen(&mut random, noise, n, trials / 2);
    VerdictScore {
        false_alarms: equal.alarms,
        coverage: equal.covered,
        smallest_effect,
        power,
    }
}
