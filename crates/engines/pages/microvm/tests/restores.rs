//! Machines restored from one snapshot. Each is a process of its own, which maps memory, sends its
//! layout and compares what it reads with the file.

mod rig;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use dyno_pages_hold::send_with_file;
use dyno_pages_microvm::stand_in::{GuestMemory, message};
use dyno_pages_microvm::{Pager, Region, held_machines, held_snapshot};

use rig::{PAGES, Process, Scene, eventually};

/// Not a test of its own: the part that this process plays for another one.
#[test]
fn role() {
    rig::play();
}

fn whole(guest: &mut Process) {
    guest.tell(&format!("compare 0 {PAGES}"));
    assert_eq!(guest.heard(), "halfway");
    assert_eq!(guest.heard(), "0 wrong");
}

/// Waits until the pager has counted so many pages: a guest has a page a moment before.
fn eventually_placed(pager: &Pager, pages: u64) {
    eventually("the count of the last page", || {
        pager.figures().placed == pages
    });
}

#[test]
fn every_byte_is_that_of_the_snapshot_and_an_end_frees_everything() {
    let Some(scene) = Scene::new() else { return };
    let pager = scene.pager(scene.options());
    let mut guest = scene.guest();
    whole(&mut guest);
    eventually_placed(&pager, PAGES);
    let [machine] = &pager.machines()[..] else {
        panic!("{:?}", pager.machines());
    };
    let figures = machine.figures;
    assert_eq!((machine.number, machine.taken_over), (0, false));
    assert_eq!(figures.placed, PAGES, "{figures:?}");
    assert!(figures.zeros >= PAGES / 7, "{figures:?}");
    assert_eq!(scene.held(), ["m0", "s0", "snapshot"]);
    guest.kill();
    eventually("its end", || {
        assert_eq!(pager.figures().placed, PAGES, "no figure is lost meanwhile");
        pager.machines().is_empty()
    });
    assert_eq!(scene.held(), ["snapshot"]);
    assert_eq!((pager.restores(), pager.refused()), (1, 0));
}

#[test]
fn twenty_clones_are_served_at_once_from_one_store() {
    let Some(scene) = Scene::new() else { return };
    let pager = scene.pager(scene.options());
    let mut guests: Vec<_> = (0..20).map(|_| scene.guest()).collect();
    for guest in &mut guests {
        guest.tell(&format!("compare 0 {PAGES}"));
    }
    for guest in &mut guests {
        assert_eq!(guest.heard(), "halfway");
        assert_eq!(guest.heard(), "0 wrong");
    }
    eventually_placed(&pager, 20 * PAGES);
    // What one machine writes is not seen by another.
    assert_eq!(guests[0].ask("write 3 9"), "written");
    assert_eq!(guests[1].ask("touch 3 4 5 6 7 8"), "touched");
}

#[test]
fn what_a_first_restore_touched_is_there_before_a_second_one_asks() {
    let Some(scene) = Scene::new() else { return };
    let mut options = scene.options();
    options.working_set = Some(scene.path("memory.ws"));
    let pager = scene.pager(options.clone());
    assert_eq!(pager.working_set_pages(), None);
    let order = "touch 500 3 4 5 6 7 8 9 10 11 12 13 700 701 42 0 1 2 719";
    let touches = order.split(' ').count() - 1;
    let mut first = scene.guest();
    assert_eq!(first.ask(order), "touched");
    // A machine that comes while the first one is recorded is served without a working set.
    let mut beside = scene.guest();
    assert_eq!(beside.ask("touch 7 600"), "touched");
    first.kill();
    eventually("the working set", || {
        pager.working_set_pages() == Some(touches)
    });
    beside.kill();
    drop(pager);
    // Another process finds it in the file.
    let pager = scene.pager(options.clone());
    assert_eq!(pager.working_set_pages(), Some(touches));
    let mut second = scene.guest();
    eventually("pages ahead", || {
        pager.figures().prefetched == touches as u64
    });
    assert_eq!(second.ask(order), "touched");
    assert_eq!(pager.figures().faults, 0);
    whole(&mut second);
    drop((second, pager));
    // A file that is damaged, or of another snapshot, is noticed, and recorded anew.
    let path = scene.path("memory.ws");
    let right = fs::read(&path).expect("a file");
    let mut wrong = right.clone();
    wrong[70] ^= 1;
    fs::write(&path, wrong).expect("space");
    let pager = scene.pager(options);
    assert_eq!(pager.working_set_pages(), None);
    let mut third = scene.guest();
    assert_eq!(third.ask(order), "touched");
    third.kill();
    eventually("the working set", || pager.working_set_pages().is_some());
    assert_eq!(fs::read(&path).expect("a file"), right);
}

