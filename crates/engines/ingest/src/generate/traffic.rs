//! Draws which receiver hears which sender: one month of spots in the order in which the archive
//! numbers them.
//!
//! Every two minutes a set of senders is on the air, each on its own frequency; receivers upload
//! what they decoded, one batch a band, so the same reporter repeats in runs and the same sender
//! comes back a few hundred rows later. A small archive has fewer slots, not thinner ones, so that
//! its bytes compress like those of a large one.

use super::band::{BANDS, Band};
use super::calendar::Month;
use super::position::Path;
use super::random::{Random, Weighted};
use super::software::version;
use super::station::{Station, World};

/// Seconds of a transmission slot.
const SLOT_S: u32 = 120;
/// Rows of a slot in a month that is not full: about half of the real rate of 2023.
const ROWS_PER_SLOT: u64 = 1500;
/// How often a transmission is heard on average.
const HEARD: f64 = 4.6;
/// Odds that a receiver which uploaded one band uploads another before its turn ends.
const ANOTHER_BAND: f64 = 0.35;
/// Odds that a batch goes on for one more decode.
const ONE_MORE: f64 = 0.88;
/// Paths longer than this are heard less often, by this factor.
const FAR_KM: u32 = 9_000;
const FAR_HEARD: f64 = 0.25;
/// Width of the WSPR window in Hz.
const WINDOW_HZ: u64 = 200;
/// How far a sender moves between slots, in tenths of a Hz.
const WANDER_TENTH_HZ: u64 = 60;
/// How far a receiver's reading may be off in either direction, in tenths of a Hz.
const ERROR_TENTH_HZ: u64 = 23;

/// One reception, still with references to its stations.
#[derive(Debug, Clone)]
pub(super) struct Spot<'w> {
    pub(super) id: u64,
    pub(super) time_s: u32,
    pub(super) receiver: &'w Station,
    pub(super) version: &'static str,
    pub(super) snr_db: i8,
    pub(super) frequency_tenth_hz: u64,
    pub(super) sender: &'w Station,
    pub(super) drift_hz: i8,
    pub(super) path: Path,
    pub(super) band: &'static Band,
    pub(super) code: u8,
}

impl Spot<'_> {
    /// Whether the receiver reports a seventh decimal of the frequency, as some do.
    pub(super) fn has_seventh_decimal(&self) -> bool {
        self.receiver.trait_bits >> 8 & 15 == 0
    }
}

/// A sender on the air in one slot.
#[derive(Debug, Clone, Copy)]
struct OnAir {
    sender: u32,
    frequency_tenth_hz: u64,
}

/// The traffic of one month.
#[derive(Debug)]
pub(super) struct Traffic<'w> {
    world: &'w World,
    month: Month,
    random: Random,
    next_id: u64,
    snr_odds: Weighted,
    on_air: Vec<Vec<OnAir>>,
}

/// Lowest and highest signal-to-noise ratio in dB.
const SNR_DB: (i8, i8) = (-33, 20);

impl<'w> Traffic<'w> {
    /// Spots get ids from `first_id` on. The arguments alone determine the spots.
    pub(super) fn new(world: &'w World, seed: u64, month: Month, first_id: u64) -> Self {
        let shape = |db: i8| {
            let from_peak = f64::from(db) + 20.0;
            let width = if from_peak < 0.0 { 4.0 } else { 9.0 };
            libm::exp(-0.5 * (from_peak / width) * (from_peak / width)) + 2e-4
        };
        let snr: Vec<f64> = (SNR_DB.0..=SNR_DB.1).map(shape).collect();
        let keys = [u64::from(month.year), u64::from(month.month)];
        Traffic {
            world,
            month,
            random: Random::keyed(seed, &keys),
            next_id: first_id,
            snr_odds: Weighted::new(&snr),
            on_air: vec![Vec::new(); BANDS.len()],
        }
    }

