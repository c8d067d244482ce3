//! Opens databases.

use std::path::Path;
use std::sync::Arc;

use dyno_txn_api::{Code, Database, Error, Result, Target};

use crate::client::{Connector, Node};
use crate::engine::Engine;
use crate::options::OpenOptions;

/// Opens a database. For `local:DIR` an engine runs in this process until the database and all its
/// transactions are dropped. For `dyno://HOST:PORT` the database is that of a server.
///
/// # Errors
/// [`Code::NotSupported`] for targets of other engines; [`Code::Unavailable`] if the directory is
/// in use or the server cannot be reached; [`Code::NotFound`] if the directory has no database and
/// none may be created; [`Code::Damaged`] or [`Code::NewerVersion`] for files that cannot be read;
/// [`Code::Denied`] for a wrong token; [`Code::BadArgument`] for options that contradict each other
/// or the directory.
pub fn open(target: &Target, options: OpenOptions) -> Result<Box<dyn Database>> {
    let spin = options.spin;
    let connector = match target {
        Target::Local(directory) => Connector::local(Arc::new(Engine::start(
            directory, &options, None, None, None,
        )?)),
        Target::Dyno(addresses) => Connector::remote(addresses, &options)?,
        other => {
            let text = format!("`{other}`: this engine opens `local:DIR` and `dyno://HOST:PORT`");
            return Err(Error::new(Code::NotSupported, text));
        }
    };
    Ok(Box::new(Node::open(connector, spin)?))
}

/// An engine in this process, for callers that need more of it than a [`Database`].
pub struct Local {
    node: Node,
}

impl Local {
    /// As [`open`] with `local:`.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(directory: &Path, options: OpenOptions) -> Result<Self> {
        let engine = Engine::start(directory, &options, None, None, None)?;
        let node = Node::open(Connector::local(Arc::new(engine)), options.spin)?;
        Ok(Self { node })
    }

    /// The engine's database.
    pub fn database(&self) -> &dyn Database {
        &self.node
    }

    /// Copies everything that is durable, as of one moment, into a directory that is empty or does
    /// not exist. The engine goes on meanwhile. The copy can be opened like any directory.
    ///
    /// # Errors
    /// [`Code::BadArgument`] if the directory is not empty; [`Code::NotSupported`] if nothing is
    /// stored in files; [`Code::Unavailable`] if the engine is too busy or a file cannot be
    /// written.
    pub fn backup(&self, target: &Path) -> Result<()> {
        match self.node.connector() {
            Connector::Local(engine, _) => engine.backup(target),
            Connector::Remote(_) => Err(Error::new(
                Code::NotSupported,
                "the engine is not in this process",
            )),
        }
    }

    /// Why the engine stopped by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        match self.node.connector() {
            Connector::Local(engine, _) => engine.failure(),
            Connector::Remote(_) => None,
        }
    }
}
