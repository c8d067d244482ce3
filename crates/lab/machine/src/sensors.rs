//! Clocks and temperatures of the processors, by reads that cost some microseconds each, so that
//! they can be taken around every sample.

use std::collections::BTreeMap;

use dyno_record::{Sensed, Span};

use crate::root::{Root, value_of};

const CPUS: &str = "sys/devices/system/cpu";
const ZONES: &str = "sys/class/thermal";
const CHIPS: &str = "sys/class/hwmon";

/// Drivers whose sensors lie in a processor.
const PROCESSOR_CHIPS: [&str; 5] = [
    "coretemp",
    "k10temp",
    "zenpower",
    "cpu_thermal",
    "scpi_sensors",
];

/// Readings outside of these, in thousandths of a degree, are those of a sensor that is not there:
/// firmware answers 0 or absolute zero for it.
const PLAUSIBLE: std::ops::RangeInclusive<i64> = 1_000..=150_000;

/// Where the sensors of a machine are. They are looked for once, so that a reading touches no file
/// in vain.
#[derive(Debug, Clone)]
pub struct Sensors {
    root: Root,
    clocks: Option<Clocks>,
    /// Files with thousandths of a degree.
    temperatures: Vec<String>,
}

#[derive(Debug, Clone)]
enum Clocks {
    /// Files with kHz, one for each processor that is online.
    Cpufreq(Vec<String>),
    /// The lines `cpu MHz` of /proc/cpuinfo.
    Cpuinfo,
}

/// What the sensors show at one moment; empty where nothing can be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Readings {
    /// MHz of each logical processor that shows its clock.
    pub clocks_mhz: Vec<f64>,
    /// Degrees Celsius of each sensor that gave a plausible reading.
    pub temperatures_c: Vec<f64>,
}

impl Readings {
    /// These and later ones together.
    pub fn and(&self, later: &Readings) -> Sensed {
        let both = |a: &[f64], b: &[f64]| Span::from_values(a.iter().chain(b).copied());
        Sensed {
            clock_mhz: both(&self.clocks_mhz, &later.clocks_mhz),
            temperature_c: both(&self.temperatures_c, &later.temperatures_c),
        }
    }
}

impl Sensors {
    /// Looks for the sensors of a machine.
    pub fn find(root: Root) -> Sensors {
        let clocks = clocks(&root);
        let temperatures = temperatures(&root);
        Sensors {
            root,
            clocks,
            temperatures,
        }
    }

    /// Reads all of them. A sensor that cannot be read any more is left out.
    pub fn read(&self) -> Readings {
        let clocks_mhz = match &self.clocks {
            None => Vec::new(),
            Some(Clocks::Cpufreq(files)) => files
                .iter()
                .filter_map(|file| Some(self.root.number(file)? as f64 / 1e3))
                .collect(),
            Some(Clocks::Cpuinfo) => cpuinfo_mhz(&self.root),
        };
        let temperatures = self.temperatures.iter();
        Readings {
            clocks_mhz,
            temperatures_c: temperatures
                .filter_map(|file| temperature_c(&self.root, file))
                .collect(),
        }
    }

    /// What is not available, with the reason: `clock`, `temperature`.
    pub fn unread(&self) -> BTreeMap<String, String> {
        let mut unread = BTreeMap::new();
        if self.clocks.is_none() {
            let reason = "the kernel shows neither cpufreq nor the clock in /proc/cpuinfo";
            unread.insert("clock".to_owned(), reason.to_owned());
        }
        if self.temperatures.is_empty() {
            let reason = "no thermal zone and no sensor of hwmon shows one, as is usual in virtual \
                          machines";
            unread.insert("temperature".to_owned(), reason.to_owned());
        }
        unread
    }
}

fn clocks(root: &Root) -> Option<Clocks> {
    let cpus = root.names(CPUS).into_iter();
    let files: Vec<String> = cpus
        .map(|cpu| format!("{CPUS}/{cpu}/cpufreq/scaling_cur_freq"))
        .filter(|file| root.number(file).is_some())
        .collect();
    if !files.is_empty() {
        return Some(Clocks::Cpufreq(files));
    }
    (!cpuinfo_mhz(root).is_empty()).then_some(Clocks::Cpuinfo)
}

fn cpuinfo_mhz(root: &Root) -> Vec<f64> {
    let info = root.text("proc/cpuinfo").unwrap_or_default();
    info.lines()
        .filter_map(|line| value_of(line, "cpu MHz")?.parse().ok())
        .filter(|mhz: &f64| *mhz > 0.0)
        .collect()
}

