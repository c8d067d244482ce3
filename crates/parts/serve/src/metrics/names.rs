//! The rules for names of metrics and labels ("Data model" of the Prometheus documentation).

use crate::error::ServeError;

/// Longest value of a label; a topic's name has at most 100 bytes.
const VALUE_BYTES: usize = 256;

pub(super) fn check_metric(name: &str) -> Result<(), ServeError> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let good = name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit());
    if good {
        return Ok(());
    }
    Err(bad(
        name,
        "a name has letters, digits and _, and begins with no digit",
    ))
}

/// Checks the labels of the metric `name`.
pub(super) fn check_labels(name: &str, labels: &[(&str, &str)]) -> Result<(), ServeError> {
    for (at, (label, value)) in labels.iter().enumerate() {
        check_metric(label)
            .map_err(|_| bad(name, format!("{label:?} is not a name of a label")))?;
        if label.starts_with("__") || *label == "le" || *label == "quantile" {
            return Err(bad(
                name,
                format!("label {label:?} is kept for Prometheus itself"),
            ));
        }
        if labels[..at].iter().any(|(other, _)| other == label) {
            return Err(bad(name, format!("label {label:?} comes twice")));
        }
        if value.len() > VALUE_BYTES {
            let length = value.len();
            return Err(bad(
                name,
                format!(
                    "the value of {label:?} has {length} bytes, at most {VALUE_BYTES} are good"
                ),
            ));
        }
    }
    Ok(())
}

pub(super) fn bad(name: &str, reason: impl Into<String>) -> ServeError {
    ServeError::Metric {
        name: name.to_owned(),
        reason: reason.into(),
    }
}
