//! What every listener of ours needs: a metrics endpoint, a token, TLS, and the rule that a
//! server which listens beyond this machine asks for a token.
//!
//! What it is: [`Registry`] with counters, gauges and histograms that threads update by one atomic
//! addition; [`Endpoint`], which serves them as Prometheus text at `/metrics`, and `/healthz`;
//! [`Token`]; [`tls`] from PEM files; [`guard`]. What it is not: a web server. It knows GET, closes
//! after each answer, and has a limit on everything a stranger can make it hold.
//!
//! ```
//! use dyno_serve::{Endpoint, Registry, Settings};
//!
//! let registry = Registry::new();
//! let appended = registry.counter("appended_records_total", "Records appended.", &[("topic", "a")])?;
//! appended.add(200);
//!
//! let endpoint = Endpoint::start("127.0.0.1:0".parse()?, registry, Settings::default())?;
//! println!("http://{}/metrics", endpoint.address());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod endpoint;
mod error;
mod guard;
mod http;
mod metrics;
mod stream;
pub mod tls;
mod token;

pub use endpoint::{Endpoint, Health, Settings};
pub use error::ServeError;
pub use guard::guard;
pub use metrics::{Counter, Gauge, Histogram, Registry, Scale};
pub use token::Token;

pub use rustls;
