//! Opening a database.

use std::path::Path;

use dyno_txn_api::{Code, Database, Error, Result, Target};

use crate::client::{Connector, Node};
use crate::engine::Engine;
use crate::options::OpenOptions;

/// Opens an engine: `local:DIR` runs it in this process, until what is returned and all its transactions
/// are dropped; `dyno://HOST:PORT` connects to a server.
///
/// # Errors
/// [`Code::NotSupported`] for targets of other engines; [`Code::Unavailable`] when the directory is in use
/// or the server not there; [`Code::Damaged`], [`Code::NewerVersion`] from what lies in the directory;
/// [`Code::Denied`] for a wrong token; [`Code::BadArgument`] for options that make no sense.
pub fn open(target: &Target, options: OpenOptions) -> Result<Box<dyn Database>> {
    let spin = options.spin;
    let connector = match target {
        Target::Local(directory) => Connector::Local(Box::new(Engine::start(
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

/// An engine in this process, for who wants more of it than a [`Database`].
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
        let node = Node::open(Connector::Local(Box::new(engine)), options.spin)?;
        Ok(Self { node })
    }

    /// The database.
    pub fn database(&self) -> &dyn Database {
        &self.node
    }

    /// Copies what is durable now, all of it as of one moment, into a directory that is empty or not
    /// there; the engine goes on meanwhile. The copy is opened like any directory.
    ///
    /// # Errors
    /// [`Code::BadArgument`] when the directory is taken; [`Code::Unavailable`].
    pub fn backup(&self, target: &Path) -> Result<()> {
        match self.node.connector() {
            Connector::Local(engine) => engine.backup(target),
            Connector::Remote(_) => {
                Err(Error::new(Code::NotSupported, "no engine in this process"))
            }
        }
    }

    /// Why the engine stopped by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        match self.node.connector() {
            Connector::Local(engine) => engine.failure(),
            Connector::Remote(_) => None,
        }
    }
}
