//! Connects to a store: once at the start, and again and again after it has gone.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dyno_net::{Address, Port};
use dyno_txn_api::Result;

use crate::error::{from_net, unavailable};
use crate::greet::{Greeting, greet};
use crate::hello::{STORE_HELLO, STORE_WELCOME, check_store_welcome, encode_store_hello};
use crate::lifecycle::Lifecycle;
use crate::options::OpenOptions;
use crate::ports::connect_options;
use crate::threads::{Command, PeerThread};

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// Connects once.
pub(super) fn connect(address: &str, options: &OpenOptions) -> Result<Port> {
    let parsed: Address = address.parse().map_err(from_net)?;
    let ports = connect_options(options);
    let token = options.token.clone().unwrap_or_default();
    let greeting = Greeting {
        verb: STORE_HELLO,
        body: &encode_store_hello(token.as_bytes()),
        answer: STORE_WELCOME,
    };
    let (port, welcome) = greet(&parsed, &ports, options.spin, &greeting).map_err(|error| {
        let text = format!("persist process {}", error.text());
        dyno_txn_api::Error::with_retry(error.kind(), error.retry(), text)
    })?;
    check_store_welcome(&welcome)?;
    Ok(port)
}

/// Starts a thread that tries to connect until the store is there or the engine stops. The worker
/// gets the connection as [`Command::StoreConnected`]; it goes on serving reads meanwhile.
pub(crate) fn reconnect(
    store: usize,
    options: &OpenOptions,
    lifecycle: &Arc<Lifecycle>,
    worker: &PeerThread,
) -> Result<()> {
    let address = options.persist[store].clone();
    let (options, lifecycle, worker) = (options.clone(), lifecycle.clone(), worker.clone());
    let run = move || {
        while !lifecycle.is_stopping() {
            thread::sleep(PAUSE);
            match connect(&address, &options) {
                Ok(port) => {
                    let port = Box::new(port);
                    // If the worker's queue is full, the connection is closed and made again.
                    if worker.send(Command::StoreConnected { store, port }) {
                        return;
                    }
                }
                Err(error) => lifecycle.note(format!("writes are refused: {error}")),
            }
        }
    };
    let thread = thread::Builder::new().name("txn-reconnect".to_owned());
    thread.spawn(run).map(drop).map_err(unavailable)
}
