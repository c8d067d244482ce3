//! A running server's settings beside the advice for its machine.

use postgres::Client;

use super::{Advice, settings};
use crate::error::PgError;
use crate::machine_size::MachineSize;

/// A setting of a server that differs from the advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The setting's name, as in `postgresql.conf`.
    pub name: &'static str,
    /// The server's value, with its unit.
    pub has: String,
    /// The advised value, as in `postgresql.conf`.
    pub suggested: String,
    /// The reason for the advised value, a sentence.
    pub why: String,
    /// Whether a change needs the server to be restarted.
    pub needs_restart: bool,
    /// Whether the difference can lose acknowledged records, and does not only cost speed.
    pub endangers_data: bool,
}

/// Settings of which only a lower value than the advised one is a difference, because more is as
/// good.
const AT_LEAST: [&str; 9] = [
    "shared_buffers",
    "wal_buffers",
    "max_wal_size",
    "min_wal_size",
    "max_connections",
    "max_wal_senders",
    "max_replication_slots",
    "max_locks_per_transaction",
    "effective_cache_size",
];
const DURABILITY: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];

/// Compares the server of `client` with the advice for a machine of `size`, which is the machine
/// that the server runs on.
///
/// # Errors
/// When the server does not answer.
pub fn compare(client: &mut Client, size: &MachineSize) -> Result<Vec<Difference>, PgError> {
    // The value that the server would give any session. This session's own may differ, as those of
    // keepalives do on a Unix socket.
    let ask = "SELECT name, coalesce(reset_val, ''), unit, CASE WHEN setting = reset_val THEN current_setting(name) \
               ELSE reset_val || coalesce(unit, '') END, enumvals FROM pg_settings";
    let rows = client
        .query(ask, &[])
        .map_err(PgError::statement("read the server's settings"))?;
    let lz4 = rows.iter().any(|row| {
        let values: Option<Vec<String>> = row.get(4);
        row.get::<_, &str>(0) == "wal_compression"
            && values.is_some_and(|v| v.iter().any(|v| v == "lz4"))
    });
    let mut differences = Vec::new();
    for advice in settings(size, lz4) {
        // A setting that this server's version does not know cannot be set on it.
        let Some(row) = rows.iter().find(|row| row.get::<_, &str>(0) == advice.name) else {
            continue;
        };
        let possible: Option<Vec<String>> = row.get(4);
        if possible.is_some_and(|values| !values.contains(&advice.value)) {
            continue;
        }
        if agrees(&advice, row.get(1), row.get(2)) {
            continue;
        }
        differences.push(Difference {
            name: advice.name,
            has: row.get(3),
            suggested: advice.value,
            why: advice.why,
            needs_restart: advice.needs_restart,
            endangers_data: DURABILITY.contains(&advice.name),
        });
    }
    Ok(differences)
}

/// Whether the server's `setting`, a count of `unit`s, is as advised.
fn agrees(advice: &Advice, setting: &str, unit: Option<&str>) -> bool {
    let (Some(has), Some(wanted)) = (amount(setting, unit), amount(&advice.value, unit)) else {
        // remote_apply promises all that `on` does, and more.
        let more = advice.name == "synchronous_commit" && setting == "remote_apply";
        return more || setting.eq_ignore_ascii_case(&advice.value);
    };
    if AT_LEAST.contains(&advice.name) {
        return has >= wanted;
    }
    (has - wanted).abs() <= f64::EPSILON * wanted.abs()
}

/// A value in the smallest unit of its kind (bytes, milliseconds). A bare number counts `unit`s, as
/// in `pg_settings`, where a unit may have a factor of its own: `8kB`.
fn amount(value: &str, unit: Option<&str>) -> Option<f64> {
    let end = value
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .unwrap_or(value.len());
    let number: f64 = value[..end].parse().ok()?;
    let own = value[end..].trim();
    let factor = |name: &str| {
        Some(match name {
            "" | "B" | "ms" => 1.0,
            "kB" => 1024.0,
            "MB" => 1024.0 * 1024.0,
            "GB" => 1024.0 * 1024.0 * 1024.0,
            "s" => 1000.0,
            "min" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return None,
        })
    };
    if !own.is_empty() {
        return Some(number * factor(own)?);
    }
    let unit = unit.unwrap_or("");
    let digits = unit.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let times: f64 = unit[..digits].parse().unwrap_or(1.0);
    Some(number * times * factor(&unit[digits..])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_with_and_without_units_compare() {
        let mib = 1024.0 * 1024.0;
        assert_eq!(amount("16384", Some("8kB")), Some(128.0 * mib));
        assert_eq!(amount("128MB", Some("8kB")), Some(128.0 * mib));
        assert_eq!(amount("900", Some("s")), amount("15min", Some("s")));
        assert_eq!(amount("0.9", None), Some(0.9));
        assert_eq!(amount("on", None), None);
    }

    #[test]
    fn more_memory_than_advised_is_no_difference() {
        let advice = |name, value: &str| Advice {
            name,
            value: value.to_owned(),
            why: String::new(),
            needs_restart: false,
        };
        assert!(agrees(
            &advice("shared_buffers", "128MB"),
            "32768",
            Some("8kB")
        ));
        assert!(!agrees(
            &advice("shared_buffers", "128MB"),
            "8192",
            Some("8kB")
        ));
        assert!(!agrees(&advice("fsync", "on"), "off", None));
        assert!(agrees(
            &advice("synchronous_commit", "on"),
            "remote_apply",
            None
        ));
    }
}
