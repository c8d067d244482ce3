//! The stations of the world: callsigns, grids, habits, and how often each appears.

use std::collections::HashSet;

use super::band::BANDS;
use super::position::StationPosition;
use super::random::{Random, Weighted};

/// Number of distinct senders.
const SENDERS: usize = 80_000;
/// Number of distinct receivers.
const RECEIVERS: usize = 30_000;
/// How many receivers also send, under the same callsign and from the same position.
const BOTH: usize = 10_000;

/// A region with its callsign prefixes; weight is its share of stations, degrees north and east.
struct Region {
    weight: f64,
    prefixes: &'static [&'static str],
    centre: (f64, f64),
    spread: (f64, f64),
}

const fn region(
    weight: f64,
    prefixes: &'static [&'static str],
    centre: (f64, f64),
    spread: (f64, f64),
) -> Region {
    Region {
        weight,
        prefixes,
        centre,
        spread,
    }
}

const REGIONS: [Region; 18] = [
    region(
        34.0,
        &[
            "K", "N", "W", "AA", "AC", "KA", "KB", "KC", "KD", "KE", "KG", "KJ", "KK", "WA", "WB",
        ],
        (39.0, -95.0),
        (4.5, 14.0),
    ),
    region(4.0, &["VE", "VA"], (47.0, -85.0), (3.0, 18.0)),
    region(
        11.0,
        &["G", "M", "2E", "GM", "GW"],
        (52.5, -1.5),
        (1.8, 1.6),
    ),
    region(
        12.0,
        &["DL", "DF", "DG", "DJ", "DK", "DO"],
        (50.5, 10.0),
        (1.8, 2.0),
    ),
    region(5.0, &["F"], (46.5, 2.5), (2.2, 2.4)),
    region(5.0, &["PA", "PD", "PE", "ON"], (51.8, 5.0), (0.7, 0.9)),
    region(4.0, &["I", "IK", "IZ", "IW"], (43.5, 11.5), (2.2, 2.0)),
    region(4.0, &["EA", "EB", "CT"], (40.0, -4.5), (2.0, 2.6)),
    region(
        4.0,
        &["SM", "SA", "LA", "OH", "OZ"],
        (59.5, 15.0),
        (3.0, 5.0),
    ),
    region(
        4.0,
        &["SP", "SQ", "OK", "OM", "HA"],
        (50.3, 18.5),
        (1.4, 2.2),
    ),
    region(2.0, &["OE", "HB9", "S5", "9A"], (46.8, 12.5), (0.8, 2.8)),
    region(
        3.0,
        &["R", "RA", "UA", "UR", "LY"],
        (54.0, 38.0),
        (3.0, 9.0),
    ),
    region(
        3.0,
        &["JA", "JE", "JH", "JR", "7K"],
        (35.8, 138.0),
        (1.8, 2.6),
    ),
    region(3.0, &["VK"], (-33.0, 146.0), (3.2, 6.0)),
    region(1.0, &["ZL"], (-40.0, 174.5), (2.2, 1.6)),
    region(1.0, &["ZS", "EA8", "5Z"], (-12.0, 22.0), (9.0, 7.0)),
    region(2.0, &["PY", "LU", "CE", "HC"], (-24.0, -55.0), (7.0, 6.0)),
    region(
        1.0,
        &["BG", "BD", "HL", "VU", "TA"],
        (30.0, 100.0),
        (6.0, 14.0),
    ),
];

/// Powers that WSPR can announce, in dBm, and how many of 100 senders use each.
const POWERS: [(i8, f64); 19] = [
    (0, 1.0),
    (3, 0.5),
    (7, 1.5),
    (10, 5.0),
    (13, 3.0),
    (17, 3.0),
    (20, 8.0),
    (23, 34.0),
    (27, 6.0),
    (30, 12.0),
    (33, 6.0),
    (37, 14.0),
    (40, 3.0),
    (43, 1.5),
    (47, 0.5),
    (50, 0.5),
    (53, 0.2),
    (57, 0.2),
    (60, 0.1),
];

/// One station.
#[derive(Debug, Clone)]
pub(super) struct Station {
    pub(super) call: Box<str>,
    pub(super) position: StationPosition,
    /// Announced power in dBm; only senders use it.
    pub(super) power_dbm: i8,
    /// Random bits that never change, which choose its software and frequency habits.
    pub(super) trait_bits: u64,
}

