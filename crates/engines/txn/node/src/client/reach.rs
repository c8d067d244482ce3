//! How a connection to a thread of an engine is made.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use dyno_net::{Address, FrameRef, Head, Outbound, Port, PortOptions};
use dyno_txn_api::{Code, Error, Result};

use crate::engine::{Engine, port_options};
use crate::error::{of_net, unavailable};
use crate::hello::{HELLO, Hello, REFUSED, WELCOME, Welcome, decode_refusal};
use crate::options::OpenOptions;

/// How long a server may take to say who it is.
const WELCOME_WAIT: Duration = Duration::from_secs(5);

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
    let mut port = Port::connect(address, options).map_err(of_net)?;
    let hello = Hello {
        core: core as u32,
        token: token.to_vec(),
    };
    let head = Head {
        verb: HELLO,
        flags: 0,
        request: 0,
    };
    let ended = |what: &dyn std::fmt::Display| unavailable(format!("{address}: {what}"));
    port.send(head, &[&hello.encode()])
        .map_err(|error| ended(&error))?;
    let mut answer: Option<Result<Welcome>> = None;
    let take = |frame: FrameRef<'_>, _: &mut Outbound| {
        answer = Some(match frame.head.verb {
            WELCOME => Welcome::decode(frame.body),
            REFUSED => Err(decode_refusal(frame.body)),
            verb => Err(Error::new(
                Code::Damaged,
                format!("verb {verb} instead of a welcome"),
            )),
        });
        ControlFlow::Continue(())
    };
    let began = Instant::now();
    let waited = port.wait(spin, WELCOME_WAIT, take);
    match (answer, waited) {
        (Some(answer), _) => answer.map(|welcome| (port, welcome)),
        (None, Err(closed)) => Err(of_net(closed.into_error(&address.to_string()))),
        (None, Ok(_)) => Err(ended(&format!("no welcome within {:?}", began.elapsed()))),
    }
}
