//! What an operation carries through the kernel, to be known by when it comes back.

use crate::driver::slots::Key;

/// Which operation of a thing it is. A thing has at most one of each under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Operation {
    /// Accepts, many times.
    Accept = 0,
    /// Tells when to accept again.
    Retry = 1,
    /// Receives, into chunks or into a body.
    Receive = 2,
    /// Sends.
    Send = 3,
    /// Watches the descriptor that is not ours.
    Watch = 4,
    /// Ends another operation. Nobody waits for what comes of it.
    Cancel = 5,
}

/// An operation, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) operation: Operation,
    pub(super) key: Key,
}

const OPERATION_SHIFT: u32 = 29;
const SLOT_MASK: u64 = (1 << OPERATION_SHIFT) - 1;

const OPERATIONS: [Operation; 6] = [
    Operation::Accept,
    Operation::Retry,
    Operation::Receive,
    Operation::Send,
    Operation::Watch,
    Operation::Cancel,
];

impl Token {
    pub(super) fn new(operation: Operation, key: Key) -> Self {
        debug_assert!(
            u64::from(key.slot) <= SLOT_MASK,
            "more sockets than descriptors"
        );
        Self { operation, key }
    }

    /// Of something that there is one of.
    pub(super) fn sole(operation: Operation) -> Self {
        let key = Key {
            slot: 0,
            generation: 0,
        };
        Self { operation, key }
    }

    pub(super) fn to_bits(self) -> u64 {
        u64::from(self.key.generation) << 32
            | (self.operation as u64) << OPERATION_SHIFT
            | u64::from(self.key.slot)
    }

    /// `None` for what no operation of ours carries.
    pub(super) fn from_bits(bits: u64) -> Option<Self> {
        let operation = (bits as u32) >> OPERATION_SHIFT;
        Some(Self {
            operation: *OPERATIONS.get(operation as usize)?,
            key: Key {
                slot: (bits & SLOT_MASK) as u32,
                generation: (bits >> 32) as u32,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was() {
        for (slot, generation) in [(0, 0), (7, 9), (SLOT_MASK as u32, u32::MAX)] {
            for operation in OPERATIONS {
                let token = Token::new(operation, Key { slot, generation });
                assert_eq!(Token::from_bits(token.to_bits()), Some(token));
            }
        }
        assert_eq!(Token::from_bits(7 << OPERATION_SHIFT), None);
    }
}
