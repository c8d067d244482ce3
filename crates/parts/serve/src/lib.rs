//! What every listener of ours needs: a metrics endpoint, a token, TLS, and the rule that a
//! server which listens beyond this machine requires a token.
//!
//! [`Registry`] has counters, gauges and histograms that threads update by one atomic addition.
//! [`Endpoint`] serves them as Prometheus text at `/metrics`, and answers `/healthz`. [`Token`],
//! [`tls`] (from PEM files) and [`guard`] are for all servers.
//!
//! It is not a web server: it answers GET and HEAD, closes after each answer, and limits everything
//! that an unauthenticated client can make it hold.
//!
//! ```
//! use dyno_serve::{Endpoint, Registry, Settings};
//!
//! let registry = Registry::new();
//! let labels = [("topic", "a")];
//! let appended = registry.counter("appended_records_total", "Records appended.", &labels)?;
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
mod wake;

pub use endpoint::{Endpoint, Health, Settings};
pub use error::ServeError;
pub use guard::guard;
pub use metrics::{Counter, Gauge, Histogram, Registry, Scale};
pub use token::Token;
pub use wake::wake_accept;

pub use rustls;
