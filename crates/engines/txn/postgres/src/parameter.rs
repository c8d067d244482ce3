//! The parameters of statements.

use bytes::BytesMut;
use dyno_postgres::postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use dyno_txn_api::{Code, Error, Kind, Result, ValueRef};

/// A parameter of a statement: one value, or many values for a statement over many rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    Bytes(Option<Vec<u8>>),
    I64(Option<i64>),
    F64(Option<f64>),
    Text(Option<String>),
    ManyBytes(Vec<Option<Vec<u8>>>),
    ManyI64(Vec<Option<i64>>),
    ManyF64(Vec<Option<f64>>),
    ManyText(Vec<Option<String>>),
}

impl Parameter {
    /// The value of a column, in the SQL type of the column.
    pub fn from_value(value: ValueRef<'_>, kind: Kind) -> Result<Parameter> {
        Ok(match (value, kind) {
            (ValueRef::Null, Kind::U64 | Kind::I64) => Parameter::I64(None),
            (ValueRef::Null, Kind::F64) => Parameter::F64(None),
            (ValueRef::Null, Kind::Text) => Parameter::Text(None),
            (ValueRef::Null, Kind::Bytes) => Parameter::Bytes(None),
            (ValueRef::U64(value), _) => match i64::try_from(value) {
                Ok(value) => Parameter::I64(Some(value)),
                Err(_) => {
                    let text = format!("{value} does not fit a bigint, which ends below 2^63");
                    return Err(Error::new(Code::NotSupported, text));
                }
            },
            (ValueRef::I64(value), _) => Parameter::I64(Some(value)),
            (ValueRef::F64(value), _) => Parameter::F64(Some(value)),
            (ValueRef::Text(value), _) => {
                if value.contains('\0') {
                    let text = "text with a zero byte, which SQL text cannot hold";
                    return Err(Error::new(Code::NotSupported, text));
                } else {
                    Parameter::Text(Some(value.to_owned()))
                }
            }
            (ValueRef::Bytes(value), _) => Parameter::Bytes(Some(value.to_vec())),
        })
    }

    /// One array parameter of all values of a column. They have the same type, and so do its nulls,
    /// so the first value decides.
    pub fn many(values: Vec<Parameter>) -> Parameter {
        match values.first() {
            Some(Parameter::I64(_)) => Parameter::ManyI64(take(values, |value| match value {
                Parameter::I64(value) => value,
                _ => None,
            })),
            Some(Parameter::F64(_)) => Parameter::ManyF64(take(values, |value| match value {
                Parameter::F64(value) => value,
                _ => None,
            })),
            Some(Parameter::Text(_)) => Parameter::ManyText(take(values, |value| match value {
                Parameter::Text(value) => value,
                _ => None,
            })),
            _ => Parameter::ManyBytes(take(values, |value| match value {
                Parameter::Bytes(value) => value,
                _ => None,
            })),
        }
    }
}

fn take<T>(values: Vec<Parameter>, of: impl Fn(Parameter) -> Option<T>) -> Vec<Option<T>> {
    values.into_iter().map(of).collect()
}

impl ToSql for Parameter {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Parameter::Bytes(value) => value.to_sql_checked(ty, out),
            Parameter::I64(value) => value.to_sql_checked(ty, out),
            Parameter::F64(value) => value.to_sql_checked(ty, out),
            Parameter::Text(value) => value.to_sql_checked(ty, out),
            Parameter::ManyBytes(values) => values.to_sql_checked(ty, out),
            Parameter::ManyI64(values) => values.to_sql_checked(ty, out),
            Parameter::ManyF64(values) => values.to_sql_checked(ty, out),
            Parameter::ManyText(values) => values.to_sql_checked(ty, out),
        }
    }

    /// Accepts every type here, because the check of the value itself follows.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
