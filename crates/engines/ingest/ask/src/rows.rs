//! The rows that a statement gave, from the CSV that the SQL engine prints.

use crate::error::AskError;

/// A small table of texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// The names of the columns, as many as each row has values.
    pub columns: Vec<String>,
    /// The values of each row as text; an empty one is NULL or the empty string.
    pub values: Vec<Vec<String>>,
}

impl Rows {
    /// Reads CSV with a header line (RFC 4180).
    ///
    /// # Errors
    /// [`AskError::Rows`]: rows of different lengths, or not UTF-8.
    pub fn from_csv(csv: &[u8]) -> Result<Self, AskError> {
        let odd = |error: csv::Error| AskError::Rows(error.to_string());
        let mut reader = csv::Reader::from_reader(csv);
        let texts = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let columns = texts(reader.headers().map_err(odd)?);
        let values = reader
            .records()
            .map(|record| Ok(texts(&record.map_err(odd)?)));
        Ok(Rows {
            columns,
            values: values.collect::<Result<_, _>>()?,
        })
    }

    /// The numbers of a column; `None` when one of its values is not a number.
    pub(crate) fn numbers(&self, column: usize) -> Option<Vec<f64>> {
        let number = |row: &Vec<String>| {
            row.get(column)?
                .parse()
                .ok()
                .filter(|n: &f64| n.is_finite())
        };
        self.values.iter().map(number).collect()
    }
}
