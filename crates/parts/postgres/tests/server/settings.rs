//! Advice against real servers.

use crate::place::{client, open, place};
use dyno_postgres::advice::{compare, settings};
use dyno_postgres::{Cluster, MachineSize, Options};

#[test]
fn a_cluster_of_ours_is_as_advised() {
    let Some(place) = place() else { return };
    let cluster = open(&place.path().join("one"));
    let found = compare(&mut client(&cluster), &MachineSize::small()).unwrap();
    assert_eq!(found, []);
    let mut sql = client(&cluster);
    for advice in settings(&MachineSize::small(), false) {
        let ask = "SELECT context = 'postmaster' FROM pg_settings WHERE name = $1";
        let row = sql.query_one(ask, &[&advice.name]).unwrap();
        assert_eq!(
            row.get::<_, bool>(0),
            advice.needs_restart,
            "{}",
            advice.name
        );
    }
}

#[test]
fn what_endangers_records_is_told_apart() {
    let Some(place) = place() else { return };
    let options = Options {
        settings: vec![
            ("fsync".to_owned(), "off".to_owned()),
            ("jit".to_owned(), "on".to_owned()),
            ("max_connections".to_owned(), "500".to_owned()),
        ],
        ..Options::small()
    };
    let cluster = Cluster::open(&place.path().join("one"), options).unwrap();
    let found = compare(&mut client(&cluster), &MachineSize::small()).unwrap();
    let brief: Vec<_> = found
        .iter()
        .map(|d| {
            (
                d.name,
                d.has.as_str(),
                d.suggested.as_str(),
                d.endangers_data,
            )
        })
        .collect();
    assert_eq!(
        brief,
        [("fsync", "off", "on", true), ("jit", "on", "off", false)]
    );
}
