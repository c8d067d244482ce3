//! Reads from etcd for a transaction, all at one revision.

use std::sync::atomic::Ordering;
use std::time::Instant;

use dyno_txn_api::{Code, Error, Result};

use crate::database::Etcd;
use crate::proto::{RangeRequest, RangeResponse, Request, TxnRequest, TxnResponse};

impl Etcd {
    /// Reads ranges at the revision of the transaction, and returns their answers in order. The
    /// first reads of a transaction (revision 0) decide its revision. With `separate` each range is
    /// a request of its own, and all requests are in flight together.
    pub(crate) fn fetch(
        &self,
        revision: &mut i64,
        mut ranges: Vec<RangeRequest>,
        separate: bool,
        until: Instant,
    ) -> Result<Vec<RangeResponse>> {
        let mut found = Vec::with_capacity(ranges.len());
        if *revision == 0 {
            // The revision is known only from an answer. Ranges that do not fit into the first
            // request wait for it, or they might show another revision.
            let first = if separate { 1 } else { self.options.reads_max };
            let rest = ranges.split_off(first.min(ranges.len()));
            let answers = self.ask(vec![request(ranges)], until)?;
            *revision = revision_of(&answers)?;
            found.extend(answers.into_iter().flat_map(ranges_of));
            ranges = rest;
        }
        for range in &mut ranges {
            range.revision = *revision;
        }
        let together = if separate { 1 } else { self.options.reads_max };
        let requests: Vec<TxnRequest> = ranges
            .chunks(together.max(1))
            .map(|chunk| request(chunk.to_vec()))
            .collect();
        if !requests.is_empty() {
            let answers = self.ask(requests, until)?;
            found.extend(answers.into_iter().flat_map(ranges_of));
        }
        Ok(found)
    }

    fn ask(&self, requests: Vec<TxnRequest>, until: Instant) -> Result<Vec<TxnResponse>> {
        let count = requests.len() as u64;
        self.counts.requests.fetch_add(count, Ordering::Relaxed);
        self.client.read(requests, until)
    }
}

fn request(ranges: Vec<RangeRequest>) -> TxnRequest {
    TxnRequest {
        compare: Vec::new(),
        success: ranges
            .into_iter()
            .map(|range| Request::Range(range).into())
            .collect(),
    }
}

fn ranges_of(answer: TxnResponse) -> impl Iterator<Item = RangeResponse> {
    answer
        .responses
        .into_iter()
        .map(|one| one.range.unwrap_or_default())
}

fn revision_of(answers: &[TxnResponse]) -> Result<i64> {
    let header = answers.first().and_then(|answer| answer.header.as_ref());
    header
        .map(|header| header.revision)
        .ok_or_else(|| Error::new(Code::Damaged, "etcd's answer names no revision"))
}
