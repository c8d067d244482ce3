//! `dyno tpch gen --out s3://...`, against moto and read back by boto3, neither of them ours.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the test fail the test"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Makes the bucket, or writes the object of a key to standard output.
const CLIENT: &str = r#"
import boto3, sys
s3 = boto3.client("s3")
if sys.argv[1] == "make":
    s3.create_bucket(Bucket="lake")
else:
    sys.stdout.buffer.write(s3.get_object(Bucket="lake", Key=sys.argv[2])["Body"].read())
"#;

struct Server {
    child: Child,
    python: PathBuf,
    address: String,
}

impl Server {
    fn start() -> Option<Server> {
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
        let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        let python = data.or(home)?.join("dynolab/peers/moto/venv/bin/python");
        if !python.exists() {
            println!(
                "skipped: tables in an object store: no moto at {}",
                python.display()
            );
            return None;
        }
        let mut child = Command::new(&python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some((_, address)) = line.split_once("Running on ") {
                break address.trim().to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Some(Server {
            child,
            python,
            address,
        })
    }

    fn run(&self, program: &Path, args: &[&str]) -> Output {
        Command::new(program)
            .args(args)
            .env("AWS_ENDPOINT_URL", &self.address)
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn objects_have_the_bytes_of_files() {
    let Some(server) = Server::start() else {
        return;
    };
    server.client(&["make"]);
    let folder = tempfile::tempdir().unwrap();
    let dyno = PathBuf::from(assert_cmd::cargo::cargo_bin!("dyno"));
    let generate = |out: &str| {
        let what = ["tpch", "gen", "--sf", "0.1", "--tables", "lineitem,nation"];
        server.run(
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
        let object = server.client(&["get", &format!("tpch/{name}")]);
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