#[test]
fn pages_that_a_machine_gave_up_are_zeros_whether_they_were_touched_or_not() {
    let Some(scene) = Scene::new() else { return };
    let pager = scene.pager(scene.options());
    let mut guest = scene.guest();
    guest.tell("churn 0 60");
    assert_eq!(guest.heard(), "halfway");
    assert_eq!(guest.heard(), "0 wrong");
    assert_eq!(guest.ask("write 0 60"), "written");
    assert_eq!(guest.ask("give-up 0 60"), "given up");
    assert_eq!(guest.ask("zeros 0 60"), "60 zeros");
    assert!(pager.figures().removed >= 660, "{:?}", pager.figures());
}

#[test]
fn a_pager_that_is_killed_leaves_machines_waiting_and_the_next_one_serves_them() {
    let Some(scene) = Scene::new() else { return };
    let mut pager = scene.pager_process();
    let mut guests = [scene.guest(), scene.guest()];
    for guest in &mut guests {
        assert_eq!(guest.ask("touch 1 3 5 7 9"), "touched");
        assert_eq!(guest.ask("give-up 0 10"), "given up");
    }
    for part in [10..250, 250..490, 490..PAGES] {
        for guest in &mut guests {
            guest.tell(&format!("compare {} {}", part.start, part.end));
        }
        assert_eq!(guests[0].heard(), "halfway");
        pager.kill();
        pager = scene.pager_process();
        assert_eq!(guests[0].heard(), "0 wrong");
        assert_eq!(guests[1].heard(), "halfway");
        assert_eq!(guests[1].heard(), "0 wrong");
    }
    for guest in &mut guests {
        assert_eq!(guest.ask("zeros 0 10"), "10 zeros");
    }
    // The end of a machine that was taken over is noticed without its connection.
    assert_eq!(scene.held().len(), 5);
    guests[0].kill();
    eventually("its end", || scene.held() == ["m1", "s1", "snapshot"]);
    // One that ends while a pager is not running is forgotten by the next pager.
    pager.kill();
    guests[1].kill();
    let snapshot = held_snapshot(&scene.holder)
        .expect("a holder")
        .expect("a snapshot");
    assert_eq!(
        held_machines(&scene.holder, &snapshot).expect("a holder"),
        0
    );
    assert_eq!(scene.held(), ["snapshot"]);
}

#[test]
fn a_pager_that_stops_leaves_machines_to_the_next_one() {
    let Some(scene) = Scene::new() else { return };
    let pager = scene.pager(scene.options());
    let mut guest = scene.guest();
    assert_eq!(guest.ask("touch 1 3 5"), "touched");
    assert_eq!(pager.stop(), 1);
    drop(pager);
    guest.tell(&format!("compare 0 {PAGES}"));
    let _pager = scene.pager_process();
    assert_eq!(guest.heard(), "halfway");
    assert_eq!(guest.heard(), "0 wrong");
}

#[test]
fn another_holder_gets_everything_when_the_first_one_has_died() {
    let Some(scene) = Scene::new() else { return };
    let pager = scene.pager(scene.options());
    let mut guest = scene.guest();
    eventually("the machine at the holder", || scene.held().len() == 3);
    for name in scene.held() {
        scene.holder.drop_held(&name).expect("it is there");
    }
    pager.hold_again(&scene.holder).expect("a holder");
    assert_eq!(scene.held(), ["m0", "s0", "snapshot"]);
    drop(pager);
    let _pager = scene.pager_process();
    whole(&mut guest);
}

#[test]
fn a_damaged_page_ends_the_machine_that_touches_it_and_no_other() {
    const DAMAGED: u64 = 5;
    let Some(scene) = Scene::new() else { return };
    let pager = scene.pager(scene.options());
    let memory = pager.snapshot().memory_file();
    let memory = fs::File::from(memory.try_clone_to_owned().expect("a descriptor"));
    // Its entry in the index, whose bits check each other.
    let entry_at = 4096 + 8 * DAMAGED;
    let mut entry = [0; 8];
    memory.read_exact_at(&mut entry, entry_at).expect("memory");
    entry[2] ^= 4;
    memory.write_all_at(&entry, entry_at).expect("memory");
    let (mut guest, mut other) = (scene.guest(), scene.guest());
    guest.tell(&format!("touch 4 {DAMAGED} 6"));
    assert_eq!(guest.heard(), "the process has ended");
    assert_eq!(guest.wait().signal(), Some(7), "SIGBUS");
    assert_eq!(other.ask("touch 3 4 6 7"), "touched");
    assert_eq!(pager.figures().poisoned, 1);
}

