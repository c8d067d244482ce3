//! Text to statements: which are answered, which are settings of the connection, and which would
//! change something.

use std::sync::Arc;

use arrow_pg::datatypes::arrow_schema_to_pg_fields;
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use pgwire::api::portal::Format;
use pgwire::api::results::FieldInfo;
use pgwire::api::stmt::QueryParser;
use pgwire::api::{ClientInfo, Type};
use pgwire::error::PgWireResult;

use super::error;
use super::parameters::{Parameter, parameters};
use super::rows::check_formats;
use super::settings;
use crate::serve::catalogue;
use crate::serve::columns::wide_schema;
use crate::serve::depth::check_depth;
use crate::serve::engine::Engine;
use crate::serve::reads;
use crate::serve::refusal::{Kind, Refusal};

/// A prepared statement. Its plan is not kept, because it would be one over the snapshot of the
/// moment in which it was prepared.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) statement: Arc<Statement>,
    /// The columns of its answer; none for a setting.
    pub(super) columns: SchemaRef,
    pub(super) parameters: Arc<[Parameter]>,
}

/// Parses statements in PostgreSQL's dialect, and rewrites what clients ask of its catalogue into
/// what the engine can answer.
pub(super) struct StatementParser {
    engine: Arc<Engine>,
    dialect: PostgresCompatibilityParser,
}

impl StatementParser {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            dialect: PostgresCompatibilityParser::new(),
        }
    }

    /// The statements of a text, all of which may be answered here.
    pub(super) fn parse(&self, sql: &str) -> Result<Vec<Statement>, Refusal> {
        check_depth(sql, &PostgreSqlDialect {})?;
        let mut statements = self
            .dialect
            .parse(sql)
            .map_err(|error| Refusal::new(Kind::Syntax, error.to_string()))?;
        statements.iter_mut().for_each(catalogue::rewrite);
        // All are checked before the first one runs, so that a text either runs or does not.
        for statement in &statements {
            if !settings::is_setting(statement) && settings::shown(statement).is_none() {
                reads::check(statement)?;
            }
        }
        Ok(statements)
    }
}

#[async_trait]
impl QueryParser for StatementParser {
    type Statement = Prepared;

    async fn parse_sql<C>(
        &self,
        _client: &C,
        sql: &str,
        _types: &[Option<Type>],
    ) -> PgWireResult<Option<Prepared>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        let mut statements = self.parse(sql).map_err(error)?;
        let Some(statement) = statements.pop() else {
            return Ok(None);
        };
        if !statements.is_empty() {
            return Err(error(Refusal::new(
                Kind::Syntax,
                "cannot insert multiple commands into a prepared statement",
            )));
        }
        let (columns, parameters) = if let Some(name) = settings::shown(&statement) {
            let column = Field::new(name, DataType::Utf8, false);
            (Arc::new(Schema::new(vec![column])), Vec::new())
        } else if settings::is_setting(&statement) {
            (Arc::new(Schema::empty()), Vec::new())
        } else {
            let plan = self.engine.describe(statement.clone()).await;
            let plan = plan.map_err(error)?;
            let columns = Arc::clone(plan.schema().inner());
            (columns, parameters(&plan)?)
        };
        Ok(Some(Prepared {
            statement: Arc::new(statement),
            columns,
            parameters: parameters.into(),
        }))
    }

    fn get_parameter_types(&self, prepared: &Prepared) -> PgWireResult<Vec<Type>> {
        let types = prepared.parameters.iter();
        Ok(types.map(|parameter| parameter.wire.clone()).collect())
    }

    fn get_result_schema(
        &self,
        prepared: &Prepared,
        format: Option<&Format>,
    ) -> PgWireResult<Vec<FieldInfo>> {
        let format = format.unwrap_or(&Format::UnifiedText);
        check_formats(format, &prepared.columns)?;
        arrow_schema_to_pg_fields(&wide_schema(&prepared.columns), format, None)
    }
}
