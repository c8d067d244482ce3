//! Merges the pages of several partitions into one.

use dyno_txn_api::limits::PAGE_BYTES_MAX;
use dyno_txn_api::{Answer, Continuation, Direction, Page, Result, Scan, ScanRow};

use crate::message::PartialAnswer;

/// Merges the pages of one scan. The result has the rows in the order of the scan, at most as many
/// as it asks for, and ends where the first partition stopped, because later rows of that one are
/// not known yet.
pub(crate) fn merge(scan: &Scan, parts: Vec<PartialAnswer>) -> Result<Page> {
    let mut bound: Option<Vec<u8>> = None;
    let mut rows: Vec<(Vec<u8>, ScanRow)> = Vec::new();
    let before = |a: &[u8], b: &[u8]| match scan.direction {
        Direction::Forward => a < b,
        Direction::Backward => a > b,
    };
    for part in parts {
        let page = part.answer.page()?;
        if let Some(Continuation(next)) = page.next
            && bound.as_ref().is_none_or(|bound| before(&next, bound))
        {
            bound = Some(next);
        }
        let mut places = part.index_keys.into_iter();
        for row in page.rows {
            let place = places.next().unwrap_or_else(|| row.key.clone());
            rows.push((place, row));
        }
    }
    // A partition that stopped early may have rows of its own between its last one and those of the
    // others. Rows behind the first stop are left for the next page, so that none is passed over.
    if let Some(bound) = &bound {
        rows.retain(|(place, _)| !before(bound, place));
    }
    rows.sort_by(|(a, _), (b, _)| match scan.direction {
        Direction::Forward => a.cmp(b),
        Direction::Backward => b.cmp(a),
    });
    let mut page = Page::default();
    let (mut bytes, mut last) = (0, None);
    for (place, row) in rows {
        if page.rows.len() == scan.page_rows() || bytes >= PAGE_BYTES_MAX {
            page.next = last.map(Continuation);
            return Ok(page);
        }
        bytes += row.key.len() + row.value.len();
        page.rows.push(row);
        last = Some(place);
    }
    page.next = bound.map(Continuation);
    Ok(page)
}

/// The answer of a scan that only one partition was asked for.
pub(crate) fn single(part: PartialAnswer) -> Answer {
    part.answer
}
