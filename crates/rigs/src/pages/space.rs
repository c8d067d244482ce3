//! `pages-space`: the memory that pages take, with everything that is allocated for no other
//! purpose.

use std::collections::BTreeMap;

use dyno_pages::{PAGE_BYTES, heap};
use dyno_suite::protocol::{Reply, Request};

use super::passes::{SLICE, Times, shuffled};
use super::source::Source;
use super::system::{PageSystem, aligned};
use super::{PagesError, bytes_of, corpus, store};
use crate::used::proc_bytes;
use crate::{Params, RigError};

/// Memory held for `pages` pages of `class`; with `packed`, after all idle pages were packed again;
/// with `churn`, after so many passes in which every page was overwritten with another one, and one
/// pass of compaction.
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
    let churn = params.count_or("churn", 0)?;
    let tiers = store::tiers(params)?;
    let source = store::source(params)?;
    // What making the corpus left in the heap is not the store's, and must not hide what is.
    heap::give_back();
    let before = own_bytes()?;
    let system = PageSystem::open(peer, source.count(), tiers)?;
    store::fill(&system, &source, &mut Times::default())?;
    overwrite(&system, &source, churn)?;
    let mut facts = BTreeMap::from([("corpus".to_string(), corpus::describe(source.corpus()))]);
    if packed {
        store::note_unpacked(system.pack()?, &mut facts);
    }
    // A thread's buffers live as long as the thread, so they count.
    let worker = system.worker()?;
    // Measured after everything that the store allocates for good, and before the answer is read
    // back, whose buffers are not the store's.
    let process = match peer {
        None => own_bytes()?.saturating_sub(before + buffers(churn)),
        Some(_) => 0,
    };
    let held = system.held_bytes_with(source.count(), process)? as f64;
    drop(worker);
    let pages = source.count() as f64;
    let count = source.count();
    let last = |number| match churn {
        0 => number,
        passes => store::overwritten_with(number, passes - 1, count),
    };
    Ok(Reply {
        answer: Some(store::answer(&system, &source, last)?),
        metrics: BTreeMap::from([
            ("bytes".to_string(), held),
            ("process-bytes".to_string(), process as f64),
            ("page-bytes".to_string(), held / pages),
            ("compression".to_string(), pages * PAGE_BYTES as f64 / held),
        ]),
        facts,
        ..Reply::default()
    })
}

/// Overwrites every page with another one, in random order, `passes` times.
fn overwrite(system: &PageSystem, source: &Source, passes: u64) -> Result<(), PagesError> {
    if passes == 0 {
        return Ok(());
    }
    let mut worker = system.worker()?;
    let page = aligned(1);
    for pass in 0..passes {
        for number in shuffled(source.count() as usize, 11 + pass) {
            source.fill(
                store::overwritten_with(number, pass, source.count()),
                &mut page[0],
            );
            worker.write(number, page)?;
        }
    }
    drop(worker);
    system.compact()
}

/// Bytes of this process that belong to the measurement itself: page buffers that are never freed.
fn buffers(churn: u64) -> u64 {
    bytes_of(SLICE as u64 + 1) + if churn > 0 { bytes_of(2) } else { 0 }
}

/// Anonymous memory of this process in bytes.
fn own_bytes() -> Result<u64, PagesError> {
    let path = "/proc/self/status";
    proc_bytes(path, "RssAnon:").map_err(|e| PagesError::system(path, e))
}
