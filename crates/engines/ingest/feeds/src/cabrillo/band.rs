//! The first column of a contact: a frequency in kilohertz, or the name of a band.

use dyno_ingest::contract::band_of;

use crate::value::{shown, thousandths};

/// The band of a contact, and its frequency if the log has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Band {
    /// In Hz; `None` if the log only names the band.
    pub(super) frequency: Option<i64>,
    /// The code as in spots; 0 for a band without a code, and for a frequency outside all bands.
    pub(super) code: i32,
    /// The name that amateurs use, such as `20m`.
    pub(super) name: String,
}

/// The names that Cabrillo has for bands from 50 MHz on, with codes.
const NAMED: [(&str, i32); 19] = [
    ("50", 200),
    ("70", 201),
    ("144", 202),
    ("222", 203),
    ("432", 300),
    ("902", 301),
    ("1.2G", 302),
    ("2.3G", 303),
    ("3.4G", 400),
    ("5.7G", 401),
    ("10G", 402),
    ("24G", 0),
    ("47G", 0),
    ("75G", 0),
    ("119G", 0),
    ("122G", 0),
    ("134G", 0),
    ("142G", 0),
    ("241G", 0),
];

/// Bands by their codes, as amateurs say them.
const NAMES: [(i32, &str); 23] = [
    (100, "2190m"),
    (101, "630m"),
    (102, "160m"),
    (103, "80m"),
    (104, "60m"),
    (105, "40m"),
    (106, "30m"),
    (107, "20m"),
    (108, "17m"),
    (109, "15m"),
    (110, "12m"),
    (111, "10m"),
    (200, "6m"),
    (201, "4m"),
    (202, "2m"),
    (203, "1.25m"),
    (300, "70cm"),
    (301, "33cm"),
    (302, "23cm"),
    (303, "13cm"),
    (400, "9cm"),
    (401, "5cm"),
    (402, "3cm"),
];

fn name_of(code: i32) -> &'static str {
    NAMES
        .iter()
        .find(|(known, _)| *known == code)
        .map_or("", |(_, name)| name)
}

/// Parses the word. Adds a remark if it is in megahertz or gigahertz.
pub(super) fn band(word: &str, remarks: &mut Vec<&'static str>) -> Result<Band, String> {
    let named = |code: i32, name: &str| Band {
        frequency: None,
        code,
        name: if code == 0 {
            name.to_ascii_uppercase()
        } else {
            name_of(code).to_owned()
        },
    };
    if let Some(&(name, code)) = NAMED
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word))
    {
        return Ok(named(code, name));
    }
    if word.eq_ignore_ascii_case("LIGHT") || word.eq_ignore_ascii_case("300G") {
        return Ok(named(0, "LIGHT"));
    }
    let number = word.strip_suffix(['G', 'g']).unwrap_or(word);
    let thousandth = thousandths(number, "frequency")?;
    let positive = u64::try_from(thousandth).ok().filter(|&value| value > 0);
    let value = positive.ok_or_else(|| format!("frequency {} is not above 0", shown(word)))?;
    // Thousandths of a kilohertz are hertz; those of a megahertz and of a gigahertz are far from
    // them.
    if number.len() == word.len() {
        // As kilohertz the number must lie in a band. If it does not, the log may have meant
        // megahertz.
        let code = band_of(value);
        if code != 0 {
            return Ok(Band {
                frequency: Some(thousandth),
                code,
                name: name_of(code).to_owned(),
            });
        }
    }
    let (scale, remark) = if number.len() == word.len() {
        (1000, "megahertz")
    } else {
        (1_000_000, "gigahertz")
    };
    // A band named by its lower edge, "14" or "3.5", lies within the allocation; "7" and "28" do,
    // too.
    let code = value.checked_mul(scale).map_or(0, band_of);
    if code != 0 {
        remarks.push(remark);
        return Ok(named(code, ""));
    }
    // With a G behind it the word cannot be a frequency in kilohertz, so nothing is left that it
    // could mean.
    if scale == 1_000_000 {
        return Err(format!("{} is not a band", shown(word)));
    }
    Ok(Band {
        frequency: Some(thousandth),
        code: 0,
        name: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kilohertz_names_and_megahertz() {
        let cases = [
            ("14025", Some(14_025_000), 107, "20m", ""),
            ("7005.5", Some(7_005_500), 105, "40m", ""),
            ("144", None, 202, "2m", ""),
            ("144200", Some(144_200_000), 202, "2m", ""),
            ("1.2G", None, 302, "23cm", ""),
            ("10g", None, 402, "3cm", ""),
            ("24G", None, 0, "24G", ""),
            ("Light", None, 0, "LIGHT", ""),
            ("475", Some(475_000), 101, "630m", ""),
            ("14", None, 107, "20m", "megahertz"),
            ("1.8", None, 102, "160m", "megahertz"),
            ("1296", None, 302, "23cm", "megahertz"),
            ("1.3G", None, 302, "23cm", "gigahertz"),
            ("13000", Some(13_000_000), 0, "", ""),
        ];
        for (word, frequency, code, name, remark) in cases {
            let mut remarks = Vec::new();
            let found = band(word, &mut remarks).unwrap();
            let expected = Band {
                frequency,
                code,
                name: name.to_owned(),
            };
            assert_eq!(
                (found, remarks.join(",")),
                (expected, remark.to_owned()),
                "{word}"
            );
        }
        for word in ["", "20m", "-7", "0", "G", "9G"] {
            assert!(band(word, &mut Vec::new()).is_err(), "{word}");
        }
    }
}