/// Sends bytes, perhaps with a descriptor, and waits for the connection's end.
fn refused(scene: &Scene, bytes: &[u8], file: Option<&dyn AsFd>) {
    let mut stream = UnixStream::connect(scene.path("pager")).expect("a pager");
    // The pager may refuse before everything is sent.
    let _sent = send_with_file(&stream, bytes, file.map(AsFd::as_fd));
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a limit");
    match stream.read(&mut [0]) {
        Ok(bytes) => assert_eq!(bytes, 0, "a pager says nothing"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
}

#[test]
fn hostile_messages_are_refused_and_disturb_no_machine() {
    let Some(scene) = Scene::new() else { return };
    let mut options = scene.options();
    options.greeting = Duration::from_millis(300);
    let pager = scene.pager(options);
    let mut guest = scene.guest();
    guest.tell(&format!("compare 0 {PAGES}"));
    let memory = GuestMemory::map(&[8], true).expect("memory");
    let faults = memory.faults().file();
    let region = |base, bytes, offset| Region {
        base,
        bytes,
        offset,
    };
    let one = message(&[region(0x10000, 4096, 0)]);
    let file = fs::File::open("/dev/null").expect("a file");
    let overlapping = message(&[region(0x10000, 8192, 0), region(0x11000, 4096, 8192)]);
    let beyond = message(&[region(0x10000, 4096, PAGES * 4096)]);
    let misaligned = message(&[region(0x10001, 4096, 0)]);
    let many: Vec<_> = (1..100)
        .map(|at| region(at << 20, 4096, at * 4096))
        .collect();
    let huge = one.clone();
    let huge = String::from_utf8(huge)
        .expect("text")
        .replace(":4096", ":2097152");
    let oversized = [b"[".as_slice(), &[b' '; 100_000]].concat();
    let cases: [(&[u8], Option<&dyn AsFd>); 11] = [
        (&one, None),
        (&one, Some(&file)),
        (b"not JSON at all", Some(&faults)),
        (b"\xff\xfe\x00", Some(&faults)),
        (b"[]", Some(&faults)),
        (&overlapping, Some(&faults)),
        (&beyond, Some(&faults)),
        (&misaligned, Some(&faults)),
        (&message(&many), Some(&faults)),
        (huge.as_bytes(), Some(&faults)),
        (&oversized, Some(&faults)),
    ];
    for (bytes, file) in cases {
        refused(&scene, bytes, file);
    }
    // One that sends nothing whole, and more of these than are heard at once.
    refused(&scene, b"[{\"base_host", Some(&faults));
    let slow: Vec<_> = (0..100)
        .map(|_| UnixStream::connect(scene.path("pager")).expect("a pager"))
        .collect();
    let mut another = scene.guest();
    whole(&mut another);
    drop(slow);
    assert_eq!(guest.heard(), "halfway");
    assert_eq!(guest.heard(), "0 wrong");
    eventually("all refusals", || pager.refused() >= 12);
    // One that only looks is not refused.
    let before = pager.machines().len();
    drop(UnixStream::connect(scene.path("pager")).expect("a pager"));
    assert_eq!(pager.machines().len(), before);
}

#[test]
fn a_layout_of_addresses_that_are_not_the_machines_harms_only_itself() {
    let Some(scene) = Scene::new() else { return };
    let pager = scene.pager(scene.options());
    let mut guest = scene.guest();
    // Memory that is registered, under addresses that are not.
    let memory = GuestMemory::map(&[8], true).expect("memory");
    let elsewhere = Region {
        base: 0x7000_0000_0000 & !0xfff,
        bytes: 8 * 4096,
        offset: 0,
    };
    let stream = UnixStream::connect(scene.path("pager")).expect("a pager");
    let file = memory.faults().file();
    send_with_file(&stream, &message(&[elsewhere]), Some(file)).expect("a pager");
    eventually("it", || pager.machines().len() == 2);
    // A connection that goes on talking is not listened to.
    (&stream).write_all(&[b'x'; 1000]).expect("a pager");
    whole(&mut guest);
}
