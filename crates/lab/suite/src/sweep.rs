//! One case for each value of an axis.

/// A value of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AxisPoint {
    /// The axis, for example `rows`.
    pub(crate) name: String,
    pub(crate) value: f64,
    /// The value as it stands in case names.
    pub(crate) label: String,
}

impl AxisPoint {
    pub(crate) fn new(name: &str, value: f64) -> AxisPoint {
        AxisPoint {
            name: name.to_string(),
            value,
            label: label(value),
        }
    }
}

/// Writes a value so that it fits a kebab-case name: 1000000 is `1e6`, 2500000 is `25e5`,
/// 16 is `16`, 0.5 is `0p5`.
pub(crate) fn label(value: f64) -> String {
    if value.fract() != 0.0 || value.abs() >= 9e15 {
        return value.to_string().replace('.', "p");
    }
    let mut mantissa = value as i64;
    let mut zeros = 0;
    while mantissa != 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        zeros += 1;
    }
    if zeros >= 3 {
        format!("{mantissa}e{zeros}")
    } else {
        (value as i64).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn labels_fit_names() {
        for (value, expected) in [
            (1e6, "1e6"),
            (6e7, "6e7"),
            (2.5e6, "25e5"),
            (16.0, "16"),
            (100.0, "100"),
            (0.5, "0p5"),
            (0.0, "0"),
        ] {
            assert_eq!(label(value), expected);
        }
    }
}
