//! A contact: columns by whitespace and not by position, split at the second callsign, as the
//! exchange has as many words as the contest likes.

use super::band::{Band, band};
use super::words::{is_callsign, is_locator};
use crate::calendar::Day;
use crate::value::{day, day_of, shown};

/// One contact, with the values of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Qso {
    pub(super) moment_ms: i64,
    pub(super) band: Band,
    pub(super) mode: String,
    pub(super) sent_call: String,
    pub(super) sent_exchange: String,
    pub(super) rcvd_call: String,
    pub(super) rcvd_exchange: String,
    pub(super) transmitter: Option<u8>,
    pub(super) remarks: Option<String>,
}

/// The modes that Cabrillo knows.
const MODES: [&str; 5] = ["CW", "PH", "FM", "RY", "DG"];
/// Words before the exchange that was sent: frequency, mode, date, time, callsign.
const FRONT: usize = 5;
/// Words of a contact at most; a longer line is something else.
const WORDS_MAX: usize = 64;

/// Parses what follows the tag. `year` is that of the first contact of the log, which this sets.
pub(super) fn parse(
    text: &str,
    mut remarks: Vec<&'static str>,
    year: &mut Option<u16>,
) -> Result<Qso, String> {
    // A line may have thousands of words; one more than allowed is enough to know it.
    let words: Vec<&str> = text.split_whitespace().take(WORDS_MAX + 1).collect();
    if words.len() > WORDS_MAX {
        return Err(format!("it has more than {WORDS_MAX} words"));
    }
    let [frequency, mode, date, time, sent_call, rest @ ..] = &words[..] else {
        return Err(format!(
            "it has {} words, not frequency, mode, date, time and callsign",
            words.len()
        ));
    };
    let band = band(frequency, &mut remarks)?;
    // A known mode in small letters is that mode; any other stays as the log has it.
    let known = MODES.iter().find(|known| known.eq_ignore_ascii_case(mode));
    if known.is_none() {
        remarks.push("mode");
    }
    let mode = known.unwrap_or(mode).to_string();
    let (day, of_year) = date_of(date, &mut remarks)?;
    let minutes = minutes_of(time, &mut remarks)?;
    let first = *year.get_or_insert(of_year);
    // A contest may pass midnight of the last of December.
    if first.abs_diff(of_year) > 1 {
        remarks.push("off-year");
    }
    let second = second_call(rest)
        .ok_or_else(|| format!("no word behind the first {FRONT} is a callsign"))?;
    let (sent, received) = (&rest[..second], &rest[second + 1..]);
    let (received, transmitter) = match received {
        // One word more than was sent is the number of the transmitter.
        [exchange @ .., "0"] if received.len() == sent.len() + 1 => (exchange, Some(0)),
        [exchange @ .., "1"] if received.len() == sent.len() + 1 => (exchange, Some(1)),
        all => (all, None),
    };
    Ok(Qso {
        moment_ms: day.start_ms() + minutes * 60_000,
        band,
        mode,
        sent_call: sent_call.to_ascii_uppercase(),
        sent_exchange: sent.join(" "),
        rcvd_call: rest[second].to_ascii_uppercase(),
        rcvd_exchange: received.join(" "),
        transmitter,
        remarks: (!remarks.is_empty()).then(|| remarks.join(",")),
    })
}

/// The position of the other station's callsign. Of several words that could be one, the best has
/// as many words behind it as before it (or one more, the transmitter); then a word that is not a
/// locator; then the first.
fn second_call(words: &[&str]) -> Option<usize> {
    let candidates = words
        .iter()
        .enumerate()
        .filter(|(_, word)| is_callsign(word));
    candidates
        .min_by_key(|(at, word)| {
            let (before, behind) = (*at, words.len() - at - 1);
            let balanced = behind == before || behind == before + 1;
            (!balanced, is_locator(word), *at)
        })
        .map(|(at, _)| at)
}

/// The day, and its year. Other orders than year, month, day are taken where they can mean one day
/// only.
fn date_of(word: &str, remarks: &mut Vec<&'static str>) -> Result<(Day, u16), String> {
    let refused = || format!("date {} is not YYYY-MM-DD", shown(word));
    let year_of = |text: &str| text.parse::<u16>().map_err(|_| refused());
    if let Some(found) = day(word, b'-') {
        return Ok((found, year_of(&word[..4])?));
    }
    let parts: Vec<&str> = if word.len() == 8 && word.bytes().all(|b| b.is_ascii_digit()) {
        vec![&word[..4], &word[4..6], &word[6..]]
    } else {
        word.split(['-', '/', '.']).collect()
    };
    let [first, middle, last] = parts[..] else {
        return Err(refused());
    };
    remarks.push("date-form");
    if first.len() == 4 {
        return Ok((
            day_of(first, middle, last).ok_or_else(refused)?,
            year_of(first)?,
        ));
    }
    if last.len() != 4 || first.len() > 2 || middle.len() > 2 {
        return Err(refused());
    }
    // Day first and month first are both in use. A date that is valid in both orders is refused,
    // because a guess would be wrong half of the time.
    let found = match (day_of(last, middle, first), day_of(last, first, middle)) {
        (Some(one), Some(other)) if one != other => {
            return Err(format!("date {} can be two days", shown(word)));
        }
        (Some(found), _) | (None, Some(found)) => found,
        (None, None) => return Err(refused()),
    };
    Ok((found, year_of(last)?))
}

