//! `dyno tpch verify`: the checks are SQL, so `dyno-sql` makes them.

use super::hand_over;
use crate::args::TpchVerifyArgs;
use crate::exit::Exit;
use crate::sql;

pub fn run(args: &TpchVerifyArgs) -> anyhow::Result<Exit> {
    let mut command = sql::command()?;
    command.args(["tpch", "verify"]).arg(&args.dir);
    if let Some(sf) = args.sf {
        command.args(["--sf", &sf.to_string()]);
    }
    hand_over(command, &args.sql)
}
