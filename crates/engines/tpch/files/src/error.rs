//! What can go wrong on the way to a file.

use std::io;
use std::path::PathBuf;

use dyno_io::IoError;
use dyno_objects::ObjectError;
use dyno_tpch::Table;

use crate::job::{Format, Mode};

/// Why files were not written, or not all of them. Under a final name there are only complete
/// files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option has no such value.
    #[error("{option} {given:?}: it must be {wanted}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What was given.
        given: String,
        /// What there is.
        wanted: String,
    },
    /// Options that are good alone and exclude one another.
    #[error("{0}")]
    Together(String),
    /// A file that this job did not write has the name of one that it should.
    #[error("{} is there already, and not from this job: {reason}; --overwrite replaces it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
        /// In what it differs, as far as is known.
        reason: String,
    },
    /// The budget does not hold the least that the job needs.
    #[error(
        "--memory of {given_bytes} bytes is too little: {jobs} threads need at least {needed_bytes}, of which the text pool takes {pool_bytes}"
    )]
    Memory {
        /// The budget.
        given_bytes: u64,
        /// The least that works.
        needed_bytes: u64,
        /// The share of the pool.
        pool_bytes: u64,
        /// Threads.
        jobs: usize,
    },
    /// The generator refuses.
    #[error(transparent)]
    Generator(#[from] dyno_tpch::Error),
    /// A writer of pages refuses.
    #[error("cannot write {table}: {reason}")]
    Format {
        /// The table.
        table: &'static str,
        /// What the writer says.
        reason: String,
    },
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The object store refuses, or cannot be reached.
    #[error(transparent)]
    Objects(#[from] ObjectError),
    /// The system refuses, seen through a writer.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The mode is written by another program ([`run_in`](crate::run_in)).
    #[error("the mode {mode} of {format} files is not made by this program but by dyno-sql")]
    Elsewhere {
        /// The mode.
        mode: Mode,
        /// The format.
        format: Format,
    },
    /// The program that writes the mode said so.
    #[error("{0}")]
    Child(String),
    /// A thread ended by a bug.
    #[error("a worker ended unexpectedly: {0}")]
    Worker(String),
    /// The job was asked to stop.
    #[error("stopped; finished files are kept, and the same command goes on with the rest")]
    Stopped,
}

impl Error {
    pub(crate) fn option(
        option: &'static str,
        given: impl Into<String>,
        wanted: impl Into<String>,
    ) -> Error {
        Error::Option {
            option,
            given: given.into(),
            wanted: wanted.into(),
        }
    }

    /// What a writer of `table` said.
    pub fn format(table: Table, reason: impl ToString) -> Error {
        Error::Format {
            table: table.name(),
            reason: reason.to_string(),
        }
    }
}

/// What a writer said, who does not know of tables.
pub enum Refused {
    /// The output failed, seen through a writer that knows `io::Error` alone.
    Output(io::Error),
    /// The writer's own reason.
    Reason(String),
}

impl Refused {
    /// The error of the table that the writer wrote.
    pub(crate) fn of(self, table: Table) -> Error {
        match self {
            Refused::Output(error) => match error.downcast::<IoError>() {
                Ok(error) => Error::Io(error),
                Err(source) => Error::Write {
                    path: PathBuf::from(table.name()),
                    source,
                },
            },
            Refused::Reason(reason) => Error::format(table, reason),
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Output(error)
    }
}
