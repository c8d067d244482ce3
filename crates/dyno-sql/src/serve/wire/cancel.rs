//! Requests to cancel, which come on a connection of their own and name another one by its secret.

use std::collections::HashMap;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use pgwire::api::cancel::CancelHandler;
use pgwire::messages::cancel::CancelRequest;
use pgwire::messages::startup::SecretKey;
use tokio::sync::watch;

use super::Connection;

/// The number of a connection and its secret.
type Key = (i32, Bytes);

/// The connections whose statements can be cancelled.
#[derive(Default)]
pub(super) struct Cancels(Mutex<HashMap<Key, watch::Sender<u64>>>);

/// The key under which a connection is known; `None` before its client was let in.
#[derive(Default)]
pub(super) struct Registered(Mutex<Option<Key>>);

impl Cancels {
    pub(super) fn register(
        &self,
        registered: &Registered,
        pid: i32,
        secret: &SecretKey,
        signal: watch::Sender<u64>,
    ) {
        let key = (pid, secret.to_bytes());
        *registered.0.lock() = Some(key.clone());
        self.0.lock().insert(key, signal);
    }

    pub(super) fn forget(&self, registered: &Registered) {
        if let Some(key) = registered.0.lock().take() {
            self.0.lock().remove(&key);
        }
    }
}

#[async_trait]
impl CancelHandler for Connection {
    async fn on_cancel_request(&self, request: CancelRequest) {
        let key = (request.pid, request.secret_key.to_bytes());
        // As in PostgreSQL, the client is not told whether there was something to cancel, so that
        // secrets cannot be guessed by the answer.
        if let Some(signal) = self.shared.cancels.0.lock().get(&key) {
            signal.send_modify(|count| *count += 1);
        }
    }
}
