//! What is refused, in which words, and that nothing was changed.

use dyno_ingest_clickhouse::private_server::Config;
use dyno_ingest_clickhouse::{Address, Error, Password, ServerTable, Settings, status};

use crate::scene::{Scene, address, check_table, failure, load, settings};

fn refused(address: &Address, settings: &Settings) -> Error {
    match ServerTable::open(address, settings) {
        Err(error) => error,
        Ok(_) => panic!("{address} should have been refused"),
    }
}

fn with_password(text: &str) -> Settings {
    Settings {
        password: Password::new(text.to_owned()),
        ..settings()
    }
}

#[test]
fn what_a_server_does_not_allow_is_said_with_its_cause() {
    let user = |name: &str, password: &str, profile: &str| {
        (name.to_owned(), password.to_owned(), profile.to_owned())
    };
    let config = Config {
        users: vec![
            user("loader", "hidden-one", "default"),
            user("reader", "", "readonly"),
        ],
        ..Config::default()
    };
    let Some(scene) = Scene::new(&config) else {
        return;
    };
    let of = |name: &str| address(name, &scene.server, "wspr.bronze");

    let nobody: Address = "clickhouse://127.0.0.1:9/wspr.bronze".parse().unwrap();
    assert!(matches!(
        refused(&nobody, &settings()),
        Error::Unreachable { .. }
    ));
    let error = refused(&of("loader"), &with_password("hidden-two"));
    assert!(
        matches!(error, Error::Credentials { code: 193, .. }),
        "{error}"
    );
    assert!(!error.to_string().contains("hidden"), "{error}");
    let error = refused(&of("stranger"), &settings());
    assert!(
        matches!(error, Error::Credentials { code: 192, .. }),
        "{error}"
    );
    let error = refused(&of("reader"), &settings());
    assert!(
        matches!(error, Error::Permission { code: 164, .. }),
        "{error}"
    );
    assert_eq!(
        scene.ask("SELECT count() FROM system.databases WHERE name = 'wspr'"),
        "0"
    );

    // The right password opens it, and every client that may read sees its status.
    let archives = scene.archives("some", 1_000, 1, 0.0);
    load(&archives, &of("loader"), &with_password("hidden-one"));
    assert_eq!(
        status(&of("reader"), &Password::default()).unwrap().rows,
        1_000
    );
}

#[test]
fn a_table_that_is_another_one_is_refused() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    scene.ask("CREATE DATABASE wspr");
    scene.ask("CREATE TABLE wspr.other (id UInt64, timestamp DateTime) ENGINE = Memory");
    let error = refused(
        &address("default", &scene.server, "wspr.other"),
        &settings(),
    );
    assert!(
        error.to_string().contains("its engine is Memory"),
        "{error}"
    );
    scene.ask(
        "CREATE TABLE wspr.narrow (id UInt64, timestamp DateTime, reporter Int8) \
         ENGINE = MergeTree ORDER BY id",
    );
    let error = refused(
        &address("default", &scene.server, "wspr.narrow"),
        &settings(),
    );
    assert!(
        error
            .to_string()
            .contains("column reporter is of type Int8"),
        "{error}"
    );
    let two = format!(
        "clickhouse://{0},localhost:{1}/a.b",
        scene.server.http(),
        scene.server.ports().http
    );
    let error = refused(&two.parse().unwrap(), &settings());
    assert!(error.to_string().contains("shards of a cluster"), "{error}");
}

#[test]
fn rows_that_are_not_the_archives_own_are_never_swapped_away() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    let address = scene.address("wspr.bronze");
    let archives = scene.archives("some", 2_000, 1, 0.0);
    load(&archives, &address, &settings());
    let renamed = scene.folder.path().join("same month, other name.csv");
    std::fs::copy(&archives[0], &renamed).unwrap();
    let error = failure(&load(&[renamed], &address, &settings()).remove(0));
    assert!(error.contains("partition 202301"), "{error}");
    assert!(
        error.contains("2000 rows of archive wspr/2023-01"),
        "{error}"
    );
    check_table(&scene.server, "wspr.bronze", &archives);

    // Rows that came without us have no entry in the ledger.
    scene.ask("TRUNCATE TABLE wspr.bronze_ledger");
    let error = failure(&load(&archives, &address, &settings()).remove(0));
    assert!(
        error.contains("a writer that is not in the ledger"),
        "{error}"
    );
    check_table(&scene.server, "wspr.bronze", &archives);
}

#[test]
fn one_load_at_a_time_and_no_newer_ledger() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    let address = scene.address("wspr.bronze");
    let first = ServerTable::open(&address, &settings()).unwrap();
    let error = refused(&address, &settings());
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    drop(first);
    scene.ask(
        "CREATE TABLE wspr.bronze_dyno_writer (writer String DEFAULT '7 on elsewhere (b n 1 1)') \
         ENGINE = Memory",
    );
    let error = refused(&address, &settings());
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert!(error.to_string().contains("on elsewhere"), "{error}");
    scene.ask("DROP TABLE wspr.bronze_dyno_writer");

    let archives = scene.archives("some", 100, 1, 0.0);
    load(&archives, &address, &settings());
    scene.ask("INSERT INTO wspr.bronze_ledger (version, generation) VALUES (2, 9)");
    let error = refused(&address, &settings());
    assert!(matches!(error, Error::Ledger { .. }), "{error}");
    assert!(error.to_string().contains("version 2"), "{error}");
}
