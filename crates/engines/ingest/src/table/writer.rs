//! The one writer of a table: stages an archive's files, then replaces the manifest.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::lock::Lock;
use super::{Archive, Catalog, DataFile, Manifest, SourceIdentity, span, sync_directory};
use crate::{Error, Result};

/// The one writer of a table; others are refused while it exists.
#[derive(Debug)]
pub struct TableWriter {
    table: PathBuf,
    manifest: Manifest,
    /// Set if a commit failed and the manifest on disk could not be read afterwards. Then no file
    /// is removed, because it may be committed.
    in_doubt: bool,
    _lock: Lock,
}

/// An archive that is ready to be committed. Its files are on stable storage.
#[derive(Debug)]
pub struct Staged {
    /// The feed whose columns its files have: [`super::WSPR`] or another.
    pub feed: String,
    /// The archive's identity, its key in the manifest.
    pub archive: String,
    /// Path, length and hash of the input.
    pub source: SourceIdentity,
    /// Data files that hold its rows, relative to the table.
    pub files: Vec<DataFile>,
    /// Good rows in the data files.
    pub rows: u64,
    /// Rows in the quarantine file.
    pub bad_rows: u64,
    /// Quarantine file relative to the table, if there is one.
    pub quarantine: Option<String>,
}

impl TableWriter {
    /// Opens the table in `table` for writing, creates it if necessary, and removes what a killed
    /// load left behind.
    ///
    /// # Errors
    /// [`Error::Refused`] where `table` is a file, [`Error::Locked`] while another writer lives,
    /// [`Error::Manifest`] when the manifest is not ours, [`Error::Io`].
    pub fn open(table: &Path) -> Result<TableWriter> {
        if table.is_file() {
            return Err(Error::Refused {
                path: table.to_owned(),
                reason: "it is a file, and a table is a directory".to_owned(),
            });
        }
        for directory in [
            table.to_owned(),
            table.join("data"),
            table.join("quarantine"),
        ] {
            fs::create_dir_all(&directory).map_err(|e| Error::io("create", &directory, e))?;
        }
        // The lock comes before the manifest. A writer that decides by an older manifest would undo
        // the commits that another one has made since.
        let lock = Lock::writer(table)?;
        let manifest = Manifest::read(table)?.unwrap_or_default();
        let writer = TableWriter {
            table: table.to_owned(),
            manifest,
            in_doubt: false,
            _lock: lock,
        };
        // Metadata of a catalogue may name files that are not in the manifest any more, if a load
        // was killed between the two. They stay until its owner has mended it.
        if writer.manifest.catalog.is_none() {
            writer.remove_unnamed()?;
        }
        Ok(writer)
    }

    /// Gives the table a catalogue, which every load from now on keeps up to date.
    ///
    /// # Errors
    /// [`Error::Refused`] if there are archives that were loaded without it, because their files
    /// have other types; [`Error::Io`].
    pub fn set_catalog(&mut self, catalog: Catalog) -> Result<()> {
        if self.manifest.catalog == Some(catalog) {
            return Ok(());
        }
        if !self.manifest.archives.is_empty() {
            return Err(Error::Refused {
                path: self.table.clone(),
                reason: "its archives were loaded without a catalogue, and their files have types \
                         that Iceberg lacks; load them into a new table with --catalog iceberg"
                    .to_owned(),
            });
        }
        let mut next = self.manifest.clone();
        next.set_catalog(catalog);
        next.commit(&self.table)?;
        self.manifest = next;
        Ok(())
    }

    /// The manifest of the last commit.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The directory of the table.
    pub fn table(&self) -> &Path {
        &self.table
    }

    /// A relative file name for `archive` that no committed or staged file has. It is safe while
    /// several archives are staged at once, because each has a name of its own.
    pub fn staging_name(&self, folder: &str, archive: &str, extension: &str) -> String {
        let name: String = archive
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        // Different identities may map to one name, and the hash keeps their files apart.
        let tag = twox_hash::XxHash3_128::oneshot(archive.as_bytes()) as u32;
        format!(
            "{folder}/{name}-{tag:08x}.{}.{extension}",
            self.manifest.generation + 1
        )
    }

