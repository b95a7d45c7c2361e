//! Values as bytes, for types that have no columns of their own. Little-endian.
//!
//! | type | bytes |
//! |---|---|
//! | `String`, `Vec<u8>` | the bytes themselves |
//! | integers, floats, `bool` | their fixed width |
//! | `(A, B)` | u32 length of A, A, then B to the end |
//! | `Vec<T>` | u32 count, then for each u32 length and bytes |
//! | `BTreeMap<K, V>` | u32 count, then for each the key and the value, each with u32 length |
//! | `Option<T>` | byte 0, or byte 1 and the value |
//!
//! A value takes all bytes that it is given: anything left over is an error. `u8` alone has no
//! codec, so that `Vec<u8>` can only mean bytes.

use std::collections::BTreeMap;

/// A type with one encoding that everybody agrees on.
pub trait Coded: Sized {
    /// Appends the bytes of the value. After an error what was appended is of no use.
    ///
    /// # Errors
    ///
    /// [`CodecError::TooLong`] where a part does not fit a u32 length: split the value.
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError>;

    /// The value of these bytes, all of them.
    ///
    /// # Errors
    ///
    /// Any [`CodecError`]: the bytes come from another type or are damaged.
    fn decode(bytes: &[u8]) -> Result<Self, CodecError>;
}

/// An encoding of `T` that its user chose.
pub trait Codec<T>: Send + Sync {
    /// Appends the bytes of the value. After an error what was appended is of no use.
    ///
    /// # Errors
    ///
    /// Any [`CodecError`] where the value has no encoding: correct or drop the value.
    fn encode(&self, value: &T, out: &mut Vec<u8>) -> Result<(), CodecError>;

    /// The value of these bytes, all of them.
    ///
    /// # Errors
    ///
    /// Any [`CodecError`]: the bytes come from another codec or are damaged.
    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError>;
}

/// The encoding that a [`Coded`] type has by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl<T: Coded> Codec<T> for Plain {
    fn encode(&self, value: &T, out: &mut Vec<u8>) -> Result<(), CodecError> {
        value.encode(out)
    }

    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError> {
        T::decode(bytes)
    }
}

/// Why a value has no encoding, or bytes are no encoding of a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A value of fixed width has another number of bytes.
    #[error("{found} bytes where a value of {expected} is expected")]
    Width {
        /// Bytes that the type has.
        expected: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// The bytes end inside a length, a count or a part.
    #[error("the bytes end early: {needed} more are said to follow and {left} do")]
    Truncated {
        /// Bytes that should follow.
        needed: usize,
        /// Bytes that do.
        left: usize,
    },
    /// Bytes follow the end of the value.
    #[error("{bytes} bytes follow the end of the value")]
    Trailing {
        /// Bytes too many.
        bytes: usize,
    },
    /// The first byte of an optional value or a bool is neither 0 nor 1.
    #[error("{0:#04x} where 0 or 1 is expected")]
    Flag(u8),
    /// Text that is not UTF-8.
    #[error("text is not UTF-8 from byte {valid_bytes} on")]
    Utf8 {
        /// Bytes of good text ahead of it.
        valid_bytes: usize,
    },
    /// A map holds a key twice.
    #[error("a map holds a key twice")]
    RepeatedKey,
    /// A part is longer, or a container larger, than a u32 can say.
    #[error("a part of {0} bytes or entries does not fit a 32-bit length")]
    TooLong(usize),
    /// What a codec of a user's own has to say.
    #[error("{0}")]
    Other(String),
}

macro_rules! fixed_width {
    ($($type:ty),*) => {$(
        impl Coded for $type {
            fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
                out.extend_from_slice(&self.to_le_bytes());
                Ok(())
            }

            fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
                let fixed = bytes.try_into().map_err(|_| CodecError::Width {
                    expected: size_of::<$type>(),
                    found: bytes.len(),
                })?;
                Ok(Self::from_le_bytes(fixed))
            }
        }
    )*};
}

fixed_width!(i8, i16, i32, i64, u16, u32, u64, f32, f64);

