//! Avro files of records, with the schemas that the Iceberg specification gives for manifests and
//! manifest lists. Readers find fields by the `field-id` in the schema of a file.

use std::path::Path;

use apache_avro::types::Value;
use apache_avro::{Codec, DeflateSettings, Reader, Schema, Writer, from_value};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// The entries of a manifest, which are data files.
const MANIFEST: &str = include_str!("manifest.avsc");
/// The entries of a manifest list, which are manifests.
const MANIFEST_LIST: &str = include_str!("manifest_list.avsc");

/// The kind of records in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Records {
    Manifest,
    ManifestList,
}

/// Encodes a file of records, with key-value pairs in its header.
pub(crate) fn encode<T: Serialize>(
    kind: Records,
    pairs: &[(&str, String)],
    records: impl IntoIterator<Item = T>,
    path: &Path,
) -> Result<Vec<u8>> {
    let wrong = |e: apache_avro::Error| Error::Damaged {
        path: path.to_owned(),
        reason: format!("it cannot be encoded: {e}"),
    };
    let schema = Schema::parse_str(match kind {
        Records::Manifest => MANIFEST,
        Records::ManifestList => MANIFEST_LIST,
    })
    .map_err(wrong)?;
    let codec = Codec::Deflate(DeflateSettings::default());
    let mut writer = Writer::with_codec(&schema, Vec::new(), codec);
    for (key, value) in pairs {
        writer
            .add_user_metadata((*key).to_owned(), value)
            .map_err(wrong)?;
    }
    for record in records {
        writer.append_ser(record).map_err(wrong)?;
    }
    writer.into_inner().map_err(wrong)
}

/// Decodes the records of a file that [`encode`] has made.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], path: &Path) -> Result<Vec<T>> {
    let wrong = |e: apache_avro::Error| Error::Damaged {
        path: path.to_owned(),
        reason: e.to_string(),
    };
    let reader = Reader::new(bytes).map_err(wrong)?;
    let record = |value: std::result::Result<Value, apache_avro::Error>| {
        from_value(&value.map_err(wrong)?).map_err(wrong)
    };
    reader.map(record).collect()
}