    /// Where the quarantine of an archive with too many bad rows is kept. We never remove a name
    /// without a generation, because a person will look at it.
    pub fn rejected_path(&self, quarantine: &str) -> PathBuf {
        let stem = quarantine.trim_end_matches(".ndjson");
        let stem = stem
            .rsplit_once('.')
            .map_or(stem, |(name, _generation)| name);
        self.table.join(format!("{stem}.rejected.ndjson"))
    }

    /// The archive as the table has it. One with damaged data files counts as absent, so that a
    /// load repairs the table.
    pub fn whole(&self, archive: &str) -> Option<&Archive> {
        let there = self.manifest.archives.get(archive)?;
        let damage = there.damage(archive, &self.table);
        damage.is_empty().then_some(there)
    }

    /// Puts the staged files into the table in place of what it held of the same archive.
    ///
    /// # Errors
    /// [`Error::Refused`] where the archive is another feed's, or a span of a stream with offsets
    /// that are there already; [`Error::Io`]; the table is then as it was, or, when only the sync
    /// of its directory failed, as it was to be: what the disk has decides.
    pub fn commit(&mut self, staged: Staged) -> Result<()> {
        // Every refusal comes before the first write, so that a refused archive leaves the table
        // untouched.
        if let Some(there) = self.manifest.archives.get(&staged.archive)
            && there.feed != staged.feed
        {
            return Err(Error::Refused {
                path: PathBuf::from(staged.source.path),
                reason: format!(
                    "the table has an archive {} of feed {} already; give this one another name",
                    staged.archive, there.feed
                ),
            });
        }
        let covered = span::covered(
            &self.manifest.archives,
            &staged.archive,
            staged.rows,
            staged.bad_rows,
        )
        .map_err(|reason| Error::Refused {
            path: PathBuf::from(&staged.source.path),
            reason,
        })?;
        // The names of the staged files must be durable before the manifest that names them. Their
        // contents were synced when they were closed.
        for folder in ["data", "quarantine"] {
            sync_directory(&self.table.join(folder))?;
        }
        let mut next = self.manifest.clone();
        next.generation += 1;
        for archive in covered {
            next.archives.remove(&archive);
        }
        next.insert(
            staged.archive,
            Archive {
                feed: staged.feed,
                source: staged.source,
                files: staged.files,
                rows: staged.rows,
                bad_rows: staged.bad_rows,
                quarantine: staged.quarantine,
                generation: next.generation,
                loaded_at_s: SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .map_or(0, |since| since.as_secs()),
            },
        );
        if let Err(e) = next.commit(&self.table) {
            // The rename may have happened, and files that the manifest on disk names must stay.
            match Manifest::read(&self.table) {
                Ok(on_disk) => self.manifest = on_disk.unwrap_or_default(),
                Err(_) => self.in_doubt = true,
            }
            return Err(e);
        }
        self.manifest = next;
        Ok(())
    }

    /// Removes files that the manifest does not name. If a reader may still use them, the next
    /// writer does it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_unnamed(&self) -> Result<()> {
        if self.in_doubt {
            return Ok(());
        }
        // A reader that opens from here on waits for this lock. It then reads a manifest that names
        // none of the files that are removed below.
        let Some(_no_readers) = Lock::no_readers(&self.table)? else {
            return Ok(());
        };
        for folder in ["data", "quarantine"] {
            let directory = self.table.join(folder);
            let entries = fs::read_dir(&directory).map_err(|e| Error::io("list", &directory, e))?;
            for entry in entries {
                let entry = entry.map_err(|e| Error::io("list", &directory, e))?;
                let relative = format!("{folder}/{}", entry.file_name().to_string_lossy());
                let path = entry.path();
                if !self.manifest.names(&relative) && is_ours(&relative) && path.is_file() {
                    fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))?;
                }
            }
        }
        Ok(())
    }
}

/// Whether [`TableWriter::staging_name`] makes such names. No other file is ever removed.
fn is_ours(relative: &str) -> bool {
    let mut parts = relative.rsplitn(3, '.');
    let extension = parts.next();
    let generation = parts.next().unwrap_or_default();
    let tag = parts.next().and_then(|name| name.rsplit_once('-'));
    let is_tag =
        |tag: &str| tag.len() == 8 && tag.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    matches!(extension, Some("parquet" | "ndjson"))
        && !generation.is_empty()
        && generation.bytes().all(|b| b.is_ascii_digit())
        && tag.is_some_and(|(_, tag)| is_tag(tag))
        && relative.is_ascii()
}
