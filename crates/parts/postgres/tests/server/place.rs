//! Where a test's clusters live: below a directory that the server's user may enter.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dyno_postgres::postgres::Client;
use dyno_postgres::{Cluster, Installation, Options, Session, connect};
use tempfile::TempDir;

/// A directory for clusters, or `None` with the reason printed where there is no server.
pub fn place() -> Option<TempDir> {
    if let Err(error) = Installation::find(None) {
        println!("skipped: PostgreSQL: {error}");
        return None;
    }
    let dir = tempfile::Builder::new()
        .prefix("dyno-pg-")
        .tempdir_in("/tmp")
        .unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    Some(dir)
}

/// A small cluster.
pub fn open(dir: &Path) -> Cluster {
    Cluster::open(dir, Options::small()).unwrap()
}

/// A connection to it.
pub fn client(cluster: &Cluster) -> Client {
    connect(&cluster.dsn(), &Session::named("test")).unwrap()
}

/// A number that the server answers.
pub fn number(client: &mut Client, ask: &str) -> i64 {
    client.query_one(ask, &[]).unwrap().get(0)
}
