//! Finds the PostgreSQL programs to use, on this machine or in a named directory.

use std::env;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::PgError;

/// The supported major versions.
pub(crate) const MAJORS: std::ops::RangeInclusive<u32> = 15..=18;
/// How deep below a named directory the programs may be; an unpacked wheel needs four levels.
const DEPTH: u32 = 5;
const NEEDED: [&str; 2] = ["postgres", "initdb"];

/// A server's version; later versions compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The major version, 15 of 15.18.
    pub major: u32,
    /// The minor version, 18 of 15.18; 0 for a beta.
    pub minor: u32,
}

impl Version {
    /// Parses the output of `postgres --version`, such as `postgres (PostgreSQL) 15.18 (Debian
    /// 15.18-0+deb12u1)`.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text
            .split_once("(PostgreSQL)")?
            .1
            .split_whitespace()
            .next()?;
        let digits = |text: &str| {
            let end = text
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(text.len());
            text[..end].parse().ok()
        };
        let mut fields = number.split('.');
        let major = digits(fields.next()?)?;
        let minor = fields.next().and_then(digits).unwrap_or(0);
        Some(Self { major, minor })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The programs of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    bin: PathBuf,
    version: Version,
    lz4: bool,
}

/// Where to search. [`Places::system`] is this machine; tests make up their own.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The directory that `DYNO_PG_BIN` names; if set, no other is used.
    pub named: Option<PathBuf>,
    /// Directories with a subdirectory for each version, which has a `bin`, and the prefix of those
    /// subdirectories' names.
    pub roots: Vec<(PathBuf, &'static str)>,
    /// Directories that hold the programs themselves.
    pub bins: Vec<PathBuf>,
}

impl Places {
    /// The usual directories of Debian, Red Hat and a build from source, and `PATH`.
    pub fn system() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let mut bins = vec![PathBuf::from("/usr/local/pgsql/bin")];
        bins.extend(env::split_paths(&path));
        Self {
            named: env::var_os("DYNO_PG_BIN").map(PathBuf::from),
            roots: vec![
                (PathBuf::from("/usr/lib/postgresql"), ""),
                (PathBuf::from("/usr"), "pgsql-"),
            ],
            bins,
        }
    }

    fn candidates(&self) -> Vec<PathBuf> {
        let mut bins = Vec::new();
        for (root, prefix) in &self.roots {
            let entries = fs::read_dir(root).into_iter().flatten().flatten();
            let names = entries.filter(|e| e.file_name().to_string_lossy().starts_with(prefix));
            bins.extend(names.map(|entry| entry.path().join("bin")));
        }
        bins.extend(self.bins.iter().cloned());
        let mut real: Vec<PathBuf> = bins.iter().filter_map(|bin| behind_links(bin)).collect();
        real.dedup();
        real
    }

    fn describe(&self) -> String {
        let roots = self.roots.iter().map(|(root, prefix)| {
            let name = root.join(format!("{prefix}*/bin"));
            name.display().to_string()
        });
        let bins = self.bins.iter().map(|bin| bin.display().to_string());
        roots.chain(bins).collect::<Vec<_>>().join(", ")
    }
}

impl Installation {
    /// The installation in or below the directory `named`; without one, the newest supported one on
    /// this machine (see [`Places::system`]).
    ///
    /// # Errors
    /// [`PgError::NotFound`], [`PgError::Unsupported`], and [`PgError::Unusable`] for a named one.
    pub fn find(named: Option<&Path>) -> Result<Self, PgError> {
        Self::find_in(&Places::system(), named, None)
    }

