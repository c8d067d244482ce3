//! Small text files in an engine's directory: a line with a name and a version, a line for each
//! field, and a seal, which is the checksum of everything before it
//! (docs/formats/txn-directory.md).

use std::fmt::Display;
use std::fs;
use std::io::Write;
use std::path::Path;

use dyno_io::{FileSystem, HostFiles};
use dyno_txn_api::{Code, Error, Result};

use crate::error::unavailable;

/// Length of the last line: `checksum`, a space, eight hexadecimal digits and a line feed.
const SEAL_BYTES: usize = 18;

/// One kind of such file.
pub(crate) struct Sealed {
    /// Its name in the directory.
    pub file: &'static str,
    /// The name in its first line.
    pub name: &'static str,
    /// The version that is written, and the newest that is read.
    pub version: u32,
}

/// The lines between the first one and the seal. They must be read in their order.
pub(crate) struct Fields<'a>(std::str::Lines<'a>);

impl<'a> Fields<'a> {
    /// The value of the next line, which must have this name.
    pub fn text(&mut self, name: &str) -> Result<&'a str> {
        let line = self.0.next();
        line.and_then(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .ok_or_else(|| damaged(format!("the line `{name}` is not where it should be")))
    }

    /// The same, as a number.
    pub fn number(&mut self, name: &str) -> Result<u64> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|_| damaged(format!("`{name}` is not a number")))
    }
}

impl Sealed {
    /// Reads the directory's file. Returns `None` if there is no such file. An error names the
    /// file.
    pub fn read<T>(
        &self,
        directory: &Path,
        parse: impl FnOnce(&mut Fields<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let file = directory.join(self.file);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unavailable(format!("{}: {error}", file.display()))),
        };
        let named = |error: Error| {
            let text = format!("{}: {}", file.display(), error.text());
            Error::new(error.kind(), text)
        };
        self.parse(&text, parse).map(Some).map_err(named)
    }

    /// The error for a directory that must have the file and does not.
    pub fn missing(&self, directory: &Path) -> Error {
        damaged(format!(
            "{}: its file `{}` is missing: put it back, or restore a backup",
            directory.display(),
            self.file
        ))
    }

    /// Writes the file aside and renames it into its place, so that a crash leaves the old file or
    /// the new one, and never a part. It is on the disk when this returns: the content is
    /// synchronized before the rename, which could otherwise become durable first, and the
    /// directory after it.
    pub fn write(&self, directory: &Path, fields: &[(&str, &dyn Display)]) -> Result<()> {
        let file = directory.join(self.file);
        let aside = directory.join(format!("{}.new", self.file));
        let write = || -> std::io::Result<()> {
            let mut out = fs::File::create(&aside)?;
            out.write_all(self.seal(fields).as_bytes())?;
            out.sync_all()?;
            fs::rename(&aside, &file)
        };
        write().map_err(|error| unavailable(format!("{}: {error}", file.display())))?;
        HostFiles.sync_directory(directory).map_err(unavailable)
    }

    fn seal(&self, fields: &[(&str, &dyn Display)]) -> String {
        let mut text = format!("{} {}\n", self.name, self.version);
        for (name, value) in fields {
            text += &format!("{name} {value}\n");
        }
        let checksum = dyno_checksum::crc32c(text.as_bytes());
        text + &format!("checksum {checksum:08x}\n")
    }

    fn parse<T>(&self, text: &str, parse: impl FnOnce(&mut Fields<'_>) -> Result<T>) -> Result<T> {
        let first = text.lines().next().unwrap_or_default();
        let version = first.strip_prefix(self.name).unwrap_or_default();
        let version = version
            .strip_prefix(' ')
            .and_then(|v| v.parse::<u32>().ok());
        // A newer version may be sealed in another way. Checked after the seal, it would be called
        // damaged.
        match version {
            Some(found) if found > self.version => {
                let known = self.version;
                let text = format!("format version {found}; this program knows up to {known}");
                return Err(Error::new(Code::NewerVersion, text));
            }
            Some(_) => {}
            None => {
                let text = format!("it does not begin with `{}` and a version", self.name);
                return Err(damaged(text));
            }
        }
        let broken = || damaged("its checksum is wrong".to_owned());
        let covered = text.len().checked_sub(SEAL_BYTES).ok_or_else(broken)?;
        let (covered, seal) = text.split_at_checked(covered).ok_or_else(broken)?;
        if seal
            != format!(
                "checksum {:08x}\n",
                dyno_checksum::crc32c(covered.as_bytes())
            )
        {
            return Err(broken());
        }
        let mut fields = Fields(covered.lines());
        fields.0.next();
        let parsed = parse(&mut fields)?;
        match fields.0.next() {
            None => Ok(parsed),
            Some(line) => Err(damaged(format!("the line `{line}` is not part of it"))),
        }
    }
}

/// The error for a file that is not what was written.
pub(crate) fn damaged(text: String) -> Error {
    Error::new(Code::Damaged, text)
}

/// Asserts for a kind of file that `fixture` is what is written for `fields` and is read back as
/// `value`, that it is refused if any byte differs or is missing, and that a newer version is
/// reported as one.
#[cfg(test)]
pub(crate) fn assert_sealed<T: PartialEq + std::fmt::Debug>(
    sealed: &Sealed,
    fixture: &str,
    fields: &[(&str, &dyn Display)],
    value: T,
    parse: impl Fn(&mut Fields<'_>) -> Result<T>,
) {
    assert_eq!(sealed.seal(fields), fixture);
    assert_eq!(sealed.parse(fixture, &parse), Ok(value));
    for at in 0..fixture.len() {
        let mut bytes = fixture.as_bytes().to_vec();
        bytes[at] ^= 1;
        let text = String::from_utf8(bytes).expect("still ASCII");
        assert!(sealed.parse(&text, &parse).is_err(), "byte {at}");
        assert!(sealed.parse(&fixture[..at], &parse).is_err(), "cut at {at}");
    }
    let newer = format!("{} {}\n", sealed.name, sealed.version + 1);
    let newer = sealed.parse(&newer, &parse).expect_err("newer");
    assert_eq!(newer.kind(), Code::NewerVersion);
}
