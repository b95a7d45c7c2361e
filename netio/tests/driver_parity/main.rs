//! What every driver promises.
//!
//! Goal: whoever is written against the trait works over any driver. Method: the same stories,
//! generic over the world they happen in (a driver, and a way to make connected sockets), with
//! every byte checked against a pattern. The kit checks for every connection of every story
//! what holds always: order, nothing after the end, nothing after it was closed.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod abuse;
mod accepting;
mod bodies;
mod closing;
mod detaching;
mod endings;
mod interrupting;
mod kit;
mod many;
mod pattern;
mod reading;
mod record;
mod seed;
mod sending;
mod stories;
mod tailing;
mod waiting;
mod worlds;

/// Makes a test of each promise, for one driver, where it is not denied.
macro_rules! promises_of {
    ($name:ident, $world:ident, $is_denied:expr, $($promise:ident),*) => {
        mod $name {
            $(
                #[test]
                fn $promise() {
                    if $is_denied {
                        return;
                    }
                    super::$promise::<crate::worlds::$world>();
                }
            )*
        }
    };
}

/// Makes a test of each promise for every driver. Another driver is another line here.
macro_rules! promises {
    ($($promise:ident),* $(,)?) => {
        $crate::promises_of!(epoll, Epoll, false, $($promise),*);
        $crate::promises_of!(uring, Uring, $crate::worlds::uring_is_denied(), $($promise),*);
        $crate::promises_of!(sim, Sim, false, $($promise),*);
    };
}

pub(crate) use promises;
pub(crate) use promises_of;
