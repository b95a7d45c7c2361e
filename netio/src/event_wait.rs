//! Waiting for an eventfd inside of an executor.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use futures_lite::{AsyncReadExt, FutureExt};
use glommio::net::UnixStream;
use glommio::timer::Timer;
use rustix::io::Errno;

use crate::executor::{TIME_MAX, yield_now};

/// Waits until `eventfd` is readable (true), at most for `timeout` (false), while the
/// executor's other tasks run. The count is left to whoever reads it, and may have been there
/// before.
///
/// glommio waits for sockets and files, not for any descriptor. But a stream made from a
/// descriptor polls it, whatever it is, and reads from it once that says readable; on what is
/// no socket the read then fails, and takes nothing. That the poll comes first is how version
/// 0.9.0 works inside: the version is pinned, and the tests here hold it to that.
///
/// # Errors
/// No descriptor is left for the duplicate that is polled (raise the limit of open files), or
/// the descriptor cannot be polled.
///
/// # Panics
/// Outside of an [`Executor`](crate::executor::Executor).
pub async fn readable(eventfd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    if timeout.is_zero() {
        yield_now().await;
        return Ok(false);
    }
    let mut stream = polling_stream(eventfd.try_clone_to_owned()?);
    let polled = async {
        match stream.read(&mut [0]).await {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOTSOCK) => Ok(true),
            Err(error) => Err(error),
            // Only a socket can be read here, and then it was readable.
            Ok(_) => Ok(true),
        }
    };
    let timed_out = async {
        Timer::new(timeout.min(TIME_MAX)).await;
        Ok(false)
    };
    polled.or(timed_out).await
}

/// A stream over a descriptor that it owns. Making it arms a poll.
fn polling_stream(descriptor: OwnedFd) -> UnixStream {
    // SAFETY: the descriptor is open and owned by nobody else, since `into_raw_fd` gave it
    // up; the stream closes it, once. That it is no socket makes system calls on it fail,
    // and no memory depends on their success.
    unsafe { UnixStream::from_raw_fd(descriptor.into_raw_fd()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::{Executor, IoTurn, sleep};
    use rustix::event::{EventfdFlags, eventfd};
    use std::future::Future;
    use std::os::fd::AsFd;
    use std::rc::Rc;
    use std::time::Instant;

    /// Long enough that only a lost wake-up waits for it to pass.
    const LONG: Duration = Duration::from_secs(20);

    /// Runs the test on an executor. Where there cannot be one, making it says why.
    fn on_executor<F: Future<Output = ()> + 'static>(test: impl FnOnce(OwnedFd) -> F) {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        match Executor::new("test") {
            Ok(executor) => executor.run(test(event)),
            Err(denial) => assert_eq!(Executor::support(), Err(denial)),
        }
    }

    fn ring(event: &OwnedFd) {
        rustix::io::write(event, &1u64.to_ne_bytes()).unwrap();
    }

    fn count(event: &OwnedFd) -> Option<u64> {
        let mut bytes = [0; 8];
        rustix::io::read(event, &mut bytes).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }

    #[test]
    fn a_wait_ends_when_another_thread_writes_and_leaves_the_count() {
        on_executor(|event| async move {
            let ringer = event.try_clone().unwrap();
            let start = Instant::now();
            let thread = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                ring(&ringer);
            });
            assert!(readable(event.as_fd(), LONG).await.unwrap());
            let waited = start.elapsed();
            assert!(
                waited >= Duration::from_millis(20) && waited < LONG,
                "{waited:?}"
            );
            assert_eq!(count(&event), Some(1));
            thread.join().unwrap();
        });
    }

    #[test]
    fn a_wait_for_ever_ends_when_another_thread_writes() {
        on_executor(|event| async move {
            let ringer = event.try_clone().unwrap();
            let thread = std::thread::spawn(move || ring(&ringer));
            let asleep = async {
                sleep(Duration::MAX).await;
                panic!("for ever is over");
            };
            let waited = readable(event.as_fd(), Duration::MAX);
            assert!(waited.or(asleep).await.unwrap());
            thread.join().unwrap();
        });
    }

    #[test]
    fn a_count_from_before_ends_the_wait_at_once_as_often_as_it_is_there() {
        on_executor(|event| async move {
            ring(&event);
            for _ in 0..3 {
                assert!(readable(event.as_fd(), LONG).await.unwrap());
            }
            assert_eq!(count(&event), Some(1));
            let short = Duration::from_millis(5);
            assert!(
                !readable(event.as_fd(), short).await.unwrap(),
                "it was consumed"
            );
        });
    }

    #[test]
    fn a_wait_that_nothing_ends_times_out_and_the_next_one_still_hears() {
        on_executor(|event| async move {
            for _ in 0..5 {
                let start = Instant::now();
                assert!(
                    !readable(event.as_fd(), Duration::from_millis(5))
                        .await
                        .unwrap()
                );
                assert!(start.elapsed() >= Duration::from_millis(5));
            }
            assert!(!readable(event.as_fd(), Duration::ZERO).await.unwrap());
            ring(&event);
            assert!(readable(event.as_fd(), LONG).await.unwrap());
        });
    }

    #[test]
    fn other_tasks_run_while_one_waits() {
        on_executor(|event| async move {
            let event = Rc::new(event);
            let waiting = Rc::clone(&event);
            let ringer = async move {
                sleep(Duration::from_millis(5)).await;
                ring(&event);
                false
            };
            let waiter = async move {
                let heard = readable(waiting.as_fd(), LONG).await.unwrap();
                assert_eq!(count(&waiting), Some(1));
                heard
            };
            let (_, heard) = futures_lite::future::zip(ringer, waiter).await;
            assert!(heard);
        });
    }

    #[test]
    fn of_ten_thousand_waits_none_is_slept_over_and_no_descriptor_stays_behind() {
        fn open_descriptors() -> usize {
            std::fs::read_dir("/proc/thread-self/fd").unwrap().count()
        }
        on_executor(|event| async move {
            ring(&event);
            let before = open_descriptors();
            let start = Instant::now();
            for round in 0..10_000 {
                assert!(
                    readable(event.as_fd(), LONG).await.unwrap(),
                    "round {round}"
                );
            }
            assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
            // Tests that run beside this one hold some; a leak would be thousands.
            assert!(open_descriptors() < before + 200);
        });
    }

    #[test]
    fn a_timer_is_on_time_beside_a_task_that_always_has_something_to_do() {
        on_executor(|_| async move {
            let io = IoTurn::new().unwrap();
            let spinning = async {
                loop {
                    let turn = Instant::now();
                    while turn.elapsed() < Duration::from_micros(500) {
                        yield_now().await;
                    }
                    io.take().await.unwrap();
                }
            };
            let sleeping = async {
                let mut lateness = Vec::new();
                for _ in 0..9 {
                    let start = Instant::now();
                    sleep(Duration::from_millis(1)).await;
                    lateness.push(start.elapsed());
                }
                lateness.sort();
                lateness[4]
            };
            let median = sleeping.or(spinning).await;
            assert!(median < Duration::from_millis(30), "{median:?}");
        });
    }
}
