//! The location of output: a path, or a prefix in an object store.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::ObjectError;

/// A directory or file, or the objects below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file or directory on this machine.
    Path(PathBuf),
    /// Objects of a bucket, as `s3://BUCKET/PREFIX`.
    Objects {
        /// Name of the bucket, 3 to 63 characters.
        bucket: String,
        /// The beginning of the objects' keys. It has no slash at either end, and may be empty.
        prefix: String,
    },
}

impl Location {
    /// The location called `name` below this one.
    pub fn join(&self, name: &str) -> Self {
        match self {
            Self::Path(path) => Self::Path(path.join(name)),
            Self::Objects { bucket, prefix } if prefix.is_empty() => Self::Objects {
                bucket: bucket.clone(),
                prefix: name.to_owned(),
            },
            Self::Objects { bucket, prefix } => Self::Objects {
                bucket: bucket.clone(),
                prefix: format!("{prefix}/{name}"),
            },
        }
    }
}

impl FromStr for Location {
    type Err = ObjectError;

    fn from_str(text: &str) -> Result<Self, ObjectError> {
        let fail = |reason| ObjectError::Location {
            text: text.to_owned(),
            reason,
        };
        let Some((scheme, rest)) = text.split_once("://") else {
            if text.is_empty() {
                return Err(fail("it is empty"));
            }
            return Ok(Self::Path(PathBuf::from(text)));
        };
        if scheme != "s3" {
            return Err(fail("only s3:// and paths are known"));
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let name_is_good = (3..=63).contains(&bucket.len())
            && bucket
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b));
        if !name_is_good {
            return Err(fail(
                "a bucket's name has 3 to 63 small letters, digits, dots and hyphens",
            ));
        }
        let prefix = prefix.trim_matches('/');
        if prefix.len() > 900 || prefix.chars().any(char::is_control) {
            return Err(fail(
                "a prefix has at most 900 bytes and no control characters",
            ));
        }
        Ok(Self::Objects {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Objects { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<Location>() {
            Ok(location) => format!("{location} {}", location.join("a.orc")),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn locations_are_paths_or_objects() {
        check("out", "out out/a.orc");
        check("/data/x/", "/data/x/ /data/x/a.orc");
        check("s3://lake", "s3://lake/ s3://lake/a.orc");
        check(
            "s3://lake/tpch/10/",
            "s3://lake/tpch/10 s3://lake/tpch/10/a.orc",
        );
        let unknown = "cannot write to \"gs://lake\": only s3:// and paths are known";
        check("gs://lake", unknown);
        check("", "cannot write to \"\": it is empty");
        let nameless = "a bucket's name has 3 to 63 small letters, digits, dots and hyphens";
        check(
            "s3:///x",
            &format!("cannot write to \"s3:///x\": {nameless}"),
        );
        check(
            "s3://L/x",
            &format!("cannot write to \"s3://L/x\": {nameless}"),
        );
    }
}
