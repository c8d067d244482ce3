//! `dyno-sql serve --pg` with PostgreSQL's JDBC driver, by which most tools over databases connect.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]
#![allow(dead_code, reason = "other tests use the rest of the modules")]

mod serving;
mod tables;

use std::path::{Path, PathBuf};
use std::process::Command;

use serving::{Server, ask};
use tables::{Form, spot};

/// The driver where `scripts/test` puts it.
fn driver() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")));
    let jar = data?.join("dynolab/peers/jdbc/postgresql.jar");
    jar.exists().then_some(jar)
}

#[test]
fn a_tool_over_jdbc_finds_and_reads_the_table() {
    let java = Command::new("java").arg("-version").output();
    let (Some(jar), true) = (driver(), java.is_ok_and(|java| java.status.success())) else {
        println!("skipped: JDBC: no Java, or no driver, which scripts/test fetches with Maven");
        return;
    };
    let table = tempfile::tempdir().unwrap();
    let calls = ["K1ABC", "G8JNJ", "DK1UG"];
    let spots = (1..=1000).map(|id| spot(id, calls[id as usize % 3], (id % 40) as i8 - 20));
    tables::write(table.path(), &[vec![spots.collect()]], Form::default());
    let server = Server::start(table.path(), &[]);
    let output = Command::new("java")
        .arg("-cp")
        .arg(jar)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ServeJdbc.java"))
        .arg(server.pg.port().to_string())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    if serving::has_psql() {
        // The catalogue of indexes has rows of PostgreSQL's own tables, by which the functions that
        // the driver calls can be seen to answer.
        let sql = "SELECT (information_schema._pg_expandarray(i.indkey)).n, \
                   (information_schema._pg_expandarray(i.indkey)).x \
                   FROM pg_catalog.pg_index i WHERE i.indexrelid = 2658";
        assert_eq!(ask(&server, sql), Ok("1|1\n2|2".to_owned()));
        let keys = "SELECT count(*) AS n FROM pg_catalog.pg_constraint WHERE contype = 'f'";
        assert_eq!(ask(&server, keys), Ok("0".to_owned()));
    }
}
