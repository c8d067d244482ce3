//! How a connection to a thread of an engine is made.

use std::time::Duration;

use dyno_net::{Address, Port, PortOptions};
use dyno_txn_api::{Code, Result};

use crate::engine::{Engine, port_options};
use crate::error::{of_net, unavailable};
use crate::greet::{Greeting, greet};
use crate::hello::{HELLO, Hello, WELCOME, Welcome};
use crate::options::OpenOptions;

/// Where the engine is.
pub(crate) enum Reach {
    /// In this process; it stops when the last connection is gone.
    Local(Box<Engine>),
    /// Behind an address, the first one of these that answers.
    Remote {
        addresses: Vec<Address>,
        options: PortOptions,
        token: Vec<u8>,
        spin: Duration,
    },
}

impl Reach {
    pub fn remote(addresses: &[String], options: &OpenOptions) -> Result<Self> {
        let parse = |text: &String| text.parse().map_err(of_net);
        Ok(Reach::Remote {
            addresses: addresses.iter().map(parse).collect::<Result<_>>()?,
            options: PortOptions {
                ring: options.ring,
                tls: options.tls.clone(),
                ..port_options()
            },
            token: options.token.clone().unwrap_or_default().into_bytes(),
            spin: options.spin,
        })
    }

    /// A connection to a thread of the engine, and what the engine says of itself.
    pub fn dial(&self, core: usize) -> Result<(Port, Welcome)> {
        match self {
            Reach::Local(engine) => Ok((engine.connect(core)?, engine.welcome())),
            Reach::Remote {
                addresses,
                options,
                token,
                spin,
            } => {
                let mut last = unavailable("no address to connect to");
                for address in addresses {
                    match dial(address, options, token, *spin, core) {
                        Ok(found) => return Ok(found),
                        // A wrong token is wrong everywhere, and says more than what follows it.
                        Err(error) if error.kind() == Code::Denied => return Err(error),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }
}

fn dial(
    address: &Address,
    options: &PortOptions,
    token: &[u8],
    spin: Duration,
    core: usize,
) -> Result<(Port, Welcome)> {
    let hello = Hello {
        core: core as u32,
        token: token.to_vec(),
    };
    let greeting = Greeting {
        verb: HELLO,
        body: &hello.encode(),
        answer: WELCOME,
    };
    let (port, welcome) = greet(address, options, spin, &greeting)?;
    Ok((port, Welcome::decode(&welcome)?))
}
