//! Messages of as many bytes as a batch has.

use crate::edge::socket::{PREBUILT_BYTES, Total, sum_of_words};

/// Different messages.
const MESSAGES_MIN: usize = 4;
const MESSAGES_MAX: usize = 1024;

/// By which numbers are spread over all words.
const SPREAD: u64 = 0x5851_f42d_4c95_7f2d;

/// How far the first word of a message is from that of the one before.
const STEP: u64 = SPREAD << 32;

/// Messages that go round, as many bytes of them as there are of batches.
pub(crate) struct Payloads {
    messages: Vec<Vec<u8>>,
    totals: Vec<Total>,
}

impl Payloads {
    pub(crate) fn of(message_bytes: usize) -> Self {
        let count = (PREBUILT_BYTES / message_bytes).clamp(MESSAGES_MIN, MESSAGES_MAX);
        let message = |number: usize| {
            let words = (0..message_bytes.div_ceil(8)).map(|word| (number << 32 | word) as u64);
            let words = words.map(|word| word.wrapping_mul(SPREAD));
            let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            bytes.truncate(message_bytes);
            bytes
        };
        let messages: Vec<Vec<u8>> = (0..count).map(message).collect();
        let total = |message: &Vec<u8>| {
            let mut total = Total::default();
            add(&mut total, message);
            total
        };
        Self {
            totals: messages.iter().map(total).collect(),
            messages,
        }
    }

    /// The first `count` messages.
    pub(crate) fn messages(&self, count: u64) -> impl Iterator<Item = &[u8]> {
        let all = self.messages.iter().cycle().take(count as usize);
        all.map(Vec::as_slice)
    }

    /// What they come to.
    pub(crate) fn total(&self, count: u64) -> Total {
        let mut total = Total::default();
        let all = self.totals.len() as u64;
        for (at, message) in self.totals.iter().enumerate() {
            let times = count / all + u64::from((at as u64) < count % all);
            total.rows += message.rows * times;
            total.sum = total.sum.wrapping_add(message.sum.wrapping_mul(times));
        }
        total.in_rounds(&self.totals, count)
    }
}

/// Adds a message, which is read to the end; it counts as a row.
#[inline]
pub(crate) fn add(total: &mut Total, message: &[u8]) {
    total.rows += 1;
    let first = message
        .first_chunk()
        .map_or(0, |word| i64::from_le_bytes(*word));
    total.follow(first, first, STEP.cast_signed());
    total.sum = total.sum.wrapping_add(sum_of_words(message));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_round_is_known_beforehand() {
        for bytes in [20, 64, 70_000] {
            let payloads = Payloads::of(bytes);
            for count in [1, 5, 3_000] {
                let mut total = Total::default();
                for message in payloads.messages(count) {
                    assert_eq!(message.len(), bytes);
                    add(&mut total, message);
                }
                assert_eq!(total, payloads.total(count));
            }
        }
    }

    #[test]
    fn messages_that_are_lost_doubled_or_swapped_are_found() {
        let payloads = Payloads::of(64);
        let comes_to = |order: &[usize]| {
            let messages: Vec<&[u8]> = payloads.messages(4).collect();
            let mut total = Total::default();
            order.iter().for_each(|at| add(&mut total, messages[*at]));
            total.require(payloads.total(4)).is_ok()
        };
        assert!(comes_to(&[0, 1, 2, 3]));
        for wrong in [
            &[0, 1, 3][..],
            &[0, 1, 1, 2, 3],
            &[1, 0, 2, 3],
            &[0, 1, 3, 2],
        ] {
            assert!(!comes_to(wrong), "{wrong:?}");
        }
    }
}
