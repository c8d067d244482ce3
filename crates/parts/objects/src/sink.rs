//! An object that appears when it is complete.

use std::sync::Arc;

use dyno_io::{Durability, Existing, IoError, Output, Sink};

use crate::error::ObjectError;
use crate::part::Uploader;
use crate::store::Store;
use crate::upload::Object;
use crate::workers::Workers;

/// The most parts of one object that stores accept.
const MOST_PARTS: u16 = 10_000;

/// The least and the default length of a part. Stores refuse parts below 5 MiB.
const LEAST_PART_BYTES: usize = 8 << 20;

/// How an object is uploaded. Memory: `in_flight` + 1 parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// Bytes of a part, 8 MiB at least; raised so that `expected_bytes` fit into 10,000 parts.
    pub part_bytes: usize,
    /// Parts at once, each with a thread and a connection.
    pub in_flight: usize,
    /// The approximate length of the object, if it is known.
    pub expected_bytes: Option<u64>,
    /// What to do about an object with the same key.
    pub existing: Existing,
}

impl Default for Sending {
    fn default() -> Self {
        Self {
            part_bytes: LEAST_PART_BYTES,
            in_flight: 4,
            expected_bytes: None,
            existing: Existing::Refuse,
        }
    }
}

/// Collects bytes into parts and uploads them while more are written. What fits into one part is
/// sent at the end in one request. The object appears at `finish`. If the sink is dropped before,
/// or after an error, the upload is aborted, so that no parts stay behind.
#[derive(Debug)]
pub struct ObjectSink {
    object: Object,
    part_bytes: usize,
    in_flight: usize,
    part: Vec<u8>,
    written_bytes: u64,
    upload: Option<(String, Workers)>,
    closed: bool,
}

impl ObjectSink {
    /// Begins an object. If it must not replace another one, asks the store for that first.
    ///
    /// # Errors
    /// [`ObjectError::Exists`] if there is one and it may not be replaced, or why the store cannot
    /// be asked.
    pub fn create(store: &Arc<Store>, key: &str, sending: &Sending) -> Result<Self, ObjectError> {
        let object = Object {
            store: store.clone(),
            key: key.to_owned(),
            existing: sending.existing,
        };
        if sending.existing == Existing::Refuse {
            object.refuse_existing()?;
        }
        // One part in ten is kept in reserve, because the expected length is an estimate.
        let least = sending
            .expected_bytes
            .unwrap_or(0)
            .div_ceil(u64::from(MOST_PARTS) * 9 / 10);
        let least = usize::try_from(least)
            .unwrap_or(usize::MAX / 2)
            .next_multiple_of(1 << 20);
        Ok(Self {
            object,
            part_bytes: sending.part_bytes.max(least).max(LEAST_PART_BYTES),
            in_flight: sending.in_flight,
            part: Vec::new(),
            written_bytes: 0,
            upload: None,
            closed: false,
        })
    }

    /// The name of the object in messages: `s3://BUCKET/KEY`.
    pub fn name(&self) -> String {
        self.object.name()
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<(), ObjectError> {
        while !bytes.is_empty() {
            // A full part is sent only when more follows, so that the last part is never empty and
            // an object of one part needs only one request.
            if self.part.len() == self.part_bytes {
                self.send_part()?;
            }
            // A small object does not allocate a whole part.
            if self.part.capacity() < self.part_bytes && self.part.len() + bytes.len() > 64 << 10 {
                self.part.reserve_exact(self.part_bytes - self.part.len());
            }
            let take = bytes.len().min(self.part_bytes - self.part.len());
            self.part.extend_from_slice(&bytes[..take]);
            self.written_bytes += take as u64;
            bytes = &bytes[take..];
        }
        Ok(())
    }

    fn send_part(&mut self) -> Result<(), ObjectError> {
        if self.upload.is_none() {
            let upload_id = self.object.begin()?;
            let uploader = Uploader {
                store: self.object.store.clone(),
                key: self.object.key.clone(),
                upload_id: upload_id.clone(),
            };
            self.upload = Some((upload_id, Workers::start(uploader, self.in_flight)));
        }
        let Some((_, workers)) = &mut self.upload else {
            return Ok(());
        };
        if workers.parts() == usize::from(MOST_PARTS) {
            return Err(ObjectError::TooLong {
                object: self.object.name(),
                most_parts: MOST_PARTS,
                part_bytes: self.part_bytes,
            });
        }
        self.part = workers.push(std::mem::take(&mut self.part))?;
        Ok(())
    }

    fn complete(&mut self) -> Result<u64, ObjectError> {
        if self.upload.is_none() {
            self.object.write_whole(&self.part)?;
            return Ok(self.written_bytes);
        }
        self.send_part()?;
        if let Some((upload_id, workers)) = &mut self.upload {
            let digests = workers.finish()?;
            self.object
                .complete(upload_id, &digests, self.written_bytes)?;
        }
        self.upload = None;
        Ok(self.written_bytes)
    }

    /// Runs `work`. After an error the sink is closed and the upload aborted.
    fn guarded<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, ObjectError>,
    ) -> Result<T, IoError> {
        if self.closed {
            let object = self.object.name();
            return Err(ObjectError::Closed { object }.into_io());
        }
        work(self).map_err(|cause| {
            self.closed = true;
            self.give_up(cause).into_io()
        })
    }

    fn give_up(&mut self, cause: ObjectError) -> ObjectError {
        let Some((upload_id, workers)) = self.upload.take() else {
            return cause;
        };
        // Parts that arrive after the abort would stay, so the uploads in progress are waited for.
        drop(workers);
        match self.object.abort(&upload_id) {
            Ok(()) => cause,
            Err(abort) => ObjectError::Orphan {
                upload_id,
                cause: Box::new(cause),
                abort: Box::new(abort),
            },
        }
    }
}

impl Sink for ObjectSink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        self.guarded(|sink| sink.append(bytes))
    }

    fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Completes the object, after which nothing can be written. A store has only one durability.
    fn finish(&mut self, _durability: Durability) -> Result<u64, IoError> {
        let written_bytes = self.guarded(Self::complete)?;
        self.closed = true;
        Ok(written_bytes)
    }
}

impl Output for ObjectSink {
    fn publish(mut self: Box<Self>) -> Result<u64, IoError> {
        self.finish(Durability::Stable)
    }
}

impl Drop for ObjectSink {
    fn drop(&mut self) {
        let object = self.object.name();
        // There is no caller to return an error to. If the abort fails, a lifecycle rule of the
        // bucket for incomplete uploads has to remove the parts.
        let _ = self.give_up(ObjectError::Closed { object });
    }
}
