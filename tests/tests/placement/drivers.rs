//! Which driver is taken where io_uring is denied, and where it is asked for.

use ringway_netio::driver::{DRIVER_VARIABLE, DriverChoice, DriverKind, OpenError, Why, open};
use ringway_netio::probe::DENY_VARIABLE;
use rustix::io::Errno;

use super::child::Child;
use super::seccomp::deny_io_uring;

/// Falls back by itself, and is an error where io_uring is asked for; both name the cause.
fn falls_back_unless_forced(part_of_the_cause: &str) {
    let opened = open(DriverChoice::Auto).unwrap();
    assert_eq!(opened.kind, DriverKind::Epoll);
    assert!(matches!(opened.why, Why::FellBack(_)));
    let why = opened.why.to_string();
    assert!(why.contains(part_of_the_cause), "{why}");
    let error = open(DriverChoice::Uring).unwrap_err();
    assert!(matches!(error, OpenError::Denied(_)));
    assert!(error.to_string().contains(part_of_the_cause), "{error}");
    let opened = open(DriverChoice::Epoll).unwrap();
    assert_eq!((opened.kind, opened.why), (DriverKind::Epoll, Why::Chosen));
}

#[test]
fn under_a_filter_that_forbids_io_uring_the_driver_is_epoll_and_the_filter_is_named() {
    let test =
        "drivers::under_a_filter_that_forbids_io_uring_the_driver_is_epoll_and_the_filter_is_named";
    Child::of(test).run(|| {
        deny_io_uring(Errno::PERM);
        falls_back_unless_forced("seccomp");
    });
}

#[test]
fn where_the_kernel_has_no_io_uring_the_driver_is_epoll() {
    let test = "drivers::where_the_kernel_has_no_io_uring_the_driver_is_epoll";
    Child::of(test).run(|| {
        deny_io_uring(Errno::NOSYS);
        falls_back_unless_forced("kernel");
    });
}

#[test]
fn where_io_uring_is_switched_off_the_driver_is_epoll() {
    let test = "drivers::where_io_uring_is_switched_off_the_driver_is_epoll";
    Child::of(test)
        .with(DENY_VARIABLE, "deny")
        .run(|| falls_back_unless_forced(DENY_VARIABLE));
}

#[test]
fn the_environment_chooses_the_driver_where_no_option_does() {
    let test = "drivers::the_environment_chooses_the_driver_where_no_option_does";
    Child::of(test).with(DRIVER_VARIABLE, "epoll").run(|| {
        let choice = DriverChoice::from_option(None).unwrap();
        assert_eq!(choice, DriverChoice::Epoll);
        let option = Some(DriverChoice::Auto);
        assert_eq!(DriverChoice::from_option(option), Ok(DriverChoice::Auto));
    });
}

#[test]
fn a_word_in_the_environment_that_names_no_driver_is_refused_with_the_variable() {
    let test =
        "drivers::a_word_in_the_environment_that_names_no_driver_is_refused_with_the_variable";
    Child::of(test).with(DRIVER_VARIABLE, "kqueue").run(|| {
        let error = DriverChoice::from_option(None).unwrap_err().to_string();
        assert!(error.contains("kqueue"), "{error}");
        assert!(error.contains(DRIVER_VARIABLE), "{error}");
    });
}
