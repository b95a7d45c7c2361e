//! A stream stops in one of four ways, told apart after everything was taken.

use ringway::edge::{Ending, Failure, Popped, RejectReason};
use ringway::element::{Drain, StreamElement};
use ringway::limits::CONTROL_ELEMENTS_MAX;

use super::EdgeSubject;
use super::elements::{
    Numbers, SenderGoes, barrier, ending, expected_ending, fill, next, number, push, rejected,
    room_for, stop, told_ending, watermark,
};

const FINISH: SenderGoes = |sender| sender.finish().unwrap();
const CANCEL: SenderGoes = |sender| sender.cancel();
const FAIL: SenderGoes = |sender| sender.fail("map[0] panicked");
const DROP: SenderGoes = drop;

/// The ending of a stream with these elements, after each was taken.
fn ending_of<S: EdgeSubject>(
    subject: &S,
    elements: &[StreamElement<Numbers>],
    close: SenderGoes,
) -> Ending {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    for element in elements {
        push(&mut sender, element.clone());
    }
    close(sender);
    for element in elements {
        assert_eq!(next(&mut receiver), *element);
    }
    ending(&mut receiver)
}

fn cancelled<S: EdgeSubject>(subject: &S) -> Ending {
    expected_ending(subject, Ending::Cancelled)
}

fn lost() -> Ending {
    Ending::Failed(Failure::peer_lost("edge"))
}

/// Of each of the ways, and control elements too.
pub fn everything_accepted_is_taken_before_the_end<S: EdgeSubject>(subject: &S) {
    let elements = [number(1), watermark(1), barrier(1), number(2)];
    assert_eq!(ending_of(subject, &elements, FINISH), Ending::End);
    assert_eq!(ending_of(subject, &elements, CANCEL), cancelled(subject));
    assert_eq!(ending_of(subject, &elements, DROP), lost());
    assert!(!ending_of(subject, &elements, FAIL).is_orderly());
}

/// Without any element.
pub fn an_empty_stream_ends<S: EdgeSubject>(subject: &S) {
    assert_eq!(ending_of(subject, &[], FINISH), Ending::End);
    assert_eq!(ending_of(subject, &[], CANCEL), cancelled(subject));
    assert_eq!(ending_of(subject, &[], DROP), lost());
}

/// It never looks like an end.
pub fn a_stream_that_is_dropped_has_failed<S: EdgeSubject>(subject: &S) {
    let ending = ending_of(subject, &[number(1)], DROP);
    assert_eq!(ending, lost());
    assert!(!ending.is_orderly());
    assert!(ending.to_string().contains("edge edge"), "{ending}");
}

/// Whatever unwinds past the sender drops it.
pub fn a_sender_that_panics_has_failed<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    let thread = std::thread::spawn(move || {
        push(&mut sender, number(1));
        std::panic::resume_unwind(Box::new("the subtask panics"));
    });
    assert!(thread.join().is_err());
    assert_eq!(next(&mut receiver), number(1));
    assert_eq!(ending(&mut receiver), lost());
}

/// In its own words.
pub fn a_stream_that_fails_tells_why<S: EdgeSubject>(subject: &S) {
    let failure = Failure::peer_failed("edge", "map[0] panicked");
    let ending = ending_of(subject, &[number(1)], FAIL);
    assert_eq!(ending, expected_ending(subject, Ending::Failed(failure)));
    if subject.tells_reasons() {
        assert!(ending.to_string().contains("map[0] panicked"), "{ending}");
    }
}

/// Nothing downstream may take it for one.
pub fn a_cancelled_stream_is_no_end<S: EdgeSubject>(subject: &S) {
    let ending = ending_of(subject, &[number(1)], CANCEL);
    assert_eq!(ending, cancelled(subject));
    assert!(!ending.is_orderly());
}

/// A drain marker with target parallelism 0, then close.
pub fn a_stream_is_stopped_if_its_last_element_says_so<S: EdgeSubject>(subject: &S) {
    let ending = ending_of(subject, &[number(1), stop()], FINISH);
    assert_eq!(ending, Ending::Stopped);
    assert!(ending.is_orderly());
    assert_eq!(ending_of(subject, &[stop()], FINISH), Ending::Stopped);
}

/// Only the last element counts, and only with target parallelism 0.
pub fn a_stop_marker_that_is_not_last_or_does_not_stop_leaves_an_end<S: EdgeSubject>(subject: &S) {
    let rescale = StreamElement::Drain(Drain {
        subtask: 0,
        target_parallelism: 4,
    });
    for after in [number(1), watermark(1), barrier(1), rescale.clone()] {
        assert_eq!(ending_of(subject, &[stop(), after], FINISH), Ending::End);
    }
    assert_eq!(ending_of(subject, &[rescale], FINISH), Ending::End);
}

/// What did not get onto the edge says nothing about how it ends.
pub fn a_stop_marker_that_was_rejected_leaves_an_end<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(1));
    let room = 1 + CONTROL_ELEMENTS_MAX;
    let taken = fill(subject, &mut sender, room, |_| watermark(1));
    assert_eq!(rejected(&mut sender, stop()).0, RejectReason::Full);
    sender.finish().unwrap();
    for element in taken {
        assert_eq!(next(&mut receiver), element);
    }
    assert_eq!(ending(&mut receiver), Ending::End);

    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(1));
    let taken = fill(subject, &mut sender, 1, |_| number(1));
    sender.try_push(stop()).unwrap();
    assert_eq!(rejected(&mut sender, number(2)).0, RejectReason::Full);
    sender.finish().unwrap();
    for element in taken.into_iter().chain([stop()]) {
        assert_eq!(next(&mut receiver), element);
    }
    assert_eq!(ending(&mut receiver), Ending::Stopped);
}

/// Stopping is what an orderly close says, nothing else.
pub fn a_stop_marker_does_not_soften_a_cancel_or_a_loss<S: EdgeSubject>(subject: &S) {
    assert_eq!(ending_of(subject, &[stop()], CANCEL), cancelled(subject));
    assert_eq!(ending_of(subject, &[stop()], DROP), lost());
}

/// On every further call, in every form.
pub fn the_ending_is_said_again<S: EdgeSubject>(subject: &S) {
    for (close, expected) in [
        (FINISH, Ending::End),
        (CANCEL, cancelled(subject)),
        (DROP, lost()),
    ] {
        let (sender, mut receiver) = subject.open::<Numbers>(room_for(8));
        close(sender);
        if !subject.is_instant() {
            assert_eq!(ending(&mut receiver), expected);
        }
        for _ in 0..3 {
            for popped in [receiver.try_pop(), receiver.pop()] {
                let Popped::Ended(ending) = popped else {
                    panic!("the stream is over");
                };
                assert_eq!(told_ending(ending), expected);
            }
        }
        assert_eq!(receiver.poll_priority(), None);
        assert!(receiver.is_empty());
        receiver.peek_until(u64::MAX, |element| panic!("{element:?} is still queued"));
    }
}
