//! Parameters of prepared statements: the types that a client is told, and the values it sends.

use std::collections::HashMap;

use arrow_pg::datatypes::df::deserialize_parameters_with_server_types;
use arrow_pg::datatypes::{PG_OID_ALIAS_KEY, into_pg_type, pg_type_for_alias_kind};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ParamValues;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use pgwire::api::Type;
use pgwire::api::portal::Portal;
use pgwire::error::PgWireResult;

use super::error;
use super::statements::Prepared;
use crate::serve::columns::wide_type;
use crate::serve::refusal::Refusal;

/// A parameter of a prepared statement.
#[derive(Debug, Clone)]
pub(super) struct Parameter {
    /// The type that the client is told.
    pub(super) wire: Type,
    /// The type that the plan gives it, if it gives one.
    plan: Option<DataType>,
}

/// The parameters of a plan in the order of their numbers.
pub(super) fn parameters(plan: &LogicalPlan) -> PgWireResult<Vec<Parameter>> {
    let types = plan.get_parameter_types();
    let mut types = types.map_err(|source| error(Refusal::from(source)))?;
    let mut wires = HashMap::new();
    // A parameter inside a cast, as in `$1::int4`, has no type in the plan but that of the cast.
    // Numbers of tables and types have one of their own in PostgreSQL, which drivers insist on.
    let visited = plan.apply(|node| {
        for expression in node.expressions() {
            expression.apply(|part| {
                look(part, &mut types, &mut wires);
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    visited.map_err(|source| error(Refusal::from(source)))?;
    let mut numbered: Vec<(u32, String)> = types
        .keys()
        .map(|id| {
            let number = id.trim_start_matches('$').parse();
            (number.unwrap_or(u32::MAX), id.clone())
        })
        .collect();
    numbered.sort();
    numbered
        .into_iter()
        .map(|(_, id)| {
            let plan = types.remove(&id).flatten();
            let wire = match (wires.remove(&id), &plan) {
                (Some(wire), _) => wire,
                (None, Some(kind)) => into_pg_type(wide_type(kind))?,
                (None, None) => Type::UNKNOWN,
            };
            Ok(Parameter { wire, plan })
        })
        .collect()
}

fn look(
    part: &Expr,
    types: &mut HashMap<String, Option<DataType>>,
    wires: &mut HashMap<String, Type>,
) {
    let (placeholder, cast) = match part {
        Expr::Placeholder(placeholder) => (placeholder, None),
        Expr::Cast(cast) => match &*cast.expr {
            Expr::Placeholder(placeholder) => (placeholder, Some(cast.field.data_type())),
            _ => return,
        },
        _ => return,
    };
    let known = types.entry(placeholder.id.clone()).or_default();
    if known.is_none() {
        *known = cast.cloned();
    }
    if let Some(field) = &placeholder.field
        && field.data_type() == &DataType::Int32
        && let Some(alias) = field.metadata().get(PG_OID_ALIAS_KEY)
        && let Some(wire) = pg_type_for_alias_kind(alias)
    {
        wires.insert(placeholder.id.clone(), wire);
    }
}

/// The values that a client sent for the parameters of a statement.
pub(super) fn values(portal: &Portal<Prepared>) -> PgWireResult<Option<ParamValues>> {
    let parameters = &portal.statement.statement.parameters;
    if parameters.is_empty() {
        return Ok(None);
    }
    let plans: Vec<_> = parameters.iter().map(|one| one.plan.as_ref()).collect();
    let wires: Vec<_> = parameters.iter().map(|one| Some(&one.wire)).collect();
    deserialize_parameters_with_server_types(portal, &plans, &wires).map(Some)
}
