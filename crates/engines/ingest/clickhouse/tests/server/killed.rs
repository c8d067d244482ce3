//! Servers and loads killed in the middle: nothing lost, nothing doubled.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dyno_ingest::load::Outcome;
use dyno_ingest_clickhouse::private_server::Config;

use crate::scene::{Scene, check_table, load, loaded_rows, options, settings, try_load};

const CHILD_ADDRESS: &str = "DYNO_TEST_CHILD_ADDRESS";
const CHILD_FILES: &str = "DYNO_TEST_CHILD_FILES";

/// The next of a series of shares, 0 to 1.
fn share(state: &mut u64) -> f64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

/// Kills the server with signal 9 at `kills` moments of loads, and starts it again each time. Where
/// it `replaces`, every load takes the place of the one before; else each has a table of its own.
fn kill_the_server(kills: u32, replaces: bool) {
    let Some(mut scene) = Scene::new(&Config::default()) else {
        return;
    };
    let older = scene.archives("older", 60_000, 2, 0.0);
    let newer = scene.archives("newer", 240_000, 2, 0.0);
    let begun = Instant::now();
    load(&newer, &scene.address("wspr.bronze"), &settings());
    let duration = begun.elapsed();
    let (mut seed, mut done, mut resent) = (20_261_122, 0, 0);
    for round in 0.. {
        let table = if replaces {
            "wspr.bronze".to_owned()
        } else {
            format!("wspr.bronze_{round}")
        };
        let address = scene.address(&table);
        let files = if replaces && round % 2 == 0 {
            &older
        } else {
            &newer
        };
        let moment = duration.mul_f64(share(&mut seed));
        let loading = thread::scope(|scope| {
            let loading = scope.spawn(|| load(files, &address, &settings()));
            thread::sleep(moment);
            if !loading.is_finished() {
                scene.server.kill();
                done += 1;
                scene.server.start_again().unwrap();
            }
            loading.join().unwrap()
        });
        for report in &loading {
            loaded_rows(report);
            if let Outcome::Loaded { server, .. } = &report.outcome {
                resent += server.unwrap().resent;
            }
        }
        check_table(&scene.server, &table, files);
        if done >= kills {
            break;
        }
        assert!(round < 10 * kills, "only {done} kills found a load alive");
    }
    println!("{done} kills of the server, {resent} blocks sent again");
}

#[test]
fn a_server_killed_in_mid_load_loses_and_doubles_nothing() {
    kill_the_server(3, false);
}

#[test]
#[ignore = "twenty kills of a server that then cleans up take minutes"]
fn a_server_killed_twenty_times_loses_and_doubles_nothing() {
    kill_the_server(20, true);
}

/// The load of another test, in a process of its own.
#[test]
fn child_that_is_killed() {
    let (Ok(address), Some(files)) = (std::env::var(CHILD_ADDRESS), std::env::var_os(CHILD_FILES))
    else {
        return;
    };
    let files: Vec<PathBuf> = std::env::split_paths(&files).collect();
    let address = address.parse().unwrap();
    let report = try_load(&files, &address, &settings(), &options()).unwrap();
    report.archives.iter().for_each(|report| {
        loaded_rows(report);
    });
}

#[test]
fn a_load_that_is_killed_is_finished_by_the_same_command() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    let address = scene.address("wspr.bronze");
    let older = scene.archives("older", 40_000, 2, 0.0);
    let newer = scene.archives("newer", 160_000, 2, 0.0);
    let command = |files: &[PathBuf]| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "killed::child_that_is_killed", "--nocapture"])
            .env(CHILD_ADDRESS, address.to_string())
            .env(CHILD_FILES, std::env::join_paths(files).unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    };
    let begun = Instant::now();
    assert!(command(&newer).status().unwrap().success());
    let duration = begun.elapsed();
    let (mut seed, mut kills) = (7, 0);
    for round in 0..40 {
        let files = if round % 2 == 0 { &older } else { &newer };
        let mut child = command(files).spawn().unwrap();
        thread::sleep(
            duration
                .mul_f64(share(&mut seed))
                .max(Duration::from_millis(20)),
        );
        let killed = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        kills += u32::from(killed);
        // What it had finished is there, and nothing of the rest.
        load(files, &address, &settings());
        check_table(&scene.server, "wspr.bronze", files);
        if kills >= 4 {
            break;
        }
    }
    assert!(kills >= 4, "only {kills} kills found the load alive");
    assert_eq!(scene.tables_with("_dyno_"), "");
}

/// What a server that was killed in a swap and started within the same second leaves behind: it
/// does so rarely, and then the swap was refused until the next day.
#[test]
fn a_directory_left_by_a_killed_swap_is_in_nobodys_way() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    let older = scene.archives("older", 2_000, 1, 0.0);
    let newer = scene.archives("newer", 3_000, 1, 0.0);
    let address = scene.address("wspr.bronze");
    load(&older, &address, &settings());
    let table = scene.folder_of("wspr/bronze");
    let left: Vec<PathBuf> = (1..=4)
        .map(|number| table.join(format!("tmp_replace_from_202301_{number}_{number}_0")))
        .collect();
    left.iter()
        .for_each(|folder| std::fs::create_dir(folder).unwrap());
    load(&newer, &address, &settings())
        .iter()
        .for_each(|report| {
            loaded_rows(report);
        });
    check_table(&scene.server, "wspr.bronze", &newer);
}
