//! The commit: one request that writes if nothing that was read has changed.

use std::sync::atomic::Ordering;

use dyno_txn_api::{Code, Error, Result, Timestamp};

use crate::database::in_time;
use crate::proto::{Compare, DeleteRangeRequest, PutRequest, Request, TxnRequest};
use crate::transaction::Optimistic;

impl Optimistic<'_> {
    /// Commits. Returns the revision that the commit made, or the one that was read if there were
    /// no writes.
    pub fn finish(&mut self) -> Result<Option<Timestamp>> {
        if let Some(error) = &self.doomed {
            let text = format!("an earlier operation failed: {error}");
            return Err(Error::new(Code::WriteFailed, text));
        }
        in_time(self.until)?;
        let counts = &self.db.counts;
        if self.writes.is_empty() {
            // All reads show the state at one revision, which was the latest when the transaction
            // began to read. So it is serialized at that moment, and needs no request.
            counts.committed.fetch_add(1, Ordering::Relaxed);
            return Ok((self.revision > 0).then_some(self.revision as u64));
        }
        counts.requests.fetch_add(1, Ordering::Relaxed);
        let answer = self.db.client.write(self.request(), self.until)?;
        if !answer.succeeded {
            counts.conflicts.fetch_add(1, Ordering::Relaxed);
            let text = "something that the transaction read was changed meanwhile";
            return Err(Error::new(Code::Conflict, text));
        }
        counts.committed.fetch_add(1, Ordering::Relaxed);
        Ok(answer.header.map(|header| header.revision as u64))
    }

    fn request(&mut self) -> TxnRequest {
        // Rows that a range returned are compared one by one, which finds changes and removals. The
        // range itself is compared as well, which finds rows that were added.
        let reads = std::mem::take(&mut self.reads);
        let keys = reads
            .into_iter()
            .map(|(key, read)| Compare::unchanged(key, read.changed));
        let ranges = std::mem::take(&mut self.ranges);
        let ranges = ranges
            .into_iter()
            // An empty range, as a backward scan may leave it, has nothing to compare.
            .filter(|(start, end)| start < end)
            .map(|(start, end)| Compare::none_newer(start, end, self.revision));
        let compare = keys.chain(ranges).collect();
        let writes = std::mem::take(&mut self.writes);
        let success = writes
            .into_iter()
            .map(|(key, value)| match value {
                Some(value) => Request::Put(PutRequest { key, value }).into(),
                None => Request::Delete(DeleteRangeRequest { key }).into(),
            })
            .collect();
        TxnRequest { compare, success }
    }
}
