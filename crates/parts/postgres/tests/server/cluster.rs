//! A private cluster from its first day on, and directories that are none.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::place::{client, number, open, place};
use dyno_postgres::postgres::Client;
use dyno_postgres::{
    Cluster, Installation, Listen, MachineSize, Options, PgError, Places, Session, attach, connect,
};

#[test]
fn a_cluster_is_made_once_and_keeps_what_it_was_given() {
    let Some(place) = place() else { return };
    let dir = place.path().join("one");
    let mut cluster = open(&dir);
    let mut sql = client(&cluster);
    sql.batch_execute("CREATE TABLE kept (n bigint); INSERT INTO kept VALUES (7)")
        .unwrap();
    for (name, value) in [
        ("fsync", "on"),
        ("data_checksums", "on"),
        ("lc_collate", "C"),
        ("server_encoding", "UTF8"),
        ("shared_buffers", "64MB"),
        ("listen_addresses", ""),
    ] {
        let has: String = sql.query_one(&format!("SHOW {name}"), &[]).map_or_else(
            |_| "C".to_owned(), // lc_collate is not a setting from PostgreSQL 16 on
            |row| row.get(0),
        );
        assert_eq!(has, value, "{name}");
    }
    let run = fs::metadata(dir.join("run")).unwrap();
    assert_eq!(run.mode() & 0o777, 0o700);
    assert!(cluster.is_running() && cluster.pids().postmaster.is_some());
    assert_eq!(attach(&dir).unwrap().to_string(), cluster.dsn().to_string());
    cluster.stop().unwrap();
    assert!(cluster.pids().is_empty());
    assert!(matches!(attach(&dir), Err(PgError::NotRunning { .. })));
    drop(cluster);

    let cluster = open(&dir);
    assert_eq!(number(&mut client(&cluster), "SELECT n FROM kept"), 7);
}

