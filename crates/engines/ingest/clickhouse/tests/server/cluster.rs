//! Two servers as shards of one cluster.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dyno_ingest_clickhouse::private_server::{Config, Ports, PrivateServer};
use dyno_ingest_clickhouse::{Address, Settings};

use crate::scene::{Scene, ask, check_table, load, loaded_rows, settings};

/// The configuration of a cluster `pair` with these servers, a shard each.
fn pair(ports: &[Ports]) -> Config {
    let shard = |ports: &Ports| {
        format!(
            "<shard><replica><host>127.0.0.1</host><port>{}</port></replica></shard>",
            ports.tcp
        )
    };
    let shards: String = ports.iter().map(shard).collect();
    Config {
        xml: format!("<remote_servers><pair>{shards}</pair></remote_servers>"),
        ..Config::default()
    }
}

/// Two servers with this configuration, the first in a scene, and the address of a table on both.
fn start(config: &Config, ports: &[Ports; 2], folder: tempfile::TempDir) -> Shards {
    let start = |number: usize| {
        let data = folder.path().join(format!("shard-{number}"));
        fs::create_dir(&data).unwrap();
        PrivateServer::start(&data, ports[number], config).unwrap()
    };
    let (first, second) = (start(0), start(1));
    let text = format!(
        "clickhouse://{},{}/wspr.bronze",
        first.http(),
        second.http()
    );
    Shards {
        address: text.parse().unwrap(),
        second,
        scene: Scene {
            server: first,
            folder,
        },
    }
}

struct Shards {
    address: Address,
    second: PrivateServer,
    scene: Scene,
}

fn of_pair() -> Settings {
    Settings {
        cluster: Some("pair".to_owned()),
        ..settings()
    }
}

#[test]
fn two_shards_hold_the_archives_also_when_one_is_killed() {
    if let Some(missing) = PrivateServer::missing() {
        println!("skipped: {missing}");
        return;
    }
    let ports = [Ports::free().unwrap(), Ports::free().unwrap()];
    let Shards {
        address,
        mut second,
        scene,
    } = start(&pair(&ports), &ports, tempfile::tempdir().unwrap());
    let settings = of_pair();
    let archives = scene.archives("some", 200_000, 2, 0.0);
    let reports = thread::scope(|scope| {
        let loading = scope.spawn(|| load(&archives, &address, &settings));
        thread::sleep(Duration::from_millis(700));
        second.kill();
        second.start_again().unwrap();
        loading.join().unwrap()
    });
    assert_eq!(reports.iter().map(loaded_rows).sum::<u64>(), 200_000);
    for server in [&scene.server, &second] {
        // Each answers for both, and has a share of its own.
        check_table(server, "wspr.bronze", &archives);
        let own: u64 = ask(server, "SELECT count() FROM wspr.bronze_local")
            .parse()
            .unwrap();
        assert!((1..200_000).contains(&own), "{own}");
    }

    // A month that grows takes the place of its rows on both.
    let grown = scene.archives("grown", 300_000, 2, 0.0);
    load(&grown, &address, &settings);
    check_table(&second, "wspr.bronze", &grown);
}

/// With a coordinator the servers tell each other to make tables: ON CLUSTER.
#[test]
fn one_server_tells_the_other_where_there_is_a_coordinator() {
    if let Some(missing) = PrivateServer::missing() {
        println!("skipped: {missing}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(keeper) = ZooKeeper::start(folder.path()) else {
        println!("skipped: zookeeper: it is not installed (Debian: zookeeper)");
        return;
    };
    let ports = [Ports::free().unwrap(), Ports::free().unwrap()];
    let mut config = pair(&ports);
    config.xml.push_str(&format!(
        "<zookeeper><node><host>127.0.0.1</host><port>{}</port></node></zookeeper>\
         <distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>",
        keeper.port
    ));
    let shards = start(&config, &ports, folder);
    let archives = shards.scene.archives("some", 20_000, 1, 0.0);
    load(&archives, &shards.address, &of_pair());
    check_table(&shards.second, "wspr.bronze", &archives);
    let query = "SELECT count() FROM system.zookeeper WHERE path = '/clickhouse/task_queue/ddl'";
    assert_eq!(
        ask(&shards.second, query),
        "2",
        "two statements, for both servers"
    );
}

/// The coordinator that this server knows.
struct ZooKeeper {
    port: u16,
    child: Child,
}

impl ZooKeeper {
    /// Starts one on loopback; nothing where it is not installed.
    fn start(folder: &Path) -> Option<ZooKeeper> {
        const PROGRAM: &str = "/usr/share/zookeeper/bin/zkServer.sh";
        if !Path::new(PROGRAM).is_file() {
            return None;
        }
        let folder = folder.join("zookeeper");
        fs::create_dir(&folder).unwrap();
        let port = Ports::free().unwrap().tcp;
        let text = format!(
            "tickTime=2000\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
             admin.enableServer=false\n",
            folder.display()
        );
        let config = folder.join("zoo.cfg");
        fs::write(&config, text).unwrap();
        let child = Command::new(PROGRAM)
            .arg("start-foreground")
            .arg(&config)
            .env("ZOO_LOG_DIR", &folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let keeper = ZooKeeper { port, child };
        let begun = Instant::now();
        // It listens for a while before it serves.
        while !says_its_mode(port) {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "it does not serve"
            );
            thread::sleep(Duration::from_millis(50));
        }
        Some(keeper)
    }
}

fn says_its_mode(port: u16) -> bool {
    let mut said = String::new();
    let asked = TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
        // What it is asked while it starts it may never answer.
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        stream.write_all(b"srvr")?;
        stream.read_to_string(&mut said)
    });
    asked.is_ok() && said.contains("Mode: ")
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
