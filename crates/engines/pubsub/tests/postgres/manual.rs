//! The examples of the manual, run by psql.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::server::Server;

/// (language, text) of the blocks, in order.
fn blocks() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/pubsub.md");
    let text = fs::read_to_string(path).unwrap();
    let parts = text.split("```").collect::<Vec<_>>();
    let blocks = parts
        .chunks(2)
        .filter_map(|pair| pair.get(1)?.split_once('\n'));
    blocks
        .map(|(language, text)| (language.to_owned(), text.to_owned()))
        .collect()
}

#[test]
fn psql_answers_as_the_manual_says() {
    let server = Server::alone();
    let psql = server.cluster().installation().program("psql");
    if !psql.exists() {
        println!(
            "skipped: psql on the manual: {} is not there",
            psql.display()
        );
        return;
    }
    let config = server.dsn.config();
    let dyno_pubsub::server::postgres::config::Host::Unix(socket) = &config.get_hosts()[0] else {
        panic!("a private cluster has a socket");
    };
    let blocks = blocks();
    let mut compared = 0;
    for (at, (language, script)) in blocks.iter().enumerate() {
        if language != "sql" {
            continue;
        }
        let mut command = Command::new(&psql);
        command
            .arg("-h")
            .arg(socket)
            .arg("-p")
            .arg(config.get_ports()[0].to_string());
        command.args([
            "-U",
            config.get_user().unwrap(),
            "-d",
            config.get_dbname().unwrap(),
        ]);
        command.args(["-XqAt", "-v", "ON_ERROR_STOP=1"]);
        let input =
            std::env::temp_dir().join(format!("dyno-manual-{}-{at}.sql", std::process::id()));
        fs::write(&input, script).unwrap();
        let done = command.arg("-f").arg(&input).output().unwrap();
        fs::remove_file(&input).unwrap();
        assert!(
            done.status.success(),
            "{script}\n{}",
            String::from_utf8_lossy(&done.stderr)
        );
        assert_eq!(blocks[at + 1].0, "text", "the answer follows");
        assert_eq!(
            String::from_utf8_lossy(&done.stdout),
            blocks[at + 1].1,
            "{script}"
        );
        compared += 1;
    }
    assert!(compared >= 6);
}

#[test]
fn the_manuals_python_is_python() {
    let python: Vec<String> = blocks()
        .into_iter()
        .filter(|block| block.0 == "python")
        .map(|block| block.1)
        .collect();
    assert!(!python.is_empty());
    for program in python {
        let compile = "import sys; compile(sys.argv[1], 'manual', 'exec')";
        match Command::new("python3")
            .args(["-c", compile, &program])
            .output()
        {
            Ok(done) => assert!(
                done.status.success(),
                "{}",
                String::from_utf8_lossy(&done.stderr)
            ),
            Err(error) => println!("skipped: Python of the manual: {error}"),
        }
    }
}
