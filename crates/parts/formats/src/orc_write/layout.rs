//! What all stripes of a file have in common, and the buffers that go round between them.

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
    /// Columns of stripes that were written, whose buffers the next stripes use again. There are at
    /// most as many as stripes were under way at once.
    spare: Mutex<Vec<Vec<Column>>>,
}

impl Layout {
    /// Checks the columns of a file, in their order, and its options.
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

    /// The fields in the order of the columns.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The options that were given to [`Layout::new`].
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Empty columns, with the buffers of an earlier stripe if there are any.
    pub(super) fn take_columns(&self) -> Vec<Column> {
        // The lock ends here, since clearing buffers of a stripe takes longer than popping them.
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