impl Coded for bool {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.push(u8::from(*self));
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        match *bytes {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(CodecError::Flag(other)),
            _ => Err(CodecError::Width {
                expected: 1,
                found: bytes.len(),
            }),
        }
    }
}

impl Coded for String {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.extend_from_slice(self.as_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.into()),
            Err(error) => Err(CodecError::Utf8 {
                valid_bytes: error.valid_up_to(),
            }),
        }
    }
}

impl Coded for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.extend_from_slice(self);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        Ok(bytes.into())
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        encode_part(&self.0, out)?;
        self.1.encode(out)
    }

    fn decode(mut bytes: &[u8]) -> Result<Self, CodecError> {
        let first = A::decode(take_part(&mut bytes)?)?;
        Ok((first, B::decode(bytes)?))
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        encode_count(self.len(), out)?;
        self.iter().try_for_each(|item| encode_part(item, out))
    }

    fn decode(mut bytes: &[u8]) -> Result<Self, CodecError> {
        let count = take_count(&mut bytes, size_of::<u32>())?;
        // A count may be true and the items still be far larger in memory than on the wire,
        // so only what the bytes could pay for is reserved ahead.
        let mut items = Vec::with_capacity(count.min(bytes.len() / size_of::<T>().max(1)));
        for _ in 0..count {
            items.push(T::decode(take_part(&mut bytes)?)?);
        }
        nothing_left(bytes)?;
        Ok(items)
    }
}

impl<K: Coded + Ord, V: Coded> Coded for BTreeMap<K, V> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        encode_count(self.len(), out)?;
        for (key, value) in self {
            encode_part(key, out)?;
            encode_part(value, out)?;
        }
        Ok(())
    }

    fn decode(mut bytes: &[u8]) -> Result<Self, CodecError> {
        let count = take_count(&mut bytes, 2 * size_of::<u32>())?;
        let mut map = BTreeMap::new();
        for _ in 0..count {
            let key = K::decode(take_part(&mut bytes)?)?;
            let value = V::decode(take_part(&mut bytes)?)?;
            if map.insert(key, value).is_some() {
                return Err(CodecError::RepeatedKey);
            }
        }
        nothing_left(bytes)?;
        Ok(map)
    }
}

impl<T: Coded> Coded for Option<T> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        match self {
            None => {
                out.push(0);
                Ok(())
            }
            Some(value) => {
                out.push(1);
                value.encode(out)
            }
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        match bytes.split_first() {
            None => Err(CodecError::Truncated { needed: 1, left: 0 }),
            Some((0, rest)) => nothing_left(rest).map(|()| None),
            Some((1, rest)) => T::decode(rest).map(Some),
            Some((other, _)) => Err(CodecError::Flag(*other)),
        }
    }
}

