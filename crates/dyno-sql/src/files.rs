//! Local files as the scan of the general plan reads them: on the thread that asks.
//!
//! The file system of `object_store` hands each read to another thread, and to be woken by one
//! costs tens of microseconds; a query of a few milliseconds reads twenty times. Tables lie on
//! local disks and mostly in the page cache, where a read is a copy.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use futures::stream::{self, BoxStream, StreamExt};

/// Local files, read on the calling thread.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Does everything except reading parts of files.
    all: LocalFileSystem,
}

impl Files {
    fn open(&self, location: &Path) -> Result<File> {
        let path = self.all.path_to_filesystem(location)?;
        File::open(path).map_err(|error| failed(location, error))
    }
}

fn failed(location: &Path, error: io::Error) -> Error {
    let path = location.to_string();
    match error.kind() {
        io::ErrorKind::NotFound => Error::NotFound {
            path,
            source: Box::new(error),
        },
        io::ErrorKind::PermissionDenied => Error::PermissionDenied {
            path,
            source: Box::new(error),
        },
        _ => Error::Generic {
            store: "local files",
            source: format!("/{path}: {error}").into(),
        },
    }
}

/// Reads a range of a file of `size` bytes. The range comes from the file's footer, which may be
/// damaged or hostile, so it is compared with the size before memory is allocated for it.
fn read(file: &File, location: &Path, size: u64, range: &Range<u64>) -> Result<Bytes> {
    if range.start > range.end || range.end > size {
        let reason = format!(
            "bytes {} to {} were requested, the file has {size}",
            range.start, range.end
        );
        return Err(failed(location, io::Error::other(reason)));
    }
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut bytes, range.start)
        .map_err(|error| failed(location, error))?;
    Ok(bytes.into())
}

/// The request, if it is one that a scan makes: `Some(Some(range))` for a range, `Some(None)` for
/// the metadata of the file. `None` for any other request, which the library answers.
fn asked(options: &GetOptions) -> Option<Option<Range<u64>>> {
    let conditions = options.if_match.is_some()
        || options.if_none_match.is_some()
        || options.if_modified_since.is_some()
        || options.if_unmodified_since.is_some()
        || options.version.is_some();
    match (&options.range, options.head) {
        _ if conditions => None,
        (Some(GetRange::Bounded(range)), false) => Some(Some(range.clone())),
        (None, true) => Some(None),
        _ => None,
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("local files")
    }
}

#[async_trait]
impl ObjectStore for Files {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        // Conditional requests and suffix ranges stay with the library, because its rules for them
        // are subtle and no scan of a table makes them.
        let Some(asked) = asked(&options) else {
            return self.all.get_opts(location, options).await;
        };
        // Blocking here is deliberate: see the head of this file. A read from a slow disk holds up
        // one of the runtime's threads, and the plan has as many partitions as there are threads.
        let file = self.open(location)?;
        let metadata = file.metadata().map_err(|error| failed(location, error))?;
        let modified = metadata.modified();
        let meta = ObjectMeta {
            location: location.clone(),
            last_modified: modified.map_err(|error| failed(location, error))?.into(),
            size: metadata.len(),
            e_tag: None,
            version: None,
        };
        let (range, bytes) = match asked {
            None => (0..meta.size, Bytes::new()),
            Some(asked) => {
                // A range that goes beyond the end ends there.
                let range = asked.start..asked.end.min(meta.size).max(asked.start);
                let bytes = read(&file, location, meta.size, &range)?;
                (range, bytes)
            }
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed()),
            meta,
            range,
            attributes: Attributes::default(),
        })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let file = self.open(location)?;
        let metadata = file.metadata().map_err(|error| failed(location, error))?;
        ranges
            .iter()
            .map(|range| read(&file, location, metadata.len(), range))
            .collect()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.all.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.all.list_with_delimiter(prefix).await
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.all.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.all.put_multipart_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.all.delete_stream(locations)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.all.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use datafusion::object_store::ObjectStoreExt;

    use super::*;

    #[tokio::test]
    async fn parts_of_files_are_those_of_the_library() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a file");
        let bytes: Vec<u8> = (0..10_000u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let location = Path::from_absolute_path(&path).unwrap();
        let (ours, theirs) = (Files::default(), LocalFileSystem::new());
        for range in [0..1, 17..4096, 9_000..10_000, 9_999..12_000] {
            let options = || GetOptions::new().with_range(Some(range.clone()));
            let mine = ours.get_opts(&location, options()).await.unwrap();
            let other = theirs.get_opts(&location, options()).await.unwrap();
            assert_eq!(mine.range, other.range);
            assert_eq!(mine.meta.size, other.meta.size);
            assert_eq!(mine.meta.last_modified, other.meta.last_modified);
            assert_eq!(mine.bytes().await.unwrap(), other.bytes().await.unwrap());
        }
        let ranges = [5..10, 5_000..9_000, 0..10_000];
        assert_eq!(
            ours.get_ranges(&location, &ranges).await.unwrap(),
            theirs.get_ranges(&location, &ranges).await.unwrap()
        );
        assert_eq!(
            ours.get(&location).await.unwrap().bytes().await.unwrap(),
            bytes
        );
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("short");
        std::fs::write(&path, [1; 10]).unwrap();
        let location = Path::from_absolute_path(&path).unwrap();
        let missing = Path::from_absolute_path(directory.path().join("none")).unwrap();
        let files = Files::default();
        let error = files.get_range(&missing, 0..4).await.unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
        for range in [5..20, 8..u64::MAX, std::ops::Range { start: 6, end: 2 }] {
            let error = files.get_ranges(&location, &[range]).await.unwrap_err();
            assert!(error.to_string().contains("short: bytes "), "{error}");
        }
        assert!(files.get_range(&location, 12..14).await.is_err());
    }
}
