//! Indices of the sun and of the earth's magnetic field, in the text forms that their makers
//! publish.
//!
//! | source | form | what is read |
//! |---|---|---|
//! | `gfz` | `Kp_ap_Ap_SN_F107_since_1932.txt` and its nowcast, `Kp_ap_since_1932.txt`, of GFZ Potsdam | `kp`, `ap`, `ap_daily`, `sunspots`, `f107_observed`, `f107_adjusted` |
//! | `silso` | `SN_d_tot_V2.0.csv` and `.txt` of SILSO Brussels | `sunspots`, `sunspots_deviation` |
//! | `drao` | `fluxtable.txt` of Penticton | `f107_observed`, `f107_adjusted`, `f107_absolute` |
//! | `swpc-dsd` | Daily Solar Data of NOAA's SWPC | `f107_observed`, `sunspots_sesc` |
//! | `swpc-dgd` | Daily Geomagnetic Data of NOAA's SWPC | `ap_daily`, `kp`, both estimated |
//!
//! A line becomes a row for each value, so that all forms fit one table. What a form marks as
//! missing is a row without a value. The rest of SWPC's lines (flares, other stations) is left out.

mod forms;
mod generator;

use crate::batch::Packing;
use crate::feed::{Feed, Layout, Line, Reader, Refusal, RowFormat, stem};
use crate::field::{Field, Kind};
use crate::rows::Rows;
use forms::{Form, Value};

const FIELDS: &[Field] = &[
    Field::new(
        "timestamp",
        Kind::Moment,
        "begin of the time that the value is for; the moment of a measurement, UTC",
    ),
    Field::new(
        "hours",
        Kind::unsigned(8),
        "how long that time is; 0 for a moment",
    ),
    Field::new(
        "index",
        Kind::Word,
        "kp, ap, ap_daily, sunspots, f107_observed and others",
    ),
    Field::nullable(
        "value",
        Kind::Thousandths,
        "the value; none where the source marks it as missing",
    ),
    Field::nullable(
        "status",
        Kind::Word,
        "definitive, preliminary, estimated, where the source says",
    ),
    Field::new("source", Kind::Word, "gfz, silso, drao, swpc-dsd, swpc-dgd"),
];

/// Indices of the sun and of the earth's magnetic field: each table is an archive.
pub const FEED: Feed = Feed {
    name: "solar",
    about: "F10.7, Kp, sunspots",
    covers: "a table",
    lines_stand_alone: false,
    archive: stem,
    claims,
    rows: Some(RowFormat {
        fields: FIELDS,
        layout: Layout {
            order: &["index", "timestamp"],
            seconds: &[],
        },
        reader: || Box::new(Indices::default()),
        file_name: generator::file_name,
        packing: Packing::Plain,
        lines: |batch| Box::new(generator::lines(batch)),
    }),
};

fn claims(text: &str) -> bool {
    let mut form = None;
    text.lines().any(|line| {
        form = forms::announced(line).or(form);
        form.is_some() || forms::from_line(line).is_some()
    })
}

/// Reads the lines of one file, which are of one form.
#[derive(Default)]
struct Indices {
    form: Option<Form>,
    values: Vec<Value>,
}

impl Reader for Indices {
    fn line(&mut self, line: &[u8], rows: &mut Rows) -> Result<Line, Refusal> {
        let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
        if let Some(form) = forms::announced(line) {
            self.form = Some(form);
            return Ok(Line::Nothing);
        }
        if forms::is_comment(line) {
            return Ok(Line::Nothing);
        }
        let form = match self.form {
            Some(form) => form,
            None => {
                forms::from_line(line).ok_or_else(|| "it is of no form that is known".to_owned())?
            }
        };
        self.values.clear();
        // All values of a line are parsed before the first is pushed, so that a bad line leaves no
        // row.
        form.read(line, &mut self.values)?;
        // Only a line that was read decides the form, so that a bad first line does not spoil the
        // file.
        self.form = Some(form);
        for value in &self.values {
            rows.push(&[
                value.moment_ms.into(),
                value.hours.into(),
                value.index.into(),
                value.thousandths.into(),
                value.status.into(),
                form.source().into(),
            ]);
        }
        Ok(Line::Rows)
    }
}
