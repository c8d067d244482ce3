//! A private cluster that the tests of one process share; the last one to let go stops it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use dyno_postgres::{Cluster, Options};
use dyno_pubsub::{Connection, Dsn, TopicOptions};

pub struct Server {
    cluster: Mutex<Cluster>,
    pub dsn: Dsn,
    _dir: tempfile::TempDir,
}

impl Server {
    /// A server with the schema installed.
    pub fn shared() -> Arc<Server> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Server::alone());
        *shared = Arc::downgrade(&server);
        server
    }

    /// A server for one test that does it harm.
    pub fn alone() -> Server {
        Self::with_settings(&[])
    }

    /// The same with more settings of the server's.
    pub fn with_settings(more: &[(&str, &str)]) -> Server {
        let dir = tempfile::Builder::new()
            .prefix("dyno-pubsub-")
            .tempdir_in("/tmp")
            .unwrap();
        let mut options = Options::small();
        options
            .settings
            .push(("max_connections".to_owned(), "60".to_owned()));
        let more = more
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        options.settings.extend(more);
        let cluster = Cluster::open(&dir.path().join("pg"), options).unwrap();
        let dsn = cluster.dsn();
        let mut connection = Connection::open(&dsn).unwrap();
        connection.install().unwrap();
        // Tests may take these ids for their producers.
        let given = "SELECT setval('pubsub.producer_ids', 1000)";
        connection.client().batch_execute(given).unwrap();
        Server {
            cluster: Mutex::new(cluster),
            dsn,
            _dir: dir,
        }
    }

    pub fn connect(&self) -> Connection {
        Connection::open(&self.dsn).unwrap()
    }

    pub fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held by tests that count what maintenance does, which is maintenance of all topics.
    pub fn maintenance() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a topic with a name of its own: (number, name).
    pub fn topic(&self, options: &TopicOptions) -> (i32, String) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("topic-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let topic_id = self.connect().create_topic(&name, options).unwrap();
        (topic_id, name)
    }
}
