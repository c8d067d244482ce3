//! Derives an archive's identity from its file's name.

use std::path::Path;

/// Feed and month (`wspr/2023-01`) for a name like `wsprspots-2023-01.csv.gz`; otherwise the
/// file's name without the extensions of its packing.
pub fn from_path(path: &Path) -> String {
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    let mut stem = name.as_ref();
    for extension in [".gz", ".zip", ".csv", ".parquet"] {
        stem = stem.strip_suffix(extension).unwrap_or(stem);
    }
    match stem.strip_prefix("wsprspots-") {
        Some(month) if is_month(month) => format!("wspr/{month}"),
        _ => stem.to_owned(),
    }
}

fn is_month(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 7
        && bytes[4] == b'-'
        && [0, 1, 2, 3, 5, 6]
            .iter()
            .all(|&i| bytes[i].is_ascii_digit())
        && (1..=12).contains(&(10 * (bytes[5] - b'0') + (bytes[6] - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_recognised_and_other_names_kept() {
        for (path, identity) in [
            ("/a/wsprspots-2023-01.csv.gz", "wspr/2023-01"),
            ("wsprspots-2023-12.csv", "wspr/2023-12"),
            ("wsprspots-2023-12.zip", "wspr/2023-12"),
            ("wsprspots-2023-13.csv", "wsprspots-2023-13"),
            ("dir/my spots.csv.gz", "my spots"),
            ("stdin", "stdin"),
        ] {
            assert_eq!(from_path(Path::new(path)), identity, "{path}");
        }
    }
}
