//! Spots of WSPR, whose scanner and columns are those of the ingest engine.

use dyno_ingest::load::wspr_archive;
use dyno_ingest::scan::parse_line;
use dyno_ingest::table::WSPR;

use crate::feed::Feed;

/// Spots of WSPR: each month is an archive.
pub const FEED: Feed = Feed {
    name: WSPR,
    about: "spots of WSPR",
    covers: "a month",
    lines_stand_alone: true,
    archive: wspr_archive,
    claims: |text| {
        let is_spot = |line: &str| matches!(parse_line(line.as_bytes()), Ok(Some(_)));
        text.lines().any(is_spot)
    },
    rows: None,
};
