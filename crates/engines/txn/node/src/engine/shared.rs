//! What all threads of an engine share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dyno_serve::Token;

use super::figures::Figures;
use super::oracle::Oracle;
use crate::backup_service::BackupService;
use crate::lifecycle::Lifecycle;
use crate::member::Member;
use crate::options::Durability;
use crate::persist::RemoteLogs;
use crate::time::Time;

pub(crate) struct Shared {
    pub time: Time,
    pub oracle: Arc<Oracle>,
    pub lifecycle: Arc<Lifecycle>,
    pub token: Option<Token>,
    pub durability: Durability,
    /// By the partition's index among those of this process.
    pub figures: Vec<Figures>,
    /// The processes that keep the logs, for durability `remote-memory`.
    pub remote: Option<Arc<RemoteLogs>>,
    /// This process among the others of its database. `None` if there is only one.
    pub member: Option<Arc<Member>>,
    /// Backups under way: no checkpoint begins meanwhile, because it could not free the segments
    /// that they copy.
    pub backups: AtomicUsize,
    /// `None` until the server opens it, and for ever where the server was given no folder for
    /// backups.
    pub backup_service: OnceLock<Arc<BackupService>>,
}

impl Shared {
    pub fn may_checkpoint(&self) -> bool {
        self.backups.load(Ordering::Acquire) == 0
    }
}
