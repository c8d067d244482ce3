//! `pages-space`: memory held for pages, everything included that only this purpose needs.

use std::collections::BTreeMap;

use dyno_pages::PAGE_BYTES;
use dyno_suite::protocol::{Reply, Request};

use super::passes::Times;
use super::place::Place;
use super::{corpus, store};
use crate::{Params, RigError};

/// Memory held for `pages` pages of `class`; with `packed`, after all idle pages were packed again.
pub(crate) fn space(
    params: &mut Params<'_>,
    _request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let packed = match params.text("tier")? {
        "first" => false,
        "packed" => true,
        other => {
            let text = format!("`{other}` is neither first nor packed");
            return Err(params.wrong("tier", text));
        }
    };
    let tiers = store::tiers(params)?;
    let source = store::source(params)?;
    let place = Place::open(peer, source.count(), tiers)?;
    store::fill(&place, &source, &mut Times::default())?;
    // The kernel has no such pass of its own accord, and is compared as it is.
    if packed && peer.is_none() {
        place.pack()?;
    }
    let held = place.held_bytes(source.count())? as f64;
    let pages = source.count() as f64;
    Ok(Reply {
        answer: Some(store::answer(&place, &source)?),
        metrics: BTreeMap::from([
            ("bytes".to_string(), held),
            ("page-bytes".to_string(), held / pages),
            ("compression".to_string(), pages * PAGE_BYTES as f64 / held),
        ]),
        facts: BTreeMap::from([("corpus".to_string(), corpus::told(source.corpus()))]),
        ..Reply::default()
    })
}
