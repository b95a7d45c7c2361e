//! What a queue must offer to take part.

use crate::backoff::Backoff;

use super::CHUNK_ELEMENTS;

/// A bounded queue from one thread to another.
pub(crate) trait Queue<T: Send> {
    /// As the output calls it.
    const NAME: &'static str;
    type Input: Input<T>;
    type Output: Output<T>;

    /// A queue of so many elements.
    fn open(capacity: usize) -> (Self::Input, Self::Output);
}

/// Where a queue takes elements.
pub(crate) trait Input<T>: Send {
    /// Puts one element, or gives it back where there is no room.
    fn put(&mut self, value: T) -> Result<(), T>;

    /// Puts up to `max` elements of `values`, as far as there is room, in one go. A queue that
    /// has no way to do so puts one after the other, and waits for room for each. Returns how
    /// many.
    fn put_chunk(&mut self, values: &mut impl Iterator<Item = T>, max: usize) -> usize {
        let mut backoff = Backoff::light();
        let mut put = 0;
        for value in values.take(max) {
            let mut result = self.put(value);
            while let Err(rejected) = result {
                backoff.pause();
                result = self.put(rejected);
            }
            backoff.reset();
            put += 1;
        }
        put
    }
}

/// Where a queue gives elements.
pub(crate) trait Output<T>: Send {
    /// Takes one element.
    fn take(&mut self) -> Option<T>;

    /// Gives up to `max` elements to `each`, in one go where the queue has a way to do so.
    /// Returns how many.
    fn take_chunk(&mut self, max: usize, mut each: impl FnMut(T)) -> usize {
        let mut taken = 0;
        while taken < max
            && let Some(value) = self.take()
        {
            each(value);
            taken += 1;
        }
        taken
    }
}

/// How elements are put and taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One by one.
    Single,
    /// By 64, with one publication for all.
    Chunk,
}

impl Mode {
    pub(crate) const ALL: [Self; 2] = [Self::Single, Self::Chunk];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Chunk => "chunk",
        }
    }
}

/// How the ends of a round trip wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// They never sleep.
    Spin,
    /// They sleep at once.
    Park,
}

impl Wait {
    /// The case of a group in which they do.
    pub(crate) fn case_name(self, group: &str) -> String {
        match self {
            Self::Spin => format!("{group}/rtt/spin"),
            Self::Park => format!("{group}/rtt/park"),
        }
    }
}

/// Elements of the next chunk, when `left` are left.
pub(crate) fn chunk_of(left: u64) -> usize {
    usize::try_from(left).map_or(CHUNK_ELEMENTS, |left| left.min(CHUNK_ELEMENTS))
}