/// Sensors of the processors where some are known to be theirs, else all thermal zones, else all
/// sensors: a disk or a battery says little about the clock, but a machine that shows nothing else
/// may still show by it that it is hot.
fn temperatures(root: &Root) -> Vec<String> {
    let chips = chip_files(root);
    let of_processors: Vec<String> = chips
        .iter()
        .filter(|(chip, _)| PROCESSOR_CHIPS.contains(&chip.as_str()))
        .map(|(_, file)| file.clone())
        .collect();
    if !of_processors.is_empty() {
        return of_processors;
    }
    let zones = root.names(ZONES).into_iter();
    let zones: Vec<String> = zones
        .filter(|zone| zone.starts_with("thermal_zone"))
        .map(|zone| format!("{ZONES}/{zone}/temp"))
        .filter(|file| temperature_c(root, file).is_some())
        .collect();
    if !zones.is_empty() {
        return zones;
    }
    chips.into_iter().map(|(_, file)| file).collect()
}

/// Files of temperatures below hwmon, each with the name of its driver.
fn chip_files(root: &Root) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for chip in root.names(CHIPS) {
        let driver = root
            .text(&format!("{CHIPS}/{chip}/name"))
            .unwrap_or_default();
        for name in root.names(&format!("{CHIPS}/{chip}")) {
            let file = format!("{CHIPS}/{chip}/{name}");
            let is_input = name.starts_with("temp") && name.ends_with("_input");
            if is_input && temperature_c(root, &file).is_some() {
                files.push((driver.clone(), file));
            }
        }
    }
    files
}

fn temperature_c(root: &Root, file: &str) -> Option<f64> {
    let thousandths: i64 = root.text(file)?.parse().ok()?;
    PLAUSIBLE
        .contains(&thousandths)
        .then_some(thousandths as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }

    #[test]
    fn clocks_come_from_cpufreq_and_temperatures_from_the_processors() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = dir.path();
        write(
            at,
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
            "2400000\n",
        );
        write(
            at,
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq",
            "3100000\n",
        );
        write(at, "proc/cpuinfo", "processor : 0\ncpu MHz : 1.0\n");
        write(at, "sys/class/hwmon/hwmon0/name", "nvme\n");
        write(at, "sys/class/hwmon/hwmon0/temp1_input", "33000\n");
        write(at, "sys/class/hwmon/hwmon1/name", "k10temp\n");
        write(at, "sys/class/hwmon/hwmon1/temp1_input", "61500\n");
        write(at, "sys/class/hwmon/hwmon1/temp2_input", "-273000\n");
        write(at, "sys/class/thermal/thermal_zone0/temp", "40000\n");
        let sensors = Sensors::find(Root::at(at));
        assert!(sensors.unread().is_empty());
        let before = sensors.read();
        assert_eq!(before.clocks_mhz, [2_400.0, 3_100.0]);
        assert_eq!(before.temperatures_c, [61.5]);
        write(at, "sys/class/hwmon/hwmon1/temp1_input", "70000\n");
        fs::remove_file(at.join("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq"))
            .expect("gone offline");
        let sensed = before.and(&sensors.read());
        let clock = sensed.clock_mhz.expect("readable");
        assert_eq!((clock.min, clock.max), (2_400.0, 3_100.0));
        assert_eq!(sensed.temperature_c.expect("readable").max, 70.0);
    }

    #[test]
    fn a_virtual_machine_shows_its_clock_in_cpuinfo_and_no_temperature() {
        let dir = tempfile::tempdir().expect("a directory");
        let info = "processor : 0\ncpu MHz\t\t: 2299.998\n\nprocessor : 1\ncpu MHz\t\t: 2300.5\n";
        write(dir.path(), "proc/cpuinfo", info);
        let sensors = Sensors::find(Root::at(dir.path()));
        assert_eq!(sensors.read().clocks_mhz, [2_299.998, 2_300.5]);
        let unread = sensors.unread();
        assert!(
            unread["temperature"].contains("no thermal zone"),
            "{unread:?}"
        );
        assert!(!unread.contains_key("clock"));
        let sensed = sensors.read().and(&sensors.read());
        assert_eq!(sensed.temperature_c, None);
    }

    #[test]
    fn thermal_zones_count_where_no_chip_is_a_processors() {
        let dir = tempfile::tempdir().expect("a directory");
        write(
            dir.path(),
            "sys/class/thermal/thermal_zone0/temp",
            "48000\n",
        );
        write(
            dir.path(),
            "sys/class/thermal/cooling_device0/temp",
            "99000\n",
        );
        write(dir.path(), "sys/class/hwmon/hwmon0/name", "nvme\n");
        write(dir.path(), "sys/class/hwmon/hwmon0/temp1_input", "33000\n");
        let sensors = Sensors::find(Root::at(dir.path()));
        assert_eq!(sensors.read().temperatures_c, [48.0]);
        assert!(sensors.unread()["clock"].contains("cpufreq"));
    }
}