    /// Like [`Installation::find`], in `places`, and only of major version `major` if it is given.
    ///
    /// # Errors
    /// As [`Installation::find`].
    pub fn find_in(
        places: &Places,
        named: Option<&Path>,
        major: Option<u32>,
    ) -> Result<Self, PgError> {
        let wanted = |found: &Self| major.is_none_or(|major| found.version.major == major);
        let usable = |found: &Self| MAJORS.contains(&found.version.major);
        let named = named.or(places.named.as_deref());
        let found: Vec<Self> = match named {
            Some(folder) => below(folder, DEPTH)
                .iter()
                .map(|bin| Self::probe(bin))
                .collect::<Result<_, _>>()?,
            // A broken one among several is skipped, because another may work.
            None => places
                .candidates()
                .iter()
                .filter_map(|bin| Self::probe(bin).ok())
                .collect(),
        };
        if found.is_empty() {
            return Err(match named {
                Some(folder) => PgError::Unusable {
                    path: folder.to_path_buf(),
                    reason: "there is no program 'postgres' in it".to_owned(),
                },
                None => PgError::NotFound {
                    looked: places.describe(),
                },
            });
        }
        let mut names: Vec<String> = found.iter().map(Self::to_string).collect();
        names.dedup();
        let fit = found
            .into_iter()
            .filter(|found| usable(found) && wanted(found));
        fit.max_by_key(|found| found.version)
            .ok_or_else(|| PgError::Unsupported {
                found: names.join(", "),
            })
    }

    fn probe(bin: &Path) -> Result<Self, PgError> {
        let unusable = |reason: String| PgError::Unusable {
            path: bin.to_path_buf(),
            reason,
        };
        for name in NEEDED {
            let program = bin.join(name);
            let Ok(metadata) = program.metadata() else {
                return Err(unusable(format!("there is no program '{name}' in it")));
            };
            if metadata.permissions().mode() & 0o111 == 0 {
                let advice = "a wheel unpacked by hand loses that bit";
                let reason = format!("'{name}' is not executable ({advice}: chmod +x all in it)");
                return Err(unusable(reason));
            }
        }
        let asked = Command::new(bin.join("postgres")).arg("--version").output();
        let output =
            asked.map_err(|error| unusable(format!("'postgres' does not run: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = Version::parse(&text).ok_or_else(|| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            unusable(format!(
                "'postgres --version' said {:?}",
                format!("{text}{stderr}").trim()
            ))
        })?;
        let built = Command::new(bin.join("pg_config"))
            .arg("--configure")
            .output();
        let lz4 = built.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains("--with-lz4"));
        Ok(Self {
            bin: bin.to_path_buf(),
            version,
            lz4,
        })
    }

    /// The path of one of its programs, such as `pgbench`. The program may not exist.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// The version that `postgres --version` printed.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether it reports that it was built with LZ4.
    pub fn has_lz4(&self) -> bool {
        self.lz4
    }
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {} in {}", self.version, self.bin.display())
    }
}

/// The directory that really holds the server in `bin`. If that is a link, the other programs are
/// beside its target and not beside the link.
fn behind_links(bin: &Path) -> Option<PathBuf> {
    let program = bin.join("postgres").canonicalize().ok()?;
    let real = program.parent()?;
    let whole = NEEDED.iter().all(|name| real.join(name).is_file());
    Some(if whole { real } else { bin }.to_path_buf())
}

/// Directories at or below `folder` that hold a program `postgres`.
fn below(folder: &Path, depth: u32) -> Vec<PathBuf> {
    if folder.is_file() {
        return folder.parent().map(Path::to_path_buf).into_iter().collect();
    }
    let here = folder.join("postgres");
    if here.is_file() {
        return vec![folder.to_path_buf()];
    }
    if depth == 0 {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    folders
        .iter()
        .flat_map(|inner| below(inner, depth - 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_server_prints() {
        let parse = |text| Version::parse(text).map(|v| (v.major, v.minor));
        let debian = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(parse(debian), Some((15, 18)));
        assert_eq!(parse("postgres (PostgreSQL) 18.4"), Some((18, 4)));
        assert_eq!(parse("postgres (PostgreSQL) 19beta2"), Some((19, 0)));
        assert_eq!(parse("postgres (EnterpriseDB)"), None);
    }
}
