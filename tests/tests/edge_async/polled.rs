//! The futures polled by hand: when they wake, and that they wake no more than needed.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use ringway::data_plane::{AcceptError, ConnectOptions, DataPlane, ListenOptions};
use ringway::edge::EdgeOptions;
use ringway::edge::{Bell, Failure, Popped, Receiver, RejectReason, Sender, local};
use ringway::element::Barrier;
use ringway_tests::block_on::block_on;
use ringway_tests::conformance::elements::{
    Numbers, next, number, push, room_for, value_of, watermark,
};

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A task that is never run, but counts who wants to run it.
pub(crate) struct Task {
    wakes: Arc<Wakes>,
    waker: Waker,
}

impl Task {
    pub(crate) fn new() -> Self {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        Self { wakes, waker }
    }

    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }

    /// Whether an edge still holds the waker.
    pub(crate) fn is_held(&self) -> bool {
        Arc::strong_count(&self.wakes) > 2
    }

    pub(crate) fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(&self.waker))
    }
}

#[test]
fn a_pop_is_woken_once_by_the_push_and_then_ready() {
    let (mut sender, mut receiver) = local::pair(room_for(4));
    let task = Task::new();
    let mut pop = receiver.pop_async();
    assert!(task.poll(&mut pop).is_pending());
    push(&mut sender, number(1));
    push(&mut sender, number(2));
    assert_eq!(task.wakes(), 1);
    assert_eq!(task.poll(&mut pop), Poll::Ready(Popped::Element(number(1))));
    assert!(!task.is_held());
}

#[test]
fn a_pop_is_woken_by_every_way_that_a_sender_goes() {
    let ways: [fn(Sender<Numbers>); 4] = [
        |sender| sender.finish().unwrap(),
        Sender::cancel,
        |sender| sender.fail("why"),
        drop,
    ];
    for go in ways {
        let (sender, mut receiver) = local::pair(room_for(1));
        let task = Task::new();
        let mut pop = receiver.pop_async();
        assert!(task.poll(&mut pop).is_pending());
        go(sender);
        assert_eq!(task.wakes(), 1);
        let ended = matches!(task.poll(&mut pop), Poll::Ready(Popped::Ended(_)));
        assert!(ended);
        drop(pop);
        let again = block_on(receiver.pop_async());
        assert!(matches!(again, Popped::Ended(_)), "it is said again");
    }
}

#[test]
fn a_push_is_woken_once_by_the_pop_and_then_accepted() {
    for first in [number(1), watermark(1)] {
        let (mut sender, mut receiver) = local::pair(room_for(1));
        let task = Task::new();
        push(&mut sender, first.clone());
        let mut pushing = sender.push_async(number(2));
        assert!(task.poll(&mut pushing).is_pending());
        assert_eq!(next(&mut receiver), first);
        assert_eq!(task.wakes(), 1);
        assert!(matches!(task.poll(&mut pushing), Poll::Ready(Ok(()))));
        assert!(!task.is_held());
        drop(pushing);
        assert_eq!(next(&mut receiver), number(2));
    }
}

#[test]
fn a_push_is_woken_when_bytes_are_given_back() {
    let (mut sender, mut receiver) = local::pair(EdgeOptions::named("edge").bytes(1));
    let task = Task::new();
    push(&mut sender, number(1));
    let mut pushing = sender.push_async(number(2));
    assert!(task.poll(&mut pushing).is_pending());
    assert_eq!(next(&mut receiver), number(1));
    assert_eq!(task.wakes(), 1);
    assert!(matches!(task.poll(&mut pushing), Poll::Ready(Ok(()))));
}

#[test]
fn a_push_is_woken_when_the_receiver_goes_and_gives_the_element_back() {
    let ways: [(fn(Receiver<Numbers>), RejectReason); 3] = [
        (Receiver::close, RejectReason::Closed),
        (drop, RejectReason::Failed(Failure::peer_lost("edge"))),
        (
            |receiver| receiver.fail("why"),
            RejectReason::Failed(Failure::peer_failed("edge", "why")),
        ),
    ];
    for (go, expected) in ways {
        let (mut sender, receiver) = local::pair(room_for(1));
        let task = Task::new();
        push(&mut sender, number(1));
        let mut pushing = sender.push_async(number(2));
        assert!(task.poll(&mut pushing).is_pending());
        go(receiver);
        assert_eq!(task.wakes(), 1);
        match task.poll(&mut pushing) {
            Poll::Ready(Err(rejected)) => {
                assert_eq!((rejected.reason, rejected.element), (expected, number(2)));
            }
            _ => panic!("the push learns that the receiver went"),
        }
    }
}

