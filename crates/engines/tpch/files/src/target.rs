//! A destination with the way in which bytes get there, and the files that are being written to it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_io::{
    Buffering, Durability, Existing, HostFiles, Output, Sink, SinkKind, SinkWriter, stage,
};
use dyno_objects::{Access, ObjectSink, Retry, Sending, Store};

use crate::destination::Destination;
use crate::error::Error;
use crate::job::Job;
use crate::options::Split;
use crate::plan::{self, FilePlan};
use crate::receipt::{self, Receipt, Standing};
use crate::report::FileReport;

/// A destination with the way in which bytes get there.
#[derive(Debug)]
pub(crate) struct Target {
    destination: Destination,
    store: Option<Arc<Store>>,
    sink: SinkKind,
    overwrite: bool,
}

/// A file that is being written and does not have its final name yet.
pub struct Out {
    path: PathBuf,
    output: SinkWriter<Box<dyn Output>>,
    chosen: String,
}

impl Target {
    /// Prepares the destination of a job.
    ///
    /// # Errors
    /// [`Error::Objects`] when the environment does not say how to reach an object store.
    pub(crate) fn from_job(job: &Job) -> Result<Target, Error> {
        let store = match &job.destination {
            Destination::Objects { bucket, .. } => {
                let access = Access::from_environment()?;
                Some(Store::new(access, bucket, Retry::default())?)
            }
            Destination::Folder(_) | Destination::Nowhere => None,
        };
        Ok(Target {
            destination: job.destination.clone(),
            store,
            sink: job.sink,
            overwrite: job.overwrite,
        })
    }

    fn path(&self, plan: &FilePlan) -> PathBuf {
        match &self.destination {
            Destination::Folder(folder) => folder.join(&plan.name),
            Destination::Objects { prefix, .. } => Path::new(prefix).join(&plan.name),
            Destination::Nowhere => plan.name.clone(),
        }
    }

    /// Checks that no part lies behind the last one of the tables of a job.
    ///
    /// # Errors
    /// [`Error::Together`] names such a part. It was left by a job with more parts, and readers,
    /// which take all parts from 1 on, would find its rows twice.
    pub(crate) fn check_later_parts(&self, job: &Job) -> Result<(), Error> {
        let (Destination::Folder(folder), Split::Parts(parts) | Split::Part { parts, .. }) =
            (&self.destination, job.split)
        else {
            return Ok(());
        };
        // Parts have no gaps, so the first one behind the last of this job tells of all of them.
        let later = parts.saturating_add(1);
        for &table in &job.tables {
            let path = folder.join(plan::part_name(table, later, job.layout.format));
            if path.exists() {
                return Err(Error::Together(format!(
                    "{} is there, from a job with more than {parts} parts, and readers would take \
                     it as part of the table: remove it and the parts behind it first",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    /// The report of a file that is there already and is the one wanted, or `None` if the file must
    /// be written.
    ///
    /// # Errors
    /// [`Error::Exists`] for a file that is another one, unless it may be replaced.
    pub(crate) fn kept(&self, plan: &FilePlan) -> Result<Option<FileReport>, Error> {
        let Destination::Folder(root) = &self.destination else {
            return Ok(None);
        };
        let path = self.path(plan);
        match receipt::standing(root, &path, &plan.settings)? {
            Standing::Free => Ok(None),
            Standing::Finished(_) | Standing::Foreign(_) if self.overwrite => Ok(None),
            Standing::Foreign(reason) => Err(Error::Exists { path, reason }),
            Standing::Finished(receipt) => Ok(Some(FileReport {
                table: plan.table,
                name: plan.name.clone(),
                rows: receipt.rows,
                bytes: receipt.bytes,
                seconds: 0.0,
                sink: "kept from an earlier run".to_owned(),
                kept: true,
            })),
        }
    }

    pub(crate) fn open(&self, plan: &FilePlan) -> Result<Out, Error> {
        let path = self.path(plan);
        if let Destination::Folder(_) = self.destination {
            let folder = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder).map_err(|source| Error::Write {
                path: folder.to_path_buf(),
                source,
            })?;
        }
        let existing = if self.overwrite {
            Existing::Replace
        } else {
            Existing::Refuse
        };
        let (output, chosen): (Box<dyn Output>, String) = match &self.store {
            Some(store) => {
                let sending = Sending {
                    existing,
                    ..Sending::default()
                };
                let sink = ObjectSink::create(store, &path.to_string_lossy(), &sending)?;
                let chosen = format!("in parts, to {}", sink.name());
                (Box::new(sink), chosen)
            }
            None => {
                let (output, chosen) = stage(self.sink, &path, existing, &Buffering::default())?;
                (output, chosen.to_string())
            }
        };
        Ok(Out {
            path,
            output: SinkWriter::new(output),
            chosen,
        })
    }

    /// Gives a complete file its final name, and returns its length and how its bytes were written.
    pub(crate) fn publish(
        &self,
        out: Out,
        plan: &FilePlan,
        rows: u64,
    ) -> Result<(u64, String), Error> {
        let mut output = out.output.into_inner();
        if let Destination::Folder(root) = &self.destination {
            // The order is what makes a crash harmless. The bytes are on the disk before the
            // receipt speaks of them, and both are there before the file has its name. A receipt
            // without a file is harmless; a file without a receipt would be taken for that of
            // another job.
            let bytes = output.finish(Durability::Stable)?;
            let receipt = Receipt::new(plan.settings.clone(), rows, bytes);
            receipt.write(&HostFiles, root, &out.path)?;
        }
        let bytes = output.publish()?;
        Ok((bytes, out.chosen))
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
