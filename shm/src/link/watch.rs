//! Looking at a link without having a half of it.

use crate::link::side::{ConsumerSide, ProducerSide};
use crate::sync::{Arc, Ordering};

/// Tells whether the peer of a half has done something, to a thread that has not got the half: one
/// that passes the peer's ring on to an owner who sleeps in another way.
#[derive(Debug)]
pub struct Watch {
    peer: Peer,
    seen: [u64; 5],
}

#[derive(Debug)]
enum Peer {
    Producer(Arc<ProducerSide>),
    Consumer(Arc<ConsumerSide>),
}

impl Watch {
    pub(crate) fn of_producer(side: Arc<ProducerSide>) -> Watch {
        Watch {
            peer: Peer::Producer(side),
            seen: [0; 5],
        }
    }

    pub(crate) fn of_consumer(side: Arc<ConsumerSide>) -> Watch {
        Watch {
            peer: Peer::Consumer(side),
            seen: [0; 5],
        }
    }

    /// Whether the peer has published anything since the last call that said so.
    pub fn has_news(&mut self) -> bool {
        // Acquire pairs with the Release of each of them in `Producer` and `Consumer`. They are
        // only compared: who is woken for them looks again, and checks what it finds.
        let now = match &self.peer {
            Peer::Producer(side) => {
                let words = side.words();
                let [tail, letters] =
                    [&words.tail, &words.letters].map(|word| word.load(Ordering::Acquire));
                [tail, letters, 0, 0, 0]
            }
            Peer::Consumer(side) => {
                let words = side.words();
                [
                    &words.head,
                    &words.freed,
                    &words.pin,
                    &words.letters_taken,
                    &words.closed,
                ]
                .map(|word| word.load(Ordering::Acquire))
            }
        };
        let has_news = now != self.seen;
        self.seen = now;
        has_news
    }
}
