//! How a connection to a thread of an engine is made.

use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use dyno_net::{Address, Head, Port, PortOptions};
use dyno_txn_api::{Code, Result};

use crate::engine::Engine;
use crate::error::{from_net, unavailable};
use crate::greet::{Greeting, greet};
use crate::hello::{HELLO, Hello, MAP, MAP_ASK, WELCOME, Welcome};
use crate::member::Map;
use crate::options::OpenOptions;
use crate::ports::port_options;

/// How long a map may take to come.
const MAP_WAIT: Duration = Duration::from_secs(5);

/// Where the engine is.
pub(crate) enum Reach {
    /// In this process; it stops when the last connection is gone.
    Local(Box<Engine>),
    /// Behind addresses.
    Remote(Remote),
}

/// An engine behind addresses.
pub(crate) struct Remote {
    /// As they were given: the first one of these that answers says where everybody is.
    addresses: Vec<Address>,
    map: RwLock<Arc<Map>>,
    options: PortOptions,
    token: Vec<u8>,
    spin: Duration,
}

impl Reach {
    /// Asks where everybody is.
    pub fn remote(addresses: &[String], options: &OpenOptions) -> Result<Self> {
        let parse = |text: &String| text.parse().map_err(from_net);
        let remote = Remote {
            addresses: addresses.iter().map(parse).collect::<Result<_>>()?,
            map: RwLock::new(Arc::new(Map::unknown(1, 1))),
            options: PortOptions {
                ring: options.ring,
                tls: options.tls.clone(),
                ..port_options()
            },
            token: options.token.clone().unwrap_or_default().into_bytes(),
            spin: options.spin,
        };
        remote.learn()?;
        Ok(Reach::Remote(remote))
    }

    /// Which processes there are, with how many threads.
    pub fn map(&self) -> Arc<Map> {
        match self {
            Reach::Local(engine) => {
                let welcome = engine.welcome();
                Arc::new(Map::single(welcome.partitions, welcome.cores))
            }
            Reach::Remote(remote) => remote.map(),
        }
    }

    /// What a process that can be reached says of itself.
    pub fn welcome(&self) -> Result<Welcome> {
        let mut last = unavailable("the database has no process");
        for part in 0..self.map().parts.len() {
            match self.dial(part, 0) {
                Ok((_, welcome)) => return Ok(welcome),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// A connection to a thread of a process, and what that says of itself.
    pub fn dial(&self, part: usize, core: usize) -> Result<(Port, Welcome)> {
        match self {
            Reach::Local(engine) => Ok((engine.connect(core)?, engine.welcome())),
            Reach::Remote(remote) => match remote.dial(part, core) {
                Err(error) if error.kind() == Code::Unavailable && remote.map().parts.len() > 1 => {
                    // It may have been started again elsewhere.
                    remote.learn()?;
                    remote.dial(part, core)
                }
                dialled => dialled,
            },
        }
    }
}

impl Remote {
    fn map(&self) -> Arc<Map> {
        self.map
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn dial(&self, part: usize, core: usize) -> Result<(Port, Welcome)> {
        let map = self.map();
        let found = map.parts.get(part).filter(|part| part.threads > 0);
        let Some(found) = found else {
            return Err(unavailable(format!(
                "process {part} of {}: no oracle has heard of it yet",
                map.parts.len()
            )));
        };
        if found.address.is_empty() {
            return self.first(&self.addresses, |address| self.greet(address, core));
        }
        self.greet(&found.address.parse().map_err(from_net)?, core)
    }

    /// The first of these addresses that answers.
    fn first<T>(&self, addresses: &[Address], ask: impl Fn(&Address) -> Result<T>) -> Result<T> {
        let mut last = unavailable("no address to connect to");
        for address in addresses {
            match ask(address) {
                // A wrong token is wrong everywhere, and says more than what follows it.
                Err(error) if error.kind() == Code::Denied => return Err(error),
                Err(error) => last = error,
                found => return found,
            }
        }
        Err(last)
    }

    /// Asks somebody where everybody is.
    fn learn(&self) -> Result<()> {
        let mut addresses = self.addresses.clone();
        let known = self.map();
        let parts = known
            .parts
            .iter()
            .filter_map(|part| part.address.parse().ok());
        addresses.extend(parts);
        let map = self.first(&addresses, |address| self.ask_for_map(address))?;
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
        Ok(())
    }

    fn ask_for_map(&self, address: &Address) -> Result<Map> {
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
                map = Some(Map::decode(frame.body));
            }
            ControlFlow::Continue(())
        });
        match (map, waited) {
            (Some(map), _) => map,
            (None, Err(closed)) => Err(from_net(closed.into_error(&address.to_string()))),
            (None, Ok(_)) => Err(gone(&"it did not say where partitions are")),
        }
    }

    fn greet(&self, address: &Address, core: usize) -> Result<(Port, Welcome)> {
        let hello = Hello {
            core: core as u32,
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
