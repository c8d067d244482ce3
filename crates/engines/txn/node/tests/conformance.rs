//! What every engine must do, on every way to reach this one.

mod scene;

use dyno_net::TransportKind;
use dyno_txn_api::{Database, Target, conformance};
use dyno_txn_node::{Durability, OpenOptions, ServeOptions, open, serve};

/// Short spins and small files: these tests share a small machine.
fn options() -> OpenOptions {
    OpenOptions {
        segment_bytes: 4 << 20,
        ..scene::options()
    }
}

fn judge(db: &dyn Database, transactions: u32) {
    for seed in 1..=2 {
        conformance::same_as_the_model(db, seed, transactions).expect("as the model");
    }
    conformance::concurrent_sums(db, 4, 25).expect("serializable");
}

fn local(cores: usize, partitions: u32, durability: Durability) {
    let at = tempfile::tempdir().expect("a directory");
    // Two threads, not pinned to different cores: the machine may have one.
    let cores = vec![0; cores];
    let options = OpenOptions {
        cores,
        partitions: Some(partitions),
        durability,
        ..options()
    };
    let target = Target::Local(at.path().join("db"));
    let db = open(&target, options).expect("it opens");
    judge(&*db, 60);
}

#[test]
fn in_process_one_thread_one_partition() {
    local(1, 1, Durability::Fsync);
}

#[test]
fn in_process_two_threads_two_partitions() {
    local(2, 2, Durability::Fsync);
}

#[test]
fn in_process_two_threads_four_partitions_in_memory() {
    local(2, 4, Durability::Memory);
}

#[test]
fn in_process_one_thread_three_partitions() {
    local(1, 3, Durability::Memory);
}

fn served(ring: bool) {
    let at = tempfile::tempdir().expect("a directory");
    let engine = OpenOptions {
        cores: vec![0, 0],
        partitions: Some(3),
        ..options()
    };
    let server = ServeOptions {
        engine,
        ..ServeOptions::new(at.path().join("db"), "127.0.0.1:0")
    };
    let server = serve(server).expect("it serves");
    let target = Target::Dyno(vec![server.address().to_owned()]);
    let db = open(&target, OpenOptions { ring, ..options() }).expect("it connects");
    let kind = dyno_net::Port::connect(
        &server.address().parse().expect("an address"),
        &dyno_net::PortOptions {
            ring,
            ..Default::default()
        },
    );
    let kind = kind.expect("it connects").transport().kind;
    assert_eq!(
        kind,
        if ring {
            TransportKind::Ring
        } else {
            TransportKind::Tcp
        }
    );
    judge(&*db, 40);
    drop(db);
    server.stop().expect("it stops in peace");
}

#[test]
fn over_tcp() {
    served(false);
}

#[test]
fn over_a_ring_between_processes() {
    served(true);
}
