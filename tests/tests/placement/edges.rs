//! Edges over sockets where io_uring, locked memory or descriptors are short: scenarios that
//! others met.

use ringway::data_plane::{ConnectOptions, DataPlane, ListenOptions, TransportChoice};
use ringway::edge::{Popped, Sender, Transport};
use ringway_netio::driver::DriverKind;
use ringway_shm::Bell;
use ringway_tests::conformance::elements::{Numbers, next, number};
use ringway_tests::within::LONG;
use rustix::io::Errno;
use rustix::process::Resource;

use super::child::Child;
use super::denied::limit;
use super::seccomp::deny_io_uring;

/// An edge over a socket within this process.
fn over_a_socket(plane: &DataPlane, rows: i64) -> Result<Option<DriverKind>, String> {
    let options = ListenOptions::new("127.0.0.1", 0);
    let listener = plane.listen::<Numbers>(options, Bell::thread());
    let listener = listener.map_err(|error| error.to_string())?;
    let options = ConnectOptions::default().transport(TransportChoice::Socket);
    let sender = plane.connect("127.0.0.1", listener.port(), Bell::thread(), options);
    let mut sender: Sender<Numbers> = sender.map_err(|error| error.to_string())?;
    assert_eq!(sender.transport(), Transport::Socket);
    let mut receiver = listener
        .accept_timeout(LONG)
        .map_err(|error| error.to_string())?;
    for row in 0..rows {
        sender
            .push(number(row))
            .map_err(|error| error.to_string())?;
        assert_eq!(next(&mut receiver), number(row));
    }
    Ok(receiver.remote_stats().and_then(|stats| stats.driver))
}

/// The same over a ring, which needs none of it.
fn over_a_ring() {
    let plane = DataPlane::new();
    let options = ListenOptions::new("127.0.0.1", 0);
    let listener = plane
        .listen_local::<Numbers>(options, Bell::thread())
        .unwrap();
    let mut sender = plane
        .connect_local("127.0.0.1", listener.port(), Bell::thread())
        .unwrap();
    sender.push(number(1)).unwrap();
    assert_eq!(listener.accept().unwrap().pop(), Popped::Element(number(1)));
}

#[test]
fn b61_edges_work_where_io_uring_is_denied_and_show_that_epoll_moves_their_bytes() {
    let test =
        "edges::b61_edges_work_where_io_uring_is_denied_and_show_that_epoll_moves_their_bytes";
    Child::of(test).run(|| {
        deny_io_uring(Errno::PERM);
        over_a_ring();
        let driver = over_a_socket(&DataPlane::new(), 100);
        assert_eq!(driver, Ok(Some(DriverKind::Epoll)));
    });
}

#[test]
fn b61_edges_work_on_a_kernel_without_io_uring() {
    Child::of("edges::b61_edges_work_on_a_kernel_without_io_uring").run(|| {
        deny_io_uring(Errno::NOSYS);
        over_a_ring();
        let driver = over_a_socket(&DataPlane::new(), 100);
        assert_eq!(driver, Ok(Some(DriverKind::Epoll)));
    });
}

#[test]
fn b62_edges_on_many_threads_work_where_no_memory_may_be_locked() {
    Child::of("edges::b62_edges_on_many_threads_work_where_no_memory_may_be_locked").run(|| {
        for bytes in [65_536, 0] {
            limit(Resource::Memlock, bytes);
            // Each has a thread and a driver of its own, and all live at once.
            let planes: Vec<_> = (0..16).map(|_| DataPlane::new()).collect();
            for plane in &planes {
                let driver = over_a_socket(plane, 10).unwrap();
                assert!(driver.is_some());
            }
        }
    });
}

#[test]
fn b62_who_runs_out_of_descriptors_is_told_so_and_goes_on_when_there_are_some_again() {
    let test =
        "edges::b62_who_runs_out_of_descriptors_is_told_so_and_goes_on_when_there_are_some_again";
    Child::of(test).run(|| {
        limit(Resource::Nofile, 32);
        let plane = DataPlane::new();
        over_a_socket(&plane, 10).unwrap();
        let (mut kept, mut error) = (Vec::new(), None);
        while error.is_none() {
            let options = ListenOptions::new("127.0.0.1", 0);
            match plane.listen::<Numbers>(options, Bell::thread()) {
                Ok(listener) => kept.push(listener),
                Err(refused) => error = Some(refused.to_string()),
            }
        }
        let error = error.unwrap();
        assert!(error.contains("open files"), "{error}");
        drop(kept);
        let start = std::time::Instant::now();
        while let Err(error) = over_a_socket(&plane, 10) {
            assert!(start.elapsed() < LONG, "{error}");
        }
    });
}
