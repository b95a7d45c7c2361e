//! Finds footers of Parquet files that are nested so deeply that the library, which goes through
//! them by recursion, runs out of stack: nobody could catch that.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::limits::NESTING_MAX;

/// Levels of the columns of a file: a list or a map within another takes several.
const LEVELS_MAX: usize = 4 * NESTING_MAX;

/// Levels of values in a footer that are passed over. Those that are known have fewer.
const SKIPPED_LEVELS_MAX: usize = 32;

/// At the end of a file: the length of the footer, and the mark.
const TRAILER_BYTES: u64 = 8;

/// Makes sure that the columns of the file, of so many bytes, are not nested too deeply. Whether
/// it is a Parquet file at all is the library's to say.
///
/// # Errors
/// A sentence.
pub(super) fn require_levels(file: &File, file_bytes: u64) -> Result<(), String> {
    let footer = read_footer(file, file_bytes).map_err(|error| error.to_string())?;
    match footer.and_then(|footer| schema_levels(&footer)) {
        Some(levels) if levels > LEVELS_MAX => Err(format!(
            "its columns are nested in more than {LEVELS_MAX} levels"
        )),
        _ => Ok(()),
    }
}

/// The bytes of the footer; none where there is no room for it.
fn read_footer(file: &File, file_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(trailer_start) = file_bytes.checked_sub(TRAILER_BYTES) else {
        return Ok(None);
    };
    let mut length = [0; 4];
    file.read_exact_at(&mut length, trailer_start)?;
    let length = u32::from_le_bytes(length);
    let Some(start) = trailer_start.checked_sub(u64::from(length)) else {
        return Ok(None);
    };
    let mut footer = vec![0; length as usize];
    file.read_exact_at(&mut footer, start)?;
    Ok(Some(footer))
}

/// How many levels the columns have; none where that cannot be found.
fn schema_levels(footer: &[u8]) -> Option<usize> {
    let mut footer = Compact(footer);
    let mut id = 0;
    while let Some(kind) = footer.field(&mut id)? {
        if (id, kind) == (SCHEMA_FIELD, LIST) {
            return footer.levels_of_schema();
        }
        footer.skip(kind, SKIPPED_LEVELS_MAX)?;
    }
    None
}

/// Of a footer: the columns, each before those that are in it.
const SCHEMA_FIELD: i64 = 2;

/// Of a column: how many are in it.
const CHILDREN_FIELD: i64 = 5;

const I32: u8 = 5;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// What is left of a text in the compact protocol of Thrift.
struct Compact<'a>(&'a [u8]);

impl Compact<'_> {
    fn take(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    /// The kind of the next field of a struct, whose number is put into `id`; `Some(None)` at its
    /// end.
    fn field(&mut self, id: &mut i64) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        *id = match head >> 4 {
            0 => self.signed()?,
            further => id.checked_add(i64::from(further))?,
        };
        Some(Some(head & 0x0f))
    }

    /// How many values a list has, and of which kind.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let values = match head >> 4 {
            0x0f => self.number()?,
            values => u64::from(values),
        };
        Some((values, head & 0x0f))
    }

    fn skip(&mut self, kind: u8, levels: usize) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        match kind {
            // What they are stands in the head of their field.
            1 | 2 => Some(()),
            3 => self.take(1),
            4..=6 => self.number().map(drop),
            7 => self.take(8),
            8 => {
                let bytes = self.number()?;
                self.take(bytes)
            }
            LIST | 10 => {
                let (values, kind) = self.list()?;
                (0..values).try_for_each(|_| self.skip_value(kind, levels))
            }
            11 => {
                let pairs = self.number()?;
                let kinds = if pairs > 0 { self.byte()? } else { 0 };
                (0..pairs).try_for_each(|_| {
                    self.skip_value(kinds >> 4, levels)?;
                    self.skip_value(kinds & 0x0f, levels)
                })
            }
            STRUCT => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, levels)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    /// Within a list or a map, where every value takes a byte or more.
    fn skip_value(&mut self, kind: u8, levels: usize) -> Option<()> {
        match kind {
            1 | 2 => self.take(1),
            kind => self.skip(kind, levels),
        }
    }

    fn levels_of_schema(&mut self) -> Option<usize> {
        let (columns, kind) = self.list()?;
        // For each column that is open, how many in it have not come.
        let (mut open, mut most) = (Vec::new(), 0);
        for _ in 0..columns {
            if kind != STRUCT {
                return None;
            }
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            match self.children()? {
                0 => while open.pop_if(|left| *left == 0).is_some() {},
                children => open.push(children),
            }
            most = most.max(open.len());
        }
        Some(most)
    }

    /// Passes over a column, and tells how many are in it.
    fn children(&mut self) -> Option<u64> {
        let (mut id, mut children) = (0, 0);
        while let Some(kind) = self.field(&mut id)? {
            if (id, kind) == (CHILDREN_FIELD, I32) {
                children = u64::try_from(self.signed()?).ok()?;
            } else {
                self.skip(kind, SKIPPED_LEVELS_MAX)?;
            }
        }
        Some(children)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn flights() -> File {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        File::open(root.join("../docs/examples/data/flights.parquet")).unwrap()
    }

    #[test]
    fn the_columns_of_a_file_as_it_is_have_their_levels() {
        let file = flights();
        let bytes = file.metadata().unwrap().len();
        let footer = read_footer(&file, bytes).unwrap().unwrap();
        assert_eq!(schema_levels(&footer), Some(1));
        assert_eq!(require_levels(&file, bytes), Ok(()));
    }

    #[test]
    fn a_footer_that_is_cut_or_changed_is_no_crash() {
        let file = flights();
        let bytes = file.metadata().unwrap().len();
        let footer = read_footer(&file, bytes).unwrap().unwrap();
        for end in 0..footer.len().min(2_000) {
            let _ = schema_levels(&footer[..end]);
            for byte in [0, 0x19, 0x5c, 0xff] {
                let mut changed = footer[..2_000.min(footer.len())].to_vec();
                changed[end] = byte;
                let _ = schema_levels(&changed);
            }
        }
    }
}
