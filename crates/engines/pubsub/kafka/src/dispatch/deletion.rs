//! Deleting records.

use dyno_pubsub::Result;
use dyno_pubsub::wire::DeleteRecords;

use super::Session;
use crate::error::ErrorCode;
use crate::wire::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsRequest,
    DeleteRecordsResponse, DeleteRecordsTopicResult, Header,
};

impl Session {
    /// Deletes partition by partition. A failure leaves what was deleted before it, because a
    /// client asks about each partition by itself.
    pub(super) fn delete_records(
        &mut self,
        _: &Header,
        request: DeleteRecordsRequest,
    ) -> DeleteRecordsResponse {
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|ask| {
                let deleted = self.delete_before(&topic.name, ask);
                if deleted.is_err() {
                    self.shared.forget_topic(&topic.name);
                }
                DeleteRecordsPartitionResult {
                    partition_index: ask.partition_index,
                    error_code: match &deleted {
                        Ok(_) => ErrorCode::NONE.0,
                        Err(error) => ErrorCode::for_partition(error).0,
                    },
                    low_watermark: deleted.unwrap_or(-1),
                }
            });
            DeleteRecordsTopicResult {
                partitions: partitions.collect(),
                name: topic.name,
            }
        });
        DeleteRecordsResponse {
            throttle_time_ms: 0,
            topics: topics.collect(),
        }
    }

    /// The broker deletes, and not this server in its database: the broker has the end of the
    /// partition in memory, and would go on to give out what is gone. If another broker has the
    /// partition, the client learns that it asks the wrong one, and asks again there.
    fn delete_before(&self, topic: &str, ask: &DeleteRecordsPartition) -> Result<i64> {
        let key = self.shared.partition(topic, ask.partition_index)?;
        let request = DeleteRecords {
            topic_id: key.topic_id,
            partition: key.partition,
            before: ask.offset,
        };
        let deleted = self.broker.client(&self.shared)?.ask(&request)?;
        Ok(deleted.first_offset)
    }
}