/// Appends the value behind its length, which is only known once it has been encoded.
fn encode_part<T: Coded>(value: &T, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = out.len();
    out.extend_from_slice(&[0; size_of::<u32>()]);
    value.encode(out)?;
    let length = out.len() - start - size_of::<u32>();
    let length = u32::try_from(length).map_err(|_| CodecError::TooLong(length))?;
    out[start..start + size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

fn encode_count(count: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let count = u32::try_from(count).map_err(|_| CodecError::TooLong(count))?;
    out.extend_from_slice(&count.to_le_bytes());
    Ok(())
}

/// Takes a length and as many bytes off the front.
fn take_part<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], CodecError> {
    let length = take_u32(bytes)?;
    let (part, rest) = bytes
        .split_at_checked(length)
        .ok_or(CodecError::Truncated {
            needed: length,
            left: bytes.len(),
        })?;
    *bytes = rest;
    Ok(part)
}

/// Takes a count off the front, which the bytes that are left must be able to hold.
fn take_count(bytes: &mut &[u8], entry_bytes_min: usize) -> Result<usize, CodecError> {
    let count = take_u32(bytes)?;
    let needed = count.saturating_mul(entry_bytes_min);
    if needed > bytes.len() {
        return Err(CodecError::Truncated {
            needed,
            left: bytes.len(),
        });
    }
    Ok(count)
}

fn take_u32(bytes: &mut &[u8]) -> Result<usize, CodecError> {
    let (head, rest) = bytes.split_first_chunk().ok_or(CodecError::Truncated {
        needed: size_of::<u32>(),
        left: bytes.len(),
    })?;
    *bytes = rest;
    Ok(u32::from_le_bytes(*head) as usize)
}

fn nothing_left(bytes: &[u8]) -> Result<(), CodecError> {
    match bytes.len() {
        0 => Ok(()),
        bytes => Err(CodecError::Trailing { bytes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of<T: Coded>(value: &T) -> Vec<u8> {
        let mut out = Vec::new();
        value.encode(&mut out).unwrap();
        out
    }

    #[test]
    fn the_bytes_are_those_of_the_table() {
        let pair = ("alice".to_string(), 1_i64);
        let mut expected = vec![5, 0, 0, 0];
        expected.extend_from_slice(b"alice\x01\0\0\0\0\0\0\0");
        assert_eq!(bytes_of(&pair), expected);

        assert_eq!(bytes_of(&0x0102_0304_u32), [4, 3, 2, 1]);
        assert_eq!(bytes_of(&Some(-1_i16)), [1, 0xff, 0xff]);
        assert_eq!(bytes_of(&None::<i16>), [0]);
        let list = vec!["a".to_string(), String::new()];
        assert_eq!(bytes_of(&list), *b"\x02\0\0\0\x01\0\0\0a\0\0\0\0");
        let map = BTreeMap::from([("k".to_string(), true)]);
        assert_eq!(bytes_of(&map), *b"\x01\0\0\0\x01\0\0\0k\x01\0\0\0\x01");
    }

    #[test]
    fn bytes_left_over_are_an_error_everywhere() {
        let trailing = |bytes| Some(CodecError::Trailing { bytes });
        assert_eq!(Vec::<i64>::decode(b"\0\0\0\0xy").err(), trailing(2));
        let map = BTreeMap::<i64, i64>::decode(b"\0\0\0\0x");
        assert_eq!(map.err(), trailing(1));
        assert_eq!(Option::<i64>::decode(&[0, 9]).err(), trailing(1));
        let width = |expected, found| Some(CodecError::Width { expected, found });
        assert_eq!(i64::decode(&[0; 9]).err(), width(8, 9));
        assert_eq!(bool::decode(&[1, 1]).err(), width(1, 2));
    }

    #[test]
    fn a_count_that_the_bytes_cannot_hold_is_refused_before_anything_is_reserved() {
        let claim = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        let refused = Vec::<String>::decode(&claim).unwrap_err();
        assert!(matches!(refused, CodecError::Truncated { left: 4, .. }));
        let refused = BTreeMap::<i64, i64>::decode(&[1, 0, 0, 0, 0, 0, 0, 0]).unwrap_err();
        assert!(matches!(
            refused,
            CodecError::Truncated { needed: 8, left: 4 }
        ));
    }

    #[test]
    fn bad_lengths_flags_and_text_are_told_apart() {
        let refused = <(String, i64)>::decode(&[5, 0, 0, 0, b'a']).unwrap_err();
        assert_eq!(refused, CodecError::Truncated { needed: 5, left: 1 });
        assert_eq!(Option::<i64>::decode(&[2]), Err(CodecError::Flag(2)));
        assert!(Option::<i64>::decode(&[]).is_err());
        assert_eq!(bool::decode(&[7]), Err(CodecError::Flag(7)));
        let refused = String::decode(b"ab\xff").unwrap_err();
        assert_eq!(refused, CodecError::Utf8 { valid_bytes: 2 });
        let twice = b"\x02\0\0\0\x01\0\0\0k\0\0\0\0\x01\0\0\0k\0\0\0\0";
        let refused = BTreeMap::<String, String>::decode(twice);
        assert_eq!(refused, Err(CodecError::RepeatedKey));
    }
}
