//! `dyno tpch gen --out s3://...`, against moto and read back by boto3, neither of them ours.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the test fail the test"
)]

#[path = "../../parts/objects/tests/server/mod.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use server::{Server, interpreter};

/// Makes the bucket, or writes the object of a key to standard output.
const CLIENT: &str = r#"
import boto3, sys
s3 = boto3.client("s3")
if sys.argv[1] == "make":
    s3.create_bucket(Bucket="lake")
else:
    sys.stdout.buffer.write(s3.get_object(Bucket="lake", Key=sys.argv[2])["Body"].read())
"#;

struct Moto {
    server: Server,
    python: PathBuf,
}

impl Moto {
    fn start() -> Option<Moto> {
        let python = interpreter("tables in an object store")?;
        Some(Moto {
            server: Server::start(&python),
            python,
        })
    }

    fn run(&self, program: &Path, args: &[&str]) -> Output {
        Command::new(program)
            .args(args)
            .env("AWS_ENDPOINT_URL", &self.server.address)
            .env("AWS_ACCESS_KEY_ID", "a-key")
            .env("AWS_SECRET_ACCESS_KEY", "a-secret")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .output()
            .unwrap()
    }

    fn client(&self, args: &[&str]) -> Vec<u8> {
        let output = self.run(&self.python, &[&["-c", CLIENT], args].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        output.stdout
    }
}

#[test]
fn objects_have_the_bytes_of_files() {
    let Some(moto) = Moto::start() else {
        return;
    };
    moto.client(&["make"]);
    let folder = tempfile::tempdir().unwrap();
    let dyno = PathBuf::from(assert_cmd::cargo::cargo_bin!("dyno"));
    let generate = |out: &str| {
        let what = ["tpch", "gen", "--sf", "0.1", "--tables", "lineitem,nation"];
        moto.run(
            &dyno,
            &[&what[..], &["--parts", "2", "--out", out]].concat(),
        )
    };
    let to_store = generate("s3://lake/tpch");
    let said = String::from_utf8_lossy(&to_store.stderr).into_owned();
    assert!(to_store.status.success(), "{said}");
    assert!(generate(folder.path().to_str().unwrap()).status.success());
    for name in [
        "lineitem/lineitem.1",
        "lineitem/lineitem.2",
        "nation/nation.2",
    ] {
        let name = format!("{name}.parquet");
        let object = moto.client(&["get", &format!("tpch/{name}")]);
        let file = fs::read(folder.path().join(&name)).unwrap();
        assert!(object == file, "{name}");
    }

    let again = generate("s3://lake/tpch");
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(2), "{said}");
    assert!(
        said.contains("s3://lake/tpch/lineitem/lineitem.") && said.contains(".parquet exists"),
        "{said}"
    );
    let nowhere = generate("s3://no-such-lake/tpch");
    let said = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert_eq!(nowhere.status.code(), Some(2), "{said}");
    assert!(said.contains("no such bucket"), "{said}");
    assert!(!said.contains("a-secret"), "{said}");
}
