//! Statements about the catalogue in the forms that the engine plans.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Query, Select, SelectItem, SetExpr, Statement,
    TableFactor, Value, ValueWithSpan, visit_expressions, visit_expressions_mut,
};

use super::EXPAND_ARRAY;

/// Rewrites what clients ask of the catalogue and the engine plans in another form only.
pub fn rewrite(statement: &mut Statement) {
    if let Statement::Query(query) = statement {
        empty_without_foreign_keys(query);
    }
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        match expression {
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And | BinaryOperator::Or,
                right,
            } => [left, right].into_iter().for_each(|side| condition(side)),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } if name_of(left).is_some_and(|name| name == "typinput") => function_name(right),
            Expr::Function(function) if is_expand_array(function) => {
                let rows = Ident::new("unnest");
                let call = std::mem::replace(&mut function.name, ObjectName::from(vec![rows]));
                // The call becomes the argument of `unnest`, which the visitor has passed by then.
                let inner = Function {
                    name: call,
                    ..function.clone()
                };
                function.args = arguments(Expr::Function(inner));
            }
            // The engine takes the name of a field for text, where it is not that of a column.
            Expr::CompoundFieldAccess { root, access_chain } if name_of(root).is_none() => {
                for access in access_chain {
                    if let AccessExpr::Dot(Expr::Identifier(field)) = access {
                        let name = Value::SingleQuotedString(field.value.clone());
                        *access = AccessExpr::Dot(Expr::value(name));
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
}

fn is_expand_array(function: &Function) -> bool {
    let last = function.name.0.last().and_then(|part| part.as_ident());
    last.is_some_and(|last| last.value == EXPAND_ARRAY)
}

fn arguments(of: Expr) -> FunctionArguments {
    FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(of))],
        clauses: Vec::new(),
    })
}

/// The last word of a column's name.
fn name_of(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Identifier(name) => Some(&name.value),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.as_str()),
        _ => None,
    }
}

/// A function of PostgreSQL is a number in `regproc`, and a name in the column that is compared
/// with it here. Replaces the query for the number by the name.
fn function_name(number: &mut Expr) {
    if let Expr::Subquery(query) = number
        && let SetExpr::Select(select) = &*query.body
        && let Some(Expr::BinaryOp { left, right, .. }) = &select.selection
        && name_of(left).is_some_and(|name| name == "proname")
        && let Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(name),
            ..
        }) = &**right
    {
        let name = name.rsplit('.').next().unwrap_or_default().to_owned();
        *number = Expr::value(Value::SingleQuotedString(name));
    }
}

/// Replaces a query for foreign keys by one with its columns and no rows: the catalogue has no
/// foreign key, and the engine does not plan how drivers take its columns apart.
fn empty_without_foreign_keys(query: &mut Query) {
    let SetExpr::Select(select) = &mut *query.body else {
        return;
    };
    if !select.selection.as_ref().is_some_and(wants_foreign_keys) {
        return;
    }
    // An aggregate returns a row even if no row is found.
    if calls_functions(&select.projection) {
        return;
    }
    let named: Option<Vec<Ident>> = select.projection.iter().map(column_name).collect();
    let Some(names) = named else { return };
    let none = |alias| SelectItem::ExprWithAlias {
        expr: Expr::value(Value::Null),
        alias,
    };
    select.projection = names.into_iter().map(none).collect();
    select.from.clear();
    select.selection = Some(Expr::value(Value::Boolean(false)));
    query.order_by = None;
}

fn calls_functions(columns: &Vec<SelectItem>) -> bool {
    let found = visit_expressions(columns, |expression| match expression {
        Expr::Function(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Whether only rows hold whose `contype` is that of a foreign key.
fn wants_foreign_keys(condition: &Expr) -> bool {
    match condition {
        Expr::Nested(condition) => wants_foreign_keys(condition),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => wants_foreign_keys(left) || wants_foreign_keys(right),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } => {
            let foreign = Value::SingleQuotedString("f".to_owned());
            name_of(left).is_some_and(|name| name == "contype")
                && matches!(&**right, Expr::Value(value) if value.value == foreign)
        }
        _ => false,
    }
}

fn column_name(item: &SelectItem) -> Option<Ident> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
        SelectItem::UnnamedExpr(column) => name_of(column).map(Ident::new),
        _ => None,
    }
}

/// Rewrites a query of the catalogue that stands for a condition, as in `a OR (SELECT c.relkind =
/// 'c' FROM pg_class c WHERE ...)`, to EXISTS, because the engine plans the other form only where
/// it can see that there is one row. As a condition the two are equal: what is unknown does not
/// hold.
fn condition(side: &mut Expr) {
    if let Expr::Subquery(query) = side
        && make_condition(query)
    {
        *side = Expr::Exists {
            subquery: query.clone(),
            negated: false,
        };
    }
}

/// Moves the only column of a query of the catalogue into its WHERE. Returns whether it is such. An
/// aggregate, or a limit, must come after the WHERE.
fn make_condition(query: &mut Query) -> bool {
    let SetExpr::Select(select) = &mut *query.body else {
        return false;
    };
    let mut tables = select.from.iter().map(|from| &from.relation);
    if !tables.all(is_of_catalogue)
        || calls_functions(&select.projection)
        || query.limit_clause.is_some()
    {
        return false;
    }
    let Select {
        projection,
        selection,
        ..
    } = &mut **select;
    let [SelectItem::UnnamedExpr(column)] = projection.as_mut_slice() else {
        return false;
    };
    let one = Expr::value(Value::Number("1".to_owned(), false));
    let condition = Expr::Nested(Box::new(std::mem::replace(column, one)));
    *selection = Some(match selection.take() {
        Some(other) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(other))),
            op: BinaryOperator::And,
            right: Box::new(condition),
        },
        None => condition,
    });
    true
}

fn is_of_catalogue(table: &TableFactor) -> bool {
    let TableFactor::Table { name, .. } = table else {
        return false;
    };
    let first = name.0.first().and_then(|part| part.as_ident());
    first.is_some_and(|first| first.value.eq_ignore_ascii_case("pg_catalog"))
}
