//! Connecting to a store: at the start, and again and again when it has gone.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dyno_net::{Address, Port, PortOptions};
use dyno_txn_api::Result;

use crate::error::{from_net, unavailable};
use crate::greet::{Greeting, greet};
use crate::hello::{KEEP_HELLO, KEEP_WELCOME, check_keep_welcome, keep_hello};
use crate::lifecycle::Lifecycle;
use crate::options::OpenOptions;
use crate::ports::port_options;
use crate::threads::{Command, PeerThread};

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// Connects once.
pub(super) fn call(address: &str, options: &OpenOptions) -> Result<Port> {
    let parsed: Address = address.parse().map_err(from_net)?;
    let ports = PortOptions {
        ring: options.ring,
        tls: options.tls.clone(),
        ..port_options()
    };
    let token = options.token.clone().unwrap_or_default();
    let greeting = Greeting {
        verb: KEEP_HELLO,
        body: &keep_hello(token.as_bytes()),
        answer: KEEP_WELCOME,
    };
    let (port, welcome) = greet(&parsed, &ports, options.spin, &greeting).map_err(|error| {
        let text = format!("persist process {}", error.text());
        dyno_txn_api::Error::with_retry(error.kind(), error.retry(), text)
    })?;
    check_keep_welcome(&welcome)?;
    Ok(port)
}

/// Tries until the store is there or the engine stops; the connection comes by mail.
pub(crate) fn call_again(
    store: usize,
    options: &OpenOptions,
    lifecycle: &Arc<Lifecycle>,
    to: &PeerThread,
) -> Result<()> {
    let address = options.persist[store].clone();
    let (options, lifecycle, to) = (options.clone(), lifecycle.clone(), to.clone());
    let run = move || {
        while !lifecycle.is_stopping() {
            thread::sleep(PAUSE);
            match call(&address, &options) {
                // A thread with too much to do gets another one later.
                Ok(port) => {
                    let port = Box::new(port);
                    if to.send(Command::StoreConnected { store, port }) {
                        return;
                    }
                }
                Err(error) => lifecycle.note(format!("writes are refused: {error}")),
            }
        }
    };
    let thread = thread::Builder::new().name("txn-call-again".to_owned());
    thread.spawn(run).map(drop).map_err(unavailable)
}