    /// Passes `rows` spots to `visit`, in order, until it returns an error.
    pub(super) fn visit<E>(
        mut self,
        rows: u64,
        mut visit: impl FnMut(&Spot<'w>) -> Result<(), E>,
    ) -> Result<(), E> {
        let slots_of_month = u64::from(self.month.length_s() / SLOT_S);
        let slots = (rows / ROWS_PER_SLOT).clamp(1, slots_of_month);
        for slot in 0..slots {
            // Differences of rounded totals spread the remainder over the slots, and their sum is
            // exactly `rows`.
            let count = rows * (slot + 1) / slots - rows * slot / slots;
            let number = slots_of_month * slot / slots;
            let time_s = self.month.start_s() + number as u32 * SLOT_S;
            self.start_slot(count);
            let mut left = count;
            while left > 0 {
                left -= self.turn(time_s, number, left, &mut visit)?;
            }
        }
        Ok(())
    }

    /// Draws the senders that are on the air, band by band.
    fn start_slot(&mut self, rows: u64) {
        // A fuller slot has more receivers, not more senders.
        let senders_for = rows.min(ROWS_PER_SLOT);
        for (band, on_air) in BANDS.iter().zip(&mut self.on_air) {
            on_air.clear();
            let wanted = (senders_for as f64 * band.share / HEARD).ceil() as usize + 2;
            for _ in 0..wanted {
                let sender = self.world.sender_odds.draw(&mut self.random);
                if on_air.iter().any(|other| other.sender == sender) {
                    continue;
                }
                // A sender keeps its position in the window and drifts by a few Hz.
                let habit = self.world.senders[sender as usize].trait_bits >> 20;
                let tenths = habit % (WINDOW_HZ * 10 - WANDER_TENTH_HZ - 2 * ERROR_TENTH_HZ)
                    + ERROR_TENTH_HZ
                    + u64::from(self.random.below(WANDER_TENTH_HZ as u32));
                on_air.push(OnAir {
                    sender,
                    frequency_tenth_hz: band.window_hz * 10 + tenths,
                });
            }
        }
    }

    /// One receiver uploads its bands. Returns how many spots those were, at most `left`.
    fn turn<E>(
        &mut self,
        slot_time_s: u32,
        slot: u64,
        left: u64,
        visit: &mut impl FnMut(&Spot<'w>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let world = self.world;
        let receiver = &world.receivers[world.receiver_odds.draw(&mut self.random) as usize];
        let version = version(receiver.trait_bits, self.month);
        // Sometimes a report comes a slot or two late, but never in the following month.
        let late_slots = if slot >= 2 && self.random.chance(0.02) {
            1 + slot as u32 % 2
        } else {
            0
        };
        let time_s = slot_time_s - late_slots * SLOT_S;
        let mut done = 0;
        while done < left {
            let band = world.band_odds.draw(&mut self.random) as usize;
            done += self.batch(receiver, version, time_s, band, left - done, visit)?;
            if !self.random.chance(ANOTHER_BAND) {
                break;
            }
        }
        Ok(done)
    }

    /// One band of one receiver: different senders, in the order of the band's list.
    fn batch<E>(
        &mut self,
        receiver: &'w Station,
        version: &'static str,
        time_s: u32,
        band: usize,
        left: u64,
        visit: &mut impl FnMut(&Spot<'w>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let heard = self.on_air[band].len() as u32;
        let mut at = self.random.below(heard);
        let mut walked = 0;
        let mut done = 0;
        // The walk goes around the list once at most, so a batch has no sender twice.
        while done < left && walked < heard {
            let on_air = self.on_air[band][at as usize];
            let sender = &self.world.senders[on_air.sender as usize];
            let path = sender.position.path_to(&receiver.position);
            if path.distance_km < FAR_KM || self.random.chance(FAR_HEARD) {
                let spot = self.spot(receiver, version, time_s, band, on_air, path);
                visit(&spot)?;
                done += 1;
            }
            let step = 1 + self.random.below(3);
            walked += step;
            at = (at + step) % heard;
            if !self.random.chance(ONE_MORE) {
                break;
            }
        }
        Ok(done)
    }

    fn spot(
        &mut self,
        receiver: &'w Station,
        version: &'static str,
        time_s: u32,
        band: usize,
        on_air: OnAir,
        path: Path,
    ) -> Spot<'w> {
        let bits = self.random.next();
        let sender = &self.world.senders[on_air.sender as usize];
        let id = self.next_id;
        // Most numbers are consecutive; deleted spots leave gaps.
        self.next_id += if bits & 15 == 0 {
            2 + (bits >> 4 & 3)
        } else {
            1
        };
        // Oscillators differ, so each receiver has a constant error, and each decode a small one of
        // its own.
        // Their sum is 0 to 46 tenths, so the subtraction below leaves up to 23 in either
        // direction.
        let error_tenth_hz = receiver.trait_bits >> 40 & 31;
        let jitter_tenth_hz = bits >> 8 & 15;
        Spot {
            id,
            time_s,
            receiver,
            version,
            snr_db: SNR_DB.0 + self.snr_odds.draw(&mut self.random) as i8,
            frequency_tenth_hz: on_air.frequency_tenth_hz + error_tenth_hz + jitter_tenth_hz
                - ERROR_TENTH_HZ,
            sender,
            drift_hz: drift_hz((bits >> 16) as u8),
            path,
            band: &BANDS[band],
            code: code((bits >> 24) as u16),
        }
    }
}

/// Drift of a decode: 0 in 87 of 100 cases, else 1 to 4 Hz a minute in either direction.
fn drift_hz(ticket: u8) -> i8 {
    let size = match ticket >> 1 {
        0..=111 => 0,
        112..=121 => 1,
        122..=125 => 2,
        126 => 3,
        _ => 4,
    };
    if ticket & 1 == 0 { -size } else { size }
}

/// The archive's own judgement: good, except that one in 500 is suspect for one of a few reasons.
fn code(ticket: u16) -> u8 {
    match ticket {
        0..100 => 1,
        100..120 => 2,
        120..130 => 3,
        130..134 => 4,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_keeps_its_promises() {
        let world = World::new(3);
        let month = Month {
            year: 2023,
            month: 1,
        };
        let mut seen = (0u64, 0u64, 0u64);
        let traffic = Traffic::new(&world, 3, month, 1000);
        let done: Result<(), ()> = traffic.visit(20_000, |spot| {
            assert!(spot.id > seen.0, "ids ascend");
            assert!(spot.time_s >= month.start_s());
            assert!(spot.time_s < month.plus(1).start_s());
            let tenths = spot.frequency_tenth_hz;
            let window = spot.band.window_hz * 10;
            assert!(
                tenths >= window && tenths < window + 2000,
                "{tenths} in {window}"
            );
            seen = (spot.id, seen.1 + 1, seen.2 + u64::from(spot.drift_hz == 0));
            Ok(())
        });
        assert_eq!(done, Ok(()));
        assert_eq!(seen.1, 20_000);
        assert!(seen.2 > 16_000, "drift is mostly 0");
    }
}