/// All stations, with the odds of being heard and of hearing.
#[derive(Debug)]
pub(super) struct World {
    pub(super) senders: Vec<Station>,
    pub(super) receivers: Vec<Station>,
    pub(super) sender_odds: Weighted,
    pub(super) receiver_odds: Weighted,
    pub(super) band_odds: Weighted,
}

impl World {
    /// Builds the world; equal seeds give equal worlds.
    pub(super) fn new(seed: u64) -> World {
        // The order of all draws below is part of what a seed means: another order would change
        // every archive.
        let mut random = Random::keyed(seed, &[u64::from_le_bytes(*b"stations")]);
        let regions = Weighted::new(&REGIONS.map(|r| r.weight));
        let powers = Weighted::new(&POWERS.map(|p| p.1));
        let mut taken = HashSet::with_capacity(SENDERS + RECEIVERS);
        let mut station = |random: &mut Random, long_grid_share: f64| {
            let region = &REGIONS[regions.draw(random) as usize];
            let call = loop {
                let call = callsign(region, random);
                if taken.insert(call.clone()) {
                    break call;
                }
            };
            let latitude = region.centre.0 + random.bell() * region.spread.0;
            let longitude = region.centre.1 + random.bell() * region.spread.1;
            Station {
                call: call.into(),
                position: StationPosition::around(
                    latitude,
                    longitude,
                    random.chance(long_grid_share),
                ),
                power_dbm: POWERS[powers.draw(random) as usize].0,
                trait_bits: random.next(),
            }
        };
        // A plain WSPR message has room for four characters of the grid only; receivers know all
        // six.
        let senders: Vec<Station> = (0..SENDERS).map(|_| station(&mut random, 0.2)).collect();
        let mut receivers: Vec<Station> = (0..RECEIVERS - BOTH)
            .map(|_| station(&mut random, 0.8))
            .collect();
        receivers.extend((0..BOTH).map(|i| senders[i * (SENDERS / BOTH)].clone()));
        // The odds of hearing follow the order, so without a shuffle the receivers that also send
        // would all hear the least.
        for last in (1..receivers.len()).rev() {
            receivers.swap(last, random.below(last as u32 + 1) as usize);
        }
        World {
            senders,
            receivers,
            sender_odds: Weighted::new(&heavy_tail(SENDERS)),
            receiver_odds: Weighted::new(&heavy_tail(RECEIVERS)),
            band_odds: Weighted::new(&BANDS.map(|b| b.share)),
        }
    }
}

/// Weights by rank: the first five follow the counts of the seed document (106, 71, 59, 53, 49
/// million: one over the root of the rank), and the first has about one row in a hundred.
fn heavy_tail(count: usize) -> Vec<f64> {
    const KNEE: f64 = 50.0;
    (1..=count)
        .map(|rank| rank as f64)
        .map(|rank| {
            if rank <= KNEE {
                1.0 / rank.sqrt()
            } else {
                libm::pow(rank / KNEE, -0.97) / KNEE.sqrt()
            }
        })
        .collect()
}

/// A callsign of the region, sometimes that of a visitor (`TA4/G8SCU`) or with a suffix.
fn callsign(region: &Region, random: &mut Random) -> String {
    let home = plain_callsign(region, random);
    if !random.chance(0.02) {
        return home;
    }
    match random.below(4) {
        0 => {
            let host = &REGIONS[random.below(REGIONS.len() as u32) as usize];
            format!("{}{}/{home}", host.prefixes[0], random.below(10))
        }
        1 => home + "/QRP",
        2 => home + "/M",
        _ => home + "/P",
    }
}

fn plain_callsign(region: &Region, random: &mut Random) -> String {
    let prefix = region.prefixes[random.below(region.prefixes.len() as u32) as usize];
    let mut call = String::from(prefix);
    if !prefix.ends_with(|c: char| c.is_ascii_digit()) || prefix.len() < 3 {
        call.push(char::from(b'0' + random.below(10) as u8));
    }
    let letters = match random.below(100) {
        0..3 => 1,
        3..55 => 2,
        _ => 3,
    };
    for _ in 0..letters {
        call.push(char::from(b'A' + random.below(26) as u8));
    }
    call
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_world_has_a_hundred_thousand_calls_of_sixteen_bytes_at_most() {
        let world = World::new(1);
        let calls: HashSet<&str> = world
            .senders
            .iter()
            .chain(&world.receivers)
            .map(|s| &*s.call)
            .collect();
        assert_eq!(calls.len(), SENDERS + RECEIVERS - BOTH);
        assert!(calls.iter().all(|call| (3..=16).contains(&call.len())));
    }
}
