//! What the tests of this suite send and take.

use ringway::edge::{Ending, Popped, Receiver, Sender};
use ringway::element::StreamElement;
use ringway_tests::conformance::elements::{Numbers, number, value_of, watermark};

/// Sends `0..count`, one row an element and a watermark after each tenth, and the end.
pub(crate) async fn send_all(mut sender: Sender<Numbers>, count: i64) {
    for value in 0..count {
        sender.push_async(number(value)).await.unwrap();
        if value % 10 == 9 {
            sender.push_async(watermark(value)).await.unwrap();
        }
    }
    sender.finish().unwrap();
}

/// Takes what [`send_all`] sends, each value in its place, and returns how many there were.
pub(crate) async fn take_all(mut receiver: Receiver<Numbers>) -> i64 {
    let mut expected = 0;
    loop {
        match receiver.pop_async().await {
            Popped::Element(StreamElement::Watermark(watermark)) => {
                assert_eq!(watermark.timestamp, expected - 1);
            }
            Popped::Element(element) => {
                assert_eq!(value_of(element), expected);
                expected += 1;
            }
            Popped::Empty => panic!("the waiting form has no lull"),
            Popped::Ended(ending) => {
                assert_eq!(ending, Ending::End);
                return expected;
            }
        }
    }
}

/// As [`take_all`], on a thread that blocks.
pub(crate) fn take_all_blocking(mut receiver: Receiver<Numbers>) -> i64 {
    let mut taken = 0;
    loop {
        match receiver.pop() {
            Popped::Element(StreamElement::Watermark(_)) => {}
            Popped::Element(element) => {
                assert_eq!(value_of(element), taken);
                taken += 1;
            }
            Popped::Empty => panic!("the waiting form has no lull"),
            Popped::Ended(ending) => {
                assert_eq!(ending, Ending::End);
                return taken;
            }
        }
    }
}