#[test]
fn segments_that_were_made_ahead_are_used() {
    let Some(place) = place() else { return };
    let options = Options {
        wal_ahead: true,
        size: Some(MachineSize {
            disk_free_bytes: Some(1 << 30),
            ..MachineSize::small()
        }),
        ..Options::small()
    };
    let dir = place.path().join("one");
    let mut cluster = Cluster::open(&dir, options.clone()).unwrap();
    let mut sql = client(&cluster);
    let listed = |sql: &mut Client| -> Vec<String> {
        let ask = "SELECT name FROM pg_ls_waldir() ORDER BY name";
        let rows = sql.query(ask, &[]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    let made = listed(&mut sql);
    assert_eq!(made.len(), 9, "{made:?}");
    sql.batch_execute("CREATE TABLE kept (n int)").unwrap();
    for n in 0..8 {
        sql.execute("INSERT INTO kept VALUES ($1)", &[&n]).unwrap();
        sql.execute("SELECT pg_switch_wal()", &[]).unwrap();
    }
    sql.execute("INSERT INTO kept VALUES (8)", &[]).unwrap();
    let ask = "SELECT pg_walfile_name(pg_current_wal_lsn())";
    let now: String = sql.query_one(ask, &[]).unwrap().get(0);
    assert_eq!(made.last(), Some(&now), "one after the other");
    assert_eq!(listed(&mut sql), made, "and none was made beside them");
    drop(sql);
    cluster.stop().unwrap();
    drop(cluster);
    let cluster = Cluster::open(&dir, options).unwrap();
    let kept = number(&mut client(&cluster), "SELECT count(*) FROM kept");
    assert_eq!(kept, 9);
}

#[test]
fn a_second_owner_is_refused_by_name() {
    let Some(place) = place() else { return };
    let dir = place.path().join("one");
    let _owner = open(&dir);
    let error = Cluster::open(&dir, Options::small()).unwrap_err();
    assert!(matches!(error, PgError::InUse { .. }));
    let holder = format!("in use by process {}", std::process::id());
    assert!(error.to_string().contains(&holder), "{error}");
}

#[test]
fn directories_of_others_and_damaged_ones_are_left_alone() {
    let Some(place) = place() else { return };
    let open = |name: &str| Cluster::open(&place.path().join(name), Options::small()).unwrap_err();
    let write = |path: &str, text: &str| {
        let path = place.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("letters/a.txt", "hello");
    let error = open("letters").to_string();
    assert!(error.contains("a.txt is in it"), "{error}");
    write("torn/dyno-cluster.json", "{\"magic\": \"dyno-clu");
    assert!(matches!(open("torn"), PgError::Damaged { .. }));
    let later = "{\"magic\": \"dyno-cluster\", \"version\": 9}";
    write("later/dyno-cluster.json", later);
    assert!(matches!(open("later"), PgError::Newer { version: 9, .. }));
    write("file", "");
    assert!(matches!(open("file"), PgError::Io { .. }));
}

#[test]
fn data_of_another_major_version_is_refused() {
    let Some(place) = place() else { return };
    let dir = place.path().join("one");
    drop(open(&dir));
    let path = dir.join("dyno-cluster.json");
    let major = Installation::find(None).unwrap().version().major;
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace(&format!("\"major\": {major}"), "\"major\": 11");
    fs::write(&path, text).unwrap();
    let error = Cluster::open(&dir, Options::small()).unwrap_err();
    assert!(matches!(error, PgError::Major { data: 11, .. }), "{error}");
}

#[test]
fn a_path_too_long_for_a_socket_gets_a_short_one_that_stays() {
    let Some(place) = place() else { return };
    let dir = place.path().join("long".repeat(30));
    let cluster = open(&dir);
    let first = cluster.dsn().host();
    assert!(first.starts_with("/tmp/dyno-"), "{first}");
    number(&mut client(&cluster), "SELECT 1::bigint");
    drop(cluster);
    let cluster = open(&dir);
    assert_eq!(cluster.dsn().host(), first);
    drop(cluster);
    fs::remove_dir_all(first).unwrap();
}

#[test]
fn a_closed_parent_is_named() {
    let Some(place) = place() else { return };
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("skipped: a closed parent: only root lends the server another user");
        return;
    }
    let closed = place.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    match Cluster::open(&closed.join("inner/one"), Options::small()) {
        Err(PgError::Unreachable { path, .. }) => assert_eq!(path, closed.canonicalize().unwrap()),
        other => panic!("{other:?}"),
    }
    let options = Options {
        os_user: Some("nobody-of-this-name".to_owned()),
        ..Options::small()
    };
    let error = Cluster::open(&place.path().join("two"), options).unwrap_err();
    assert!(error.to_string().contains("nobody-of-this-name"), "{error}");
}

#[test]
fn tcp_asks_for_the_password() {
    let Some(place) = place() else { return };
    let port = dyno_ports::free().unwrap();
    let options = Options {
        listen: Some(Listen {
            address: "127.0.0.1".to_owned(),
            port,
        }),
        ..Options::small()
    };
    let cluster = Cluster::open(&place.path().join("one"), options).unwrap();
    let dsn = cluster.tcp_dsn().unwrap();
    let mut sql = connect(&dsn, &Session::named("test")).unwrap();
    assert_eq!(number(&mut sql, "SELECT 1::bigint"), 1);
    let wrong = format!("postgresql://dyno:wrong@127.0.0.1:{port}/postgres");
    let error = connect(&wrong.parse().unwrap(), &Session::default())
        .err()
        .unwrap();
    let class = error.class().unwrap();
    assert_eq!(
        (class.code, class.sqlstate.as_deref()),
        ("denied", Some("28P01"))
    );
}

#[test]
fn a_setting_that_the_server_refuses_is_told_with_its_log() {
    let Some(place) = place() else { return };
    let options = Options {
        settings: vec![("shared_buffers".to_owned(), "plenty".to_owned())],
        ..Options::small()
    };
    let error = Cluster::open(&place.path().join("one"), options).unwrap_err();
    assert!(matches!(error, PgError::Start { .. }));
    assert!(error.to_string().contains("plenty"), "{error}");
}

#[test]
fn programs_are_found_refused_and_missed_with_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let program = |version: &str, name: &str, text: &str, mode: u32| {
        let bin = dir.path().join("pg").join(version).join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(mode)).unwrap();
        bin
    };
    let says = |version: &str| format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n");
    let places = Places {
        roots: vec![(dir.path().join("pg"), "")],
        ..Places::default()
    };
    let find = || Installation::find_in(&places, None, None);
    let error = find().unwrap_err().to_string();
    assert!(error.contains("apt-get install postgresql"), "{error}");

    for version in ["13.4", "19beta1"] {
        program(version, "postgres", &says(version), 0o755);
        program(version, "initdb", "#!/bin/sh\n", 0o755);
    }
    let error = find().unwrap_err().to_string();
    assert!(
        error.contains("13.4") && error.contains("15 to 18"),
        "{error}"
    );

    for version in ["16.2", "9.6", "17.5"] {
        program(version, "postgres", &says(version), 0o755);
        program(version, "initdb", "#!/bin/sh\n", 0o755);
    }
    assert_eq!(find().unwrap().version().to_string(), "17.5");
    let of_16 = Installation::find_in(&places, None, Some(16)).unwrap();
    assert_eq!(of_16.version().minor, 2);

    // As an unpacked wheel: deeper, and without execute bits.
    let bin = program("17.5/wheel/pginstall", "postgres", &says("17.5"), 0o644);
    fs::write(bin.join("initdb"), "").unwrap();
    let error = Installation::find(Some(&dir.path().join("pg/17.5/wheel"))).unwrap_err();
    assert!(error.to_string().contains("chmod +x"), "{error}");
    let error = Installation::find(Some(&dir.path().join("nowhere"))).unwrap_err();
    assert!(matches!(error, PgError::Unusable { .. }), "{error}");
}
