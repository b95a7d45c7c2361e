//! A list that mostly has one item.

/// A list in the order of its items, which takes no memory of its own for one.
pub(super) enum Few<T> {
    One(T),
    /// None, or several.
    Others(Vec<T>),
}

impl<T> Few<T> {
    #[inline]
    pub(super) fn as_slice(&self) -> &[T] {
        match self {
            Self::One(item) => std::slice::from_ref(item),
            Self::Others(items) => items,
        }
    }

    #[inline]
    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::One(item) => std::slice::from_mut(item),
            Self::Others(items) => items,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    /// Puts an item before the one at `at`.
    pub(super) fn insert(&mut self, at: usize, item: T) {
        *self = match std::mem::take(self) {
            Self::Others(items) if items.is_empty() => Self::One(item),
            Self::Others(mut items) => {
                items.insert(at, item);
                Self::Others(items)
            }
            Self::One(other) => {
                let mut items = vec![other];
                items.insert(at, item);
                Self::Others(items)
            }
        };
    }

    /// Takes the item at `at`.
    ///
    /// # Panics
    /// When there is none.
    pub(super) fn remove(&mut self, at: usize) -> T {
        match std::mem::take(self) {
            Self::One(item) => {
                assert_eq!(at, 0, "there is one item");
                item
            }
            Self::Others(mut items) => {
                let item = items.remove(at);
                *self = match items.len() {
                    1 => items.pop().map_or(Self::default(), Self::One),
                    _ => Self::Others(items),
                };
                item
            }
        }
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self::Others(Vec::new())
    }
}
