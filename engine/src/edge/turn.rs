//! How long a half goes on before it lets the other tasks of its executor run.

use std::task::{Context, Poll};

use crate::limits::ASYNC_TURN_ELEMENTS;

/// What a half may still do in this turn of its task.
///
/// It lives in the half and not in a future, since a future that is dropped and made again
/// would begin anew: a task that always finds the half at the end of its turn would never get
/// an element.
#[derive(Debug)]
pub(crate) struct Turn {
    left: u32,
}

impl Turn {
    /// Before something is done: pending, with a wake-up at once, when the turn is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.left > 0 {
            return Poll::Ready(());
        }
        self.begin();
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// One element was pushed or taken.
    pub(super) fn took_one(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// The task waits, which lets the others run.
    pub(super) fn begin(&mut self) {
        self.left = ASYNC_TURN_ELEMENTS;
    }
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            left: ASYNC_TURN_ELEMENTS,
        }
    }
}
