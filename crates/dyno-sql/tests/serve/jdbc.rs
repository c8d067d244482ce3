//! `dyno-sql serve --pg` with PostgreSQL's JDBC driver, by which most tools over databases connect.

use std::path::Path;
use std::process::Command;

use crate::installed::installed;
use crate::serving::{Server, ask, has_psql};
use crate::tables::{self, Form, spot};

#[test]
fn a_tool_over_jdbc_finds_and_reads_the_table() {
    let java = Command::new("java").arg("-version").output();
    let (Some(jar), true) = (
        installed("jdbc/postgresql.jar"),
        java.is_ok_and(|java| java.status.success()),
    ) else {
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
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/Jdbc.java"))
        .arg(server.pg.port().to_string())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    if has_psql() {
        // The catalogue of indexes has rows of PostgreSQL's own tables, by which the functions that
        // the driver calls can be seen to answer.
        let sql = "SELECT (information_schema._pg_expandarray(i.indkey)).n, \
                   (information_schema._pg_expandarray(i.indkey)).x \
                   FROM pg_catalog.pg_index i WHERE i.indexrelid = 2658";
        assert_eq!(ask(&server, sql), Ok("1|1\n2|2".to_owned()));
        let keys = "SELECT count(*) AS n FROM pg_catalog.pg_constraint WHERE contype = 'f'";
        assert_eq!(ask(&server, keys), Ok("0".to_owned()));
        // A condition that is an aggregate of the catalogue stays what it is.
        let counted = "SELECT 'yes' WHERE 1 = 2 OR (SELECT count(*) > 0 FROM pg_catalog.pg_type)";
        assert_eq!(ask(&server, counted), Ok("yes".to_owned()));
    }
}
