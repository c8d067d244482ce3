//! What all row groups of a file have in common.

use super::error::{Error, Result};
use super::options::{ColumnOptions, Compression, Encoding, Options, PageVersion};
use super::schema;
use super::spare::Spare;
use crate::columns::{Field, Kind};

/// The checked columns and options of a file, which all threads that write it share.
#[derive(Debug)]
pub struct Layout {
    pub(super) columns: Vec<ColumnPlan>,
    pub(super) schema: Vec<schema::Field>,
    pub(super) page_version: PageVersion,
    pub(super) page_index: bool,
    /// Numbers of the columns that rows are sorted by.
    pub(super) sorted_by: Vec<usize>,
    pub(super) key_values: Vec<(String, String)>,
    /// Buffers that go round between the file's writer and those of row groups.
    pub(super) spare: Spare,
}

/// The options of one column, with those of the file where it has none of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnPlan {
    pub field: Field,
    pub compression: Compression,
    /// Whether the compression is an option of this column. Then it is not given up where it does
    /// not pay.
    pub is_asked: bool,
    pub encoding: Encoding,
    /// Whether the automatic choice has no deltas and prefixes of text.
    pub plain_text: bool,
}

impl Layout {
    /// Checks the options against the columns.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`], [`Error::Level`], [`Error::Encoding`], [`Error::Precision`].
    pub fn new(fields: &[Field], options: Options) -> Result<Layout> {
        let place = |given: &String| {
            let found = fields.iter().position(|field| field.name == given);
            found.ok_or_else(|| Error::UnknownColumn {
                given: given.clone(),
                known: fields
                    .iter()
                    .map(|field| field.name)
                    .collect::<Vec<_>>()
                    .join(", "),
            })
        };
        options.compression.check()?;
        let mut asked = vec![ColumnOptions::default(); fields.len()];
        for (name, column) in &options.columns {
            asked[place(name)?] = *column;
        }
        let columns = fields
            .iter()
            .zip(asked)
            .map(|(&field, asked)| ColumnPlan::new(field, asked, &options));
        let mut schema: Vec<schema::Field> = fields.iter().map(|&field| field.into()).collect();
        if options.field_ids {
            schema::number(&mut schema);
        }
        Ok(Layout {
            columns: columns.collect::<Result<_>>()?,
            schema,
            page_version: options.page_version,
            page_index: options.page_index,
            sorted_by: options.sorted_by.iter().map(place).collect::<Result<_>>()?,
            key_values: options.key_values,
            spare: Spare::default(),
        })
    }

    /// The fields in the order of the columns.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.columns.iter().map(|column| &column.field)
    }
}

impl ColumnPlan {
    fn new(field: Field, asked: ColumnOptions, options: &Options) -> Result<ColumnPlan> {
        let is_text = matches!(field.kind, Kind::Text | Kind::Char(_) | Kind::Varchar(_));
        if asked.encoding == Encoding::Prefix && !is_text {
            return Err(Error::Encoding {
                column: field.name,
                encoding: asked.encoding,
            });
        }
        if let Kind::Decimal { precision, scale } = field.kind
            && !((1..=18).contains(&precision) && scale <= precision)
        {
            return Err(Error::Precision {
                column: field.name,
                precision,
                scale,
            });
        }
        let compression = asked.compression.unwrap_or(options.compression);
        compression.check()?;
        Ok(ColumnPlan {
            field,
            compression,
            is_asked: asked.compression.is_some(),
            encoding: asked.encoding,
            plain_text: options.plain_text,
        })
    }
}
