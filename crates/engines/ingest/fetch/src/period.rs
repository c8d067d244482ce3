//! The archives of a period.

use dyno_ingest_feeds::calendar::{Day, is_day};

use crate::FetchError;

/// A feed whose archives are published one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// One file for each month, from 2008-03.
    Wspr,
    /// One file for each day, from 2009-02-21.
    Rbn,
}

/// Successive days or months of one feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    feed: Published,
    /// The first day of each file, in order.
    starts: Vec<Day>,
}

/// The most files of a period, which is more than either feed has published.
const FILES_MAX: usize = 20_000;

impl Published {
    /// The feed of that name; `None` if its archives are not published one by one.
    pub fn named(name: &str) -> Option<Published> {
        [Published::Wspr, Published::Rbn]
            .into_iter()
            .find(|feed| feed.name() == name)
    }

    /// The name that commands and the ledger use.
    pub fn name(self) -> &'static str {
        match self {
            Published::Wspr => "wspr",
            Published::Rbn => "rbn",
        }
    }

    /// The URL of the folder of its archives, which ends in a slash.
    pub fn address(self) -> &'static str {
        match self {
            Published::Wspr => "https://wsprnet.org/archive/",
            Published::Rbn => "https://data.reversebeacon.net/rbn_history/",
        }
    }

    fn first(self) -> Day {
        match self {
            Published::Wspr => Day::new(2008, 3, 1),
            Published::Rbn => Day::new(2009, 2, 21),
        }
    }

    /// The first day of the file after the one that begins at `start`.
    fn next(self, start: Day) -> Day {
        match self {
            Published::Rbn => start.plus(1),
            Published::Wspr => {
                // From the first of a month, 31 days later is in the next one.
                let later = start.plus(31);
                later.plus(1 - i64::from(later.date().2))
            }
        }
    }

    /// The first day of the file that has `day`.
    fn start_of(self, day: Day) -> Day {
        match self {
            Published::Rbn => day,
            Published::Wspr => day.plus(1 - i64::from(day.date().2)),
        }
    }

    fn file_name(self, start: Day) -> String {
        let (year, month, day) = start.date();
        match self {
            Published::Wspr => format!("wsprspots-{year:04}-{month:02}.csv.gz"),
            Published::Rbn => format!("{year:04}{month:02}{day:02}.zip"),
        }
    }
}

impl Period {
    /// Reads `2026-01`, `2026-01-15`, `2026-01..2026-03` or `2026-01..`, which ends with `today`.
    ///
    /// # Errors
    /// [`FetchError::Period`].
    pub fn parse(feed: Published, text: &str, today: Day) -> Result<Period, FetchError> {
        let wrong = |reason: String| FetchError::Period {
            text: text.to_owned(),
            feed: feed.name(),
            reason,
        };
        let (from, to) = match text.split_once("..") {
            Some((from, to)) => (from, Some(to)),
            None => (text, None),
        };
        let (first, of_from) = ends(from).map_err(wrong)?;
        let last = match to {
            None => of_from,
            Some("") => today,
            Some(to) => ends(to).map_err(wrong)?.1,
        };
        if first < feed.first() && feed.start_of(first) < feed.start_of(feed.first()) {
            return Err(wrong(format!("there is nothing before {}", feed.first())));
        }
        let mut starts = Vec::new();
        let mut start = feed.start_of(first);
        while start <= last && starts.len() <= FILES_MAX {
            starts.push(start);
            start = feed.next(start);
        }
        if starts.is_empty() {
            return Err(wrong("it ends before it begins".to_owned()));
        }
        if starts.len() > FILES_MAX {
            return Err(wrong(format!("it has more than {FILES_MAX} files")));
        }
        Ok(Period { feed, starts })
    }

    /// The names of the files, the oldest first.
    pub fn files(&self) -> Vec<String> {
        self.starts
            .iter()
            .map(|&start| self.feed.file_name(start))
            .collect()
    }
}

/// The first and the last day of a month or of a day.
fn ends(text: &str) -> Result<(Day, Day), String> {
    let refused = || format!("{text:?} is neither YYYY-MM nor YYYY-MM-DD");
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    if !matches!(lengths[..], [4, 2] | [4, 2, 2]) {
        return Err(refused());
    }
    let number = |at: usize| {
        let plain = parts[at].bytes().all(|byte| byte.is_ascii_digit());
        plain
            .then(|| parts[at].parse::<u16>().ok())
            .flatten()
            .ok_or_else(refused)
    };
    let (year, month) = (number(0)?, number(1)?);
    if parts.len() == 3 {
        let day = number(2)?;
        if !is_day(year, month, day) {
            return Err(format!("there is no day {text}"));
        }
        let day = Day::new(year, month, day);
        return Ok((day, day));
    }
    let last = (28..=31).rev().find(|&day| is_day(year, month, day));
    let last = last.ok_or_else(|| format!("there is no month {text}"))?;
    Ok((Day::new(year, month, 1), Day::new(year, month, last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(feed: Published, text: &str) -> Result<Vec<String>, String> {
        let period = Period::parse(feed, text, Day::new(2026, 3, 2));
        period
            .map(|period| period.files())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn periods_have_their_files() {
        let months = |text: &str| files(Published::Wspr, text).unwrap();
        assert_eq!(months("2023-12"), ["wsprspots-2023-12.csv.gz"]);
        assert_eq!(months("2026-01.."), months("2026-01..2026-03"));
        assert_eq!(months("2025-11..2026-02").len(), 4);
        assert_eq!(months("2008-03..2008-03-20"), ["wsprspots-2008-03.csv.gz"]);
        let days = |text: &str| files(Published::Rbn, text).unwrap();
        assert_eq!(days("2024-02").len(), 29);
        assert_eq!(days("2024-02").last().unwrap(), "20240229.zip");
        assert_eq!(
            days("2026-02-28.."),
            ["20260228.zip", "20260301.zip", "20260302.zip"]
        );
        assert_eq!(days("2009-02-21"), ["20090221.zip"]);
    }

    #[test]
    fn what_is_no_period_is_refused_in_words() {
        for (text, part) in [
            ("", "neither"),
            ("2026", "neither"),
            ("2026-1", "neither"),
            ("2026-13", "no month"),
            ("2026-02-30", "no day"),
            ("2026-02..2026-01", "ends before"),
            ("1999-01", "nothing before"),
            ("0000-01..9999-12", "nothing before"),
            ("2009-02-21..9999-12", "more than"),
        ] {
            let said = files(Published::Rbn, text).unwrap_err();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
