//! `dyno tpch query`: the 22 queries, by `dyno-sql`.

use super::hand_over;
use crate::args::TpchQueryArgs;
use crate::exit::Exit;
use crate::sql;

pub fn run(args: &TpchQueryArgs) -> anyhow::Result<Exit> {
    let mut command = sql::command()?;
    command.args(["tpch", "query"]).arg(&args.dir);
    if let Some(queries) = &args.q {
        command.args(["--q", queries]);
    }
    if args.check {
        command.arg("--check");
    }
    if let Some(repeats) = args.repeats {
        command.args(["--repeats", &repeats.to_string()]);
    }
    if let Some(format) = &args.format {
        command.args(["--format", format]);
    }
    hand_over(command, &args.sql)
}
