//! What all stripes of a file have in common.

use super::column::Column;
use super::error::Result;
use super::options::Options;
use super::schema;
use crate::columns::Field;
use parking_lot::Mutex;

/// Fields and options of a file, checked once and shared by all threads that write stripes of it.
pub struct Layout {
    fields: Vec<Field>,
    options: Options,
    /// Columns of stripes that were written: their buffers are used again.
    spare: Mutex<Vec<Vec<Column>>>,
}

impl Layout {
    /// Takes the columns of a file, in their order.
    ///
    /// # Errors
    /// When a field cannot be in an ORC file: no name, or one that another has; a decimal beyond 18
    /// digits; a char or varchar of length 0. When an option is out of its range.
    pub fn new(fields: &[Field], options: Options) -> Result<Layout> {
        schema::check(fields)?;
        options.check()?;
        Ok(Layout {
            fields: fields.to_vec(),
            options,
            spare: Mutex::default(),
        })
    }

    /// The columns.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// How they are written.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Empty columns, with the buffers of an earlier stripe if there are any.
    pub(super) fn take_columns(&self) -> Vec<Column> {
        let spare = self.spare.lock().pop();
        match spare {
            Some(mut columns) => {
                columns.iter_mut().for_each(Column::clear);
                columns
            }
            None => {
                let column = |field: &Field| Column::new(*field, &self.options);
                self.fields.iter().map(column).collect()
            }
        }
    }

    /// Keeps the buffers of columns that were written.
    pub(super) fn give_columns(&self, columns: Vec<Column>) {
        self.spare.lock().push(columns);
    }
}