#[test]
fn control_elements_are_pushed_where_data_waits() {
    let (mut sender, _receiver) = local::pair(room_for(1));
    let task = Task::new();
    push(&mut sender, number(1));
    assert!(task.poll(&mut sender.push_async(number(2))).is_pending());
    assert!(task.poll(&mut sender.push_async(watermark(2))).is_ready());
    assert!(task.poll(&mut sender.ready(&watermark(3))).is_ready());
    assert!(task.poll(&mut sender.ready(&number(3))).is_pending());
}

/// In elements and in bytes, where room for one batch is none for another.
#[test]
fn an_element_that_is_said_to_have_room_is_accepted() {
    let bytes = |rows| ringway::batch::Payload::bytes(&batch(rows));
    let options = EdgeOptions::named("edge").bytes(bytes(10));
    let (mut sender, mut receiver) = local::pair(options);
    let task = Task::new();
    let (small, large) = (data(2), data(9));
    sender.try_push(data(2)).unwrap();
    assert!(task.poll(&mut sender.ready(&small)).is_ready());
    let mut waiting = sender.ready(&large);
    assert!(task.poll(&mut waiting).is_pending());
    assert_eq!(next(&mut receiver), data(2));
    assert_eq!(task.wakes(), 1);
    assert_eq!(task.poll(&mut waiting), Poll::Ready(Ok(())));
    drop(waiting);
    sender.try_push(large).unwrap();
    drop(receiver);
    let gone = block_on(sender.ready(&small));
    assert_eq!(gone, Err(RejectReason::Failed(Failure::peer_lost("edge"))));
}

fn batch(rows: i64) -> Numbers {
    (0..rows).map(ringway::batch::Row::untimed).collect()
}

fn data(rows: i64) -> ringway::element::StreamElement<Numbers> {
    ringway::element::StreamElement::Data(batch(rows))
}

/// As the blocking form does: the barrier is taken beside the queue.
#[test]
fn a_pop_returns_for_a_barrier_that_overtakes() {
    let (mut sender, mut receiver) = local::pair::<Numbers>(room_for(1));
    let task = Task::new();
    let mut pop = receiver.pop_async();
    assert!(task.poll(&mut pop).is_pending());
    sender.try_push_priority(Barrier::unaligned(1)).unwrap();
    assert_eq!(task.wakes(), 1);
    assert_eq!(task.poll(&mut pop), Poll::Ready(Popped::Empty));
    drop(pop);
    assert_eq!(receiver.poll_priority(), Some((Barrier::unaligned(1), 0)));
}

#[test]
fn the_time_for_which_an_awaited_push_has_no_room_is_blocked_time() {
    let (mut sender, mut receiver) = local::pair(room_for(1));
    let task = Task::new();
    push(&mut sender, number(1));
    let mut pushing = sender.push_async(number(2));
    assert!(task.poll(&mut pushing).is_pending());
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!(next(&mut receiver), number(1));
    assert!(task.poll(&mut pushing).is_ready());
    drop(pushing);
    let metrics = sender.metrics();
    assert_eq!(metrics.blocked_times, 1);
    assert!(metrics.blocked >= std::time::Duration::from_millis(5));
}

#[test]
fn a_receiver_is_awaited_until_a_sender_connects() {
    let plane = DataPlane::new();
    let listener = plane
        .listen::<Numbers>(ListenOptions::new("127.0.0.1", 0), Bell::thread())
        .unwrap();
    let task = Task::new();
    let mut accepting = Box::pin(listener.accept_async());
    assert!(task.poll(&mut accepting).is_pending());
    let options = ConnectOptions::default();
    let sender = plane.connect("127.0.0.1", listener.port(), Bell::thread(), options);
    push(&mut sender.unwrap(), number(1));
    assert!(task.wakes() > 0);
    let Poll::Ready(Ok(mut receiver)) = task.poll(&mut accepting) else {
        panic!("a sender has connected");
    };
    drop(accepting);
    assert!(!task.is_held());
    match block_on(receiver.pop_async()) {
        Popped::Element(element) => assert_eq!(value_of(element), 1),
        other => panic!("an element comes next, not {other:?}"),
    }
    let again = block_on(listener.accept_async());
    assert!(matches!(again, Err(AcceptError::AlreadyTaken)));
}
