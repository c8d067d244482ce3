//! Makes connections to the threads of an engine.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use dyno_net::{Address, Head, Port, PortOptions};
use dyno_txn_api::{Code, Result};
use parking_lot::RwLock;

use crate::engine::Engine;
use crate::error::{from_net, unavailable};
use crate::greet::{Greeting, greet};
use crate::hello::{HELLO, Hello, MAP, MAP_ASK, WELCOME, Welcome};
use crate::member::ClusterMap;
use crate::options::OpenOptions;
use crate::ports::{connect_options, port_options};

/// How long a map may take to come.
const MAP_WAIT: Duration = Duration::from_secs(5);

pub(crate) enum Connector {
    /// To an engine in this process, over connections whose ends here have these bounds. The engine
    /// stops when the last owner is dropped.
    Local(Arc<Engine>, PortOptions),
    Remote(RemoteConnector),
}

/// To an engine in other processes.
pub(crate) struct RemoteConnector {
    /// Those that the user named. The first one that answers sends the map.
    addresses: Vec<Address>,
    map: RwLock<Arc<ClusterMap>>,
    options: PortOptions,
    token: Vec<u8>,
    spin: Duration,
}

impl Connector {
    /// To an engine in this process.
    pub fn local(engine: Arc<Engine>) -> Self {
        Connector::Local(engine, port_options())
    }

    /// The same, for a server on a thread of that engine. The thread empties the connections itself
    /// and must not wait until it has, so they take whatever the server submits.
    pub fn hosted(engine: Arc<Engine>) -> Self {
        let options = PortOptions {
            outbox_bytes: usize::MAX,
            ..port_options()
        };
        Connector::Local(engine, options)
    }

    /// Learns from one of the addresses which processes there are.
    pub fn remote(addresses: &[String], options: &OpenOptions) -> Result<Self> {
        let parse = |text: &String| text.parse().map_err(from_net);
        let remote = RemoteConnector {
            addresses: addresses.iter().map(parse).collect::<Result<_>>()?,
            map: RwLock::new(Arc::new(ClusterMap::unknown(1, 1))),
            options: connect_options(options),
            token: options.token.clone().unwrap_or_default().into_bytes(),
            spin: options.spin,
        };
        remote.learn_map()?;
        Ok(Connector::Remote(remote))
    }

    pub fn map(&self) -> Arc<ClusterMap> {
        match self {
            Connector::Local(engine, _) => {
                let welcome = engine.welcome();
                Arc::new(ClusterMap::single(welcome.partitions, welcome.cores))
            }
            Connector::Remote(remote) => remote.map(),
        }
    }

    /// What the first process that can be reached says of itself.
    pub fn welcome(&self) -> Result<Welcome> {
        let mut last = unavailable("the database has no process");
        for process in 0..self.map().processes.len() {
            match self.connect(process, 0) {
                Ok((_, welcome)) => return Ok(welcome),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Connects to a thread of a process. Returns the connection, and what the process says of
    /// itself.
    pub fn connect(&self, process: usize, thread: usize) -> Result<(Port, Welcome)> {
        match self {
            Connector::Local(engine, options) => {
                Ok((engine.connect(thread, options)?, engine.welcome()))
            }
            Connector::Remote(remote) => match remote.connect(process, thread) {
                Err(error)
                    if error.kind() == Code::Unavailable && remote.map().processes.len() > 1 =>
                {
                    // The process may have been started again at another address. Once is enough:
                    // the map that was just sent is as new as the oracles know.
                    remote.learn_map()?;
                    remote.connect(process, thread)
                }
                connected => connected,
            },
        }
    }
}

impl RemoteConnector {
    fn map(&self) -> Arc<ClusterMap> {
        self.map.read().clone()
    }

    fn connect(&self, process: usize, thread: usize) -> Result<(Port, Welcome)> {
        let map = self.map();
        let found = map.processes.get(process);
        let Some(found) = found.filter(|found| found.threads > 0) else {
            return Err(unavailable(format!(
                "process {process} of {}: no oracle has heard of it yet",
                map.processes.len()
            )));
        };
        // A database in one process does not know under which of its addresses clients reach it.
        if found.address.is_empty() {
            return self.first(&self.addresses, |address| self.greet(address, thread));
        }
        self.greet(&found.address.parse().map_err(from_net)?, thread)
    }

    /// The answer of the first of these addresses that gives one, or the error of the last.
    fn first<T>(&self, addresses: &[Address], ask: impl Fn(&Address) -> Result<T>) -> Result<T> {
        let mut last = unavailable("no address to connect to");
        for address in addresses {
            match ask(address) {
                // A wrong token is wrong everywhere. The error of the next address, which may just
                // be down, would hide the reason.
                Err(error) if error.kind() == Code::Denied => return Err(error),
                Err(error) => last = error,
                found => return found,
            }
        }
        Err(last)
    }

    /// Asks for the map: the addresses that the user named first, then the processes of the map
    /// that is known, since the user may have named one that is down now.
    fn learn_map(&self) -> Result<()> {
        let mut addresses = self.addresses.clone();
        let known = self.map();
        let processes = known.processes.iter();
        addresses.extend(processes.filter_map(|process| process.address.parse().ok()));
        let map = self.first(&addresses, |address| self.ask_for_map(address))?;
        *self.map.write() = Arc::new(map);
        Ok(())
    }

    fn ask_for_map(&self, address: &Address) -> Result<ClusterMap> {
        let (mut port, _) = self.greet(address, 0)?;
        let head = Head {
            verb: MAP_ASK,
            flags: 0,
            request: 0,
        };
        let gone = |error: &dyn std::fmt::Display| unavailable(format!("{address}: {error}"));
        port.send(head, &[]).map_err(|error| gone(&error))?;
        let mut map = None;
        let waited = port.wait(self.spin, MAP_WAIT, |frame, _| {
            if frame.head.verb == MAP {
                map = Some(ClusterMap::decode(frame.body));
            }
            ControlFlow::Continue(())
        });
        match (map, waited) {
            (Some(map), _) => map,
            (None, Err(closed)) => Err(from_net(closed.into_error(&address.to_string()))),
            (None, Ok(_)) => Err(gone(&"it did not say where partitions are")),
        }
    }

    fn greet(&self, address: &Address, thread: usize) -> Result<(Port, Welcome)> {
        let hello = Hello {
            core: thread as u32,
            token: self.token.clone(),
        };
        let greeting = Greeting {
            verb: HELLO,
            body: &hello.encode(),
            answer: WELCOME,
        };
        let (port, welcome) = greet(address, &self.options, self.spin, &greeting)?;
        Ok((port, Welcome::decode(&welcome)?))
    }
}
