//! What JDBC's drivers and the tools over them ask of PostgreSQL's catalogue and its crate does not
//! answer: all settings, and the columns of indexes.

mod rewrite;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayBuilder, ArrayRef, AsArray, Int32Builder, ListBuilder, RecordBatch, StringArray,
    StructBuilder, new_null_array,
};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Int32Type};
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::{MemTable, ViewTable, provider_as_source};
use datafusion::functions_nested::expr_fn::string_to_array;
use datafusion::logical_expr::{
    ColumnarValue, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    SimpleScalarUDF, TypeSignature, Volatility, cast, col, lit,
};

pub(super) use self::rewrite::rewrite;
use super::wire::SETTINGS;

const PG_SETTINGS: &str = "pg_settings";
const PG_INDEX: &str = "pg_index";
/// Columns of `pg_index` that clients take for arrays. The catalogue's crate has them as text, with
/// spaces between the elements.
const VECTORS: [&str; 3] = ["indkey", "indoption", "indclass"];
const EXPAND_ARRAY: &str = "_pg_expandarray";

/// `pg_catalog` with the settings that SHOW knows.
#[derive(Debug)]
pub(super) struct Catalogue {
    /// All other tables.
    rest: Arc<dyn SchemaProvider>,
}

impl Catalogue {
    pub(super) fn new(rest: Arc<dyn SchemaProvider>) -> Self {
        Self { rest }
    }
}

#[async_trait]
impl SchemaProvider for Catalogue {
    fn table_names(&self) -> Vec<String> {
        self.rest.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match (name, self.rest.table(name).await?) {
            (PG_SETTINGS, Some(table)) => settings(&*table).map(Some),
            (PG_INDEX, Some(table)) => with_vectors(table).map(Some),
            (_, table) => Ok(table),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.rest.table_exist(name)
    }
}

/// The settings as a table with the columns of `like`, of which two are filled.
fn settings(like: &dyn TableProvider) -> Result<Arc<dyn TableProvider>> {
    let schema = like.schema();
    let (names, values): (Vec<_>, Vec<_>) = SETTINGS.into_iter().flatten().copied().unzip();
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        match field.name().as_str() {
            "name" => Arc::new(StringArray::from(names.clone())),
            "setting" => Arc::new(StringArray::from(values.clone())),
            _ => new_null_array(field.data_type(), names.len()),
        }
    });
    let rows = RecordBatch::try_new(Arc::clone(&schema), columns.collect())?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![rows]])?))
}

/// `pg_index` with arrays for vectors.
fn with_vectors(table: Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
    let columns: Vec<_> = table
        .schema()
        .fields()
        .iter()
        .map(|field| {
            let name = field.name();
            if VECTORS.contains(&name.as_str()) {
                cast(
                    string_to_array(col(name), lit(" "), lit(ScalarValue::Utf8(None))),
                    int_vector(),
                )
                .alias(name)
            } else {
                col(name)
            }
        })
        .collect();
    let scan = LogicalPlanBuilder::scan(PG_INDEX, provider_as_source(table), None)?;
    let plan = scan.project(columns)?.build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// `information_schema._pg_expandarray`, by which clients list the columns of indexes: the elements
/// of a vector, each with its place from 1 on. [`rewrite`] makes rows of them.
pub(super) fn expand_array() -> ScalarUDF {
    ScalarUDF::new_from_impl(ExpandArray(Signature::exact(
        vec![int_vector()],
        Volatility::Immutable,
    )))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExpandArray(Signature);

fn int_vector() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true)))
}

fn element() -> Fields {
    let field = |name: &str| Field::new(name, DataType::Int32, true);
    Fields::from(vec![field("x"), field("n")])
}

impl ScalarUDFImpl for ExpandArray {
    fn name(&self) -> &'static str {
        EXPAND_ARRAY
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        let element = Field::new_list_field(DataType::Struct(element()), true);
        Ok(DataType::List(Arc::new(element)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let vectors = ColumnarValue::values_to_arrays(&args.args)?;
        let column = || Box::new(Int32Builder::new()) as Box<dyn ArrayBuilder>;
        let elements = StructBuilder::new(element(), vec![column(), column()]);
        let mut rows = ListBuilder::new(elements);
        for vector in vectors[0].as_list::<i32>().iter() {
            let is_there = vector.is_some();
            let vector = vector.map(|vector| vector.as_primitive::<Int32Type>().clone());
            for (value, place) in vector.iter().flatten().zip(1..) {
                let elements = rows.values();
                for (at, value) in [(0, value), (1, Some(place))] {
                    if let Some(column) = elements.field_builder::<Int32Builder>(at) {
                        column.append_option(value);
                    }
                }
                elements.append(true);
            }
            rows.append(is_there);
        }
        Ok(ColumnarValue::Array(Arc::new(rows.finish())))
    }
}

/// `pg_get_indexdef`, which is unknown for every index: none is over a table that is served.
pub(super) fn index_definition() -> ScalarUDF {
    let parameters = vec![TypeSignature::Any(1), TypeSignature::Any(3)];
    ScalarUDF::new_from_impl(SimpleScalarUDF::new_with_signature(
        "pg_get_indexdef",
        Signature::one_of(parameters, Volatility::Stable),
        DataType::Utf8,
        Arc::new(|_| Ok(ColumnarValue::Scalar(ScalarValue::Utf8(None)))),
    ))
}
