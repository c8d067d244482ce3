//! Figures, lint and reports made from a record.