/// Minutes since midnight of `hhmm`, or of `hh:mm`.
fn minutes_of(word: &str, remarks: &mut Vec<&'static str>) -> Result<i64, String> {
    let refused = || format!("time {} is not hhmm", shown(word));
    let digits = match word.split_once(':') {
        Some((hours, minutes)) if hours.len() == 2 && minutes.len() == 2 => {
            remarks.push("time-form");
            format!("{hours}{minutes}")
        }
        Some(_) => return Err(refused()),
        None => word.to_owned(),
    };
    if digits.len() != 4 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(refused());
    }
    let number: i64 = digits.parse().map_err(|_| refused())?;
    let (hours, minutes) = (number / 100, number % 100);
    if hours > 23 || minutes > 59 {
        return Err(refused());
    }
    Ok(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Qso, String> {
        parse(text, Vec::new(), &mut None)
    }

    fn calls(text: &str) -> (String, String, String, Option<u8>) {
        let qso = read(text).unwrap();
        (
            qso.sent_exchange,
            qso.rcvd_call,
            qso.rcvd_exchange,
            qso.transmitter,
        )
    }

    fn expected(
        sent: &str,
        call: &str,
        received: &str,
        t: Option<u8>,
    ) -> (String, String, String, Option<u8>) {
        (sent.to_owned(), call.to_owned(), received.to_owned(), t)
    }

    #[test]
    fn the_second_callsign_splits_exchanges_of_any_length() {
        let front = "21042 CW 1997-11-01 2102 N5KO";
        for (rest, is) in [
            (
                "599 05 K9QZO 599 04 0",
                expected("599 05", "K9QZO", "599 04", Some(0)),
            ),
            (
                "3 B 74 STX K9ZO 2 A 69 IL",
                expected("3 B 74 STX", "K9ZO", "2 A 69 IL", None),
            ),
            ("FN31 K1ABC FN42", expected("FN31", "K1ABC", "FN42", None)),
            (
                "FN31PR W1AW FN31PR",
                expected("FN31PR", "W1AW", "FN31PR", None),
            ),
            (
                "59 001 FN31PR W1AW 59 002 FN31PR 1",
                expected("59 001 FN31PR", "W1AW", "59 002 FN31PR", Some(1)),
            ),
            (
                "1D EMA VE3XYZ/QRP 2A ONE",
                expected("1D EMA", "VE3XYZ/QRP", "2A ONE", None),
            ),
            ("K1ABC", expected("", "K1ABC", "", None)),
        ] {
            assert_eq!(calls(&format!("{front} {rest}")), is, "{rest}");
        }
        assert!(read(&format!("{front} 599 05 599 04")).is_err());
        assert!(read("21042 CW 1997-11-01 2102").is_err());
    }

    /// Programs write modes that Cabrillo does not know; only its own are put into capitals.
    #[test]
    fn a_mode_is_one_of_cabrillos_or_what_the_log_has() {
        for (given, mode, remarks) in [
            ("cw", "CW", None),
            ("Ph", "PH", None),
            ("CW/Digital", "CW/Digital", Some("mode")),
            ("digital", "digital", Some("mode")),
        ] {
            let text = format!("14000 {given} 2023-01-01 0000 K1ABC 599 MA K2DEF 599 NY");
            let qso = read(&text).unwrap();
            assert_eq!((qso.mode.as_str(), qso.remarks.as_deref()), (mode, remarks));
            assert_eq!(
                (qso.sent_exchange.as_str(), qso.rcvd_call.as_str()),
                ("599 MA", "K2DEF")
            );
            assert_eq!(qso.rcvd_exchange, "599 NY");
        }
    }

    #[test]
    fn dates_in_other_forms_are_taken_where_they_mean_one_day() {
        let day_of = |date: &str| {
            read(&format!("7 CW {date} 0000 K1A 599 K2B 599"))
                .map(|qso| Day::from_ms(qso.moment_ms).to_string())
        };
        for date in [
            "2023-11-25",
            "20231125",
            "2023/11/25",
            "25-11-2023",
            "11/25/2023",
            "25.11.2023",
            "2023-11-25",
        ] {
            assert_eq!(day_of(date).as_deref(), Ok("2023-11-25"), "{date}");
        }
        assert_eq!(day_of("05-05-2023").as_deref(), Ok("2023-05-05"));
        assert!(day_of("05-06-2023").unwrap_err().contains("two days"));
        for date in ["23-11-25", "2023-13-01", "2023-02-30", "25-11", "x"] {
            assert!(day_of(date).is_err(), "{date}");
        }
    }

    #[test]
    fn a_year_that_is_not_the_logs_is_kept_and_remarked() {
        let mut year = None;
        let mut remarks = |date: &str| {
            let text = format!("7005 CW {date} 0000 K1A 599 K2B 599");
            parse(&text, Vec::new(), &mut year).unwrap().remarks
        };
        assert_eq!(remarks("2023-12-31"), None);
        assert_eq!(remarks("2024-01-01"), None);
        assert_eq!(remarks("2032-11-25").as_deref(), Some("off-year"));
    }
}
