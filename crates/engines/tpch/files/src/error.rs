//! Why the files of a job were not written.

use std::io;
use std::path::PathBuf;

use dyno_io::IoError;
use dyno_objects::ObjectError;
use dyno_tpch::Table;

/// Why files were not written, or not all of them. Only complete files have final names.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The value of an option is not one that it can have.
    #[error("{option} {given:?}: it must be {wanted}")]
    Option {
        /// The name of the option.
        option: &'static str,
        /// The value that was given.
        given: String,
        /// The values that it can have.
        wanted: String,
    },
    /// Options exclude each other, although each is good by itself.
    #[error("{0}")]
    Together(String),
    /// A file that this job did not write has the name of one that it should write.
    #[error("{} is there already, and not from this job: {reason}; --overwrite replaces it", path.display())]
    Exists {
        /// The file that is in the way.
        path: PathBuf,
        /// How it differs, as far as that is known.
        reason: String,
    },
    /// The job needs more memory than it may use.
    #[error(
        "--memory of {given_bytes} bytes is too little: {jobs} threads need at least {needed_bytes}, of which the text pool takes {pool_bytes}"
    )]
    Memory {
        /// How much the job may use.
        given_bytes: u64,
        /// The least with which it works.
        needed_bytes: u64,
        /// How much of that the text pool takes.
        pool_bytes: u64,
        /// The number of threads of the job.
        jobs: usize,
    },
    /// The generator refuses the table, the part or the scale factor.
    #[error(transparent)]
    Generator(#[from] dyno_tpch::Error),
    /// The writer of the format refuses the options or a batch.
    #[error("cannot write {table}: {reason}")]
    Format {
        /// The table that was to be written.
        table: &'static str,
        /// The reason that the writer gives.
        reason: String,
    },
    /// The system refuses to create, write or publish a file.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The object store refuses, or cannot be reached.
    #[error(transparent)]
    Objects(#[from] ObjectError),
    /// The system refuses, and the error came through a writer that knows `io::Error` alone.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file, or the table if the file is not known.
        path: PathBuf,
        /// The reason that the system gives.
        source: io::Error,
    },
    /// The Iceberg metadata of a table cannot be written. The data files are there.
    #[error("Iceberg metadata of {table}: {source}")]
    Iceberg {
        /// The table that the metadata describes.
        table: &'static str,
        /// The reason, and often what to do.
        source: dyno_iceberg::Error,
    },
    /// Another program writes this mode, by [`run_in`](crate::run_in).
    #[error("the mode {mode} of {format} files is not made by this program but by dyno-sql")]
    Elsewhere {
        /// The name of the mode that was requested.
        mode: &'static str,
        /// The name of the format that was requested.
        format: &'static str,
    },
    /// The program that writes the mode has failed, for this reason.
    #[error("{0}")]
    Child(String),
    /// A thread panicked, which is a bug.
    #[error("a worker ended unexpectedly: {0}")]
    Worker(String),
    /// The job was stopped on request.
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

    /// The error for the reason that a writer of `table` gives.
    pub fn format(table: Table, reason: impl ToString) -> Error {
        Error::Format {
            table: table.name(),
            reason: reason.to_string(),
        }
    }
}

/// Why a writer failed, before the table that it wrote is added.
pub enum Refused {
    /// The output failed, and the error came through a writer that knows `io::Error` alone.
    Output(io::Error),
    /// The writer refused, for this reason.
    Reason(String),
}

impl Refused {
    /// The error of the table that the writer wrote.
    pub(crate) fn in_table(self, table: Table) -> Error {
        match self {
            // Our sinks' errors pass through such writers and come out with their path and reason.
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
