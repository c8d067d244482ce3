//! Version strings of receiving software and how they change over the years.

use super::calendar::Month;

/// (first year, first month, what it reports); strings stay within 8 bytes, longer ones are quirks.
type History = &'static [(u16, u8, &'static str)];

/// The desktop program, which all stations used before the other families existed. The archive has
/// no versions before December 2010.
const DESKTOP: History = &[
    (2008, 3, ""),
    (2010, 12, "2.0"),
    (2011, 8, "2.11"),
    (2013, 9, "4.0"),
    (2015, 1, "1.4"),
    (2016, 5, "1.6.0"),
    (2017, 10, "1.8.0"),
    (2018, 12, "2.0.0"),
    (2020, 2, "2.1.2"),
    (2020, 7, "2.2.2"),
    (2021, 2, "2.3.0"),
    (2021, 11, "2.5.2"),
    (2022, 7, "2.5.4"),
    (2023, 1, "2.6.1"),
    (2025, 2, "2.7.0"),
];

/// A receiver on a single board with its own decoder.
const BOARD: History = &[
    (2017, 1, "1.1 Kiwi"),
    (2018, 6, "1.2 Kiwi"),
    (2020, 3, "1.3 Kiwi"),
    (2023, 6, "1.4 Kiwi"),
];

/// A service that decodes many bands at once.
const SERVICE: History = &[
    (2019, 9, "WD_2.5a"),
    (2020, 10, "WD_2.10d"),
    (2022, 3, "WD_3.0.1"),
    (2023, 4, "WD_3.0.8"),
    (2024, 5, "WD_3.2.0"),
];

/// A cheap receiver stick.
const STICK: History = &[
    (2017, 6, "0.2"),
    (2019, 3, "0.3"),
    (2021, 5, "0.4.2"),
    (2023, 8, "0.5.2"),
];

/// How many of 100 receivers run each family; the others report nothing.
const FAMILIES: [(u64, History); 4] = [(44, DESKTOP), (20, BOARD), (20, SERVICE), (9, STICK)];

/// What a receiver reports in a month. `trait_bits` are the receiver's own: they pick its family
/// and how many months it takes to upgrade.
pub(super) fn version(trait_bits: u64, month: Month) -> &'static str {
    let delay = (trait_bits >> 32) as u32 % 14;
    let mut ticket = trait_bits % 100;
    for (share, history) in FAMILIES {
        if ticket < share {
            let known = |history: History| {
                history.iter().rev().find(|(year, first, _)| {
                    Month {
                        year: *year,
                        month: *first,
                    }
                    .plus(delay)
                        <= month
                })
            };
            // Before its family existed, a station ran the desktop program.
            let newest = known(history).or_else(|| known(DESKTOP));
            return newest.map_or("", |(_, _, text)| text);
        }
        ticket -= share;
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_advance_and_stay_short() {
        let at = |year, month| version(0, Month { year, month });
        assert_eq!(at(2009, 1), "");
        assert_eq!(at(2016, 5), "1.6.0");
        assert_eq!(at(2024, 6), "2.6.1");
        for (_, history) in FAMILIES {
            assert!(history.iter().all(|(_, _, text)| text.len() <= 8));
        }
    }
}
