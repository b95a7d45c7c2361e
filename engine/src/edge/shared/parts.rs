//! Batches that are larger than what the segment takes at a time and can't be cut by rows: their
//! regions go in parts.

use arrow::buffer::{Buffer, MutableBuffer};

use crate::edge::EdgeOptions;
use crate::limits::{EDGE_BYTES_MIN, IPC_BODY_BYTES_MAX};
use crate::wire::region::RegionKind;

/// Bytes of a part at least, the last one's apart: nobody is made to go through a million of them
/// for one batch.
pub(super) const PART_BYTES_MIN: usize = 4096;

/// The largest region that the receiver of an edge puts together: what the edge holds, and no
/// more than a frame of the wire does.
pub(in crate::edge) fn region_bytes_max(edge: &EdgeOptions) -> u32 {
    let bytes = edge.bytes_max.clamp(EDGE_BYTES_MIN, IPC_BODY_BYTES_MAX);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// A region on its way out.
pub(super) struct Leaving {
    kind: RegionKind,
    region: Vec<u8>,
    written: usize,
}

impl Leaving {
    pub(super) fn new(kind: RegionKind, region: Vec<u8>) -> Self {
        Self {
            kind,
            region,
            written: 0,
        }
    }

    /// The next part, of at most `most` bytes, and how the region is written if it is the last.
    pub(super) fn next(&self, most: usize) -> (&[u8], Option<RegionKind>) {
        let rest = &self.region[self.written..];
        match rest.split_at_checked(most) {
            Some((part, behind)) if !behind.is_empty() => (part, None),
            _ => (rest, Some(self.kind)),
        }
    }

    /// So much of it was written.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.written += bytes;
    }
}

/// A region that comes in.
#[derive(Debug)]
pub(super) struct Assembly {
    /// It grows with what comes, whatever is claimed.
    bytes: MutableBuffer,
    bytes_max: usize,
}

impl Assembly {
    /// For regions of up to so many bytes.
    pub(super) fn new(bytes_max: u32) -> Self {
        Self {
            bytes: MutableBuffer::new(0),
            bytes_max: bytes_max as usize,
        }
    }

    /// Whether more of a region has to come.
    pub(super) fn has_begun(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Takes a part that others follow.
    ///
    /// # Errors
    /// The region is too large, or cut into pieces that are too small.
    pub(super) fn add(&mut self, part: &[u8]) -> Result<(), String> {
        if part.len() < PART_BYTES_MIN {
            let bytes = part.len();
            return Err(format!("a part of a batch with {bytes} bytes"));
        }
        self.append(part)
    }

    /// Takes the last part: the region.
    ///
    /// # Errors
    /// The region is too large, or began with this part.
    pub(super) fn finish(&mut self, part: &[u8]) -> Result<Buffer, String> {
        if !self.has_begun() {
            return Err("the last part of a batch without the others".to_owned());
        }
        self.append(part)?;
        let region = std::mem::replace(&mut self.bytes, MutableBuffer::new(0));
        Ok(region.into())
    }

    fn append(&mut self, part: &[u8]) -> Result<(), String> {
        if part.len() > self.bytes_max - self.bytes.len() {
            return Err(too_large("more than that", self.bytes_max));
        }
        self.bytes.extend_from_slice(part);
        Ok(())
    }
}

/// What both ends say of a row that the receiver does not take.
pub(super) fn too_large(needed: impl std::fmt::Display, bytes_max: usize) -> String {
    format!(
        "a single row is too large: the receiver takes {bytes_max} bytes at a time, and it needs \
         {needed}: let the edge hold more (`edge_bytes_max`, 64 MiB at most)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(length: usize, most: usize, bytes_max: u32) -> Result<Buffer, String> {
        let region: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
        let mut leaving = Leaving::new(RegionKind::Flat, region);
        let mut assembly = Assembly::new(bytes_max);
        loop {
            let (part, last) = leaving.next(most);
            let bytes = part.len();
            if let Some(kind) = last {
                assert_eq!(kind, RegionKind::Flat);
                return assembly.finish(part);
            }
            assembly.add(part)?;
            assert!(assembly.has_begun());
            leaving.advance(bytes);
        }
    }

    #[test]
    fn a_region_comes_back_from_its_parts_wherever_it_was_cut() {
        for (length, most) in [
            (PART_BYTES_MIN + 1, PART_BYTES_MIN),
            (2 * PART_BYTES_MIN, PART_BYTES_MIN),
            (2 * PART_BYTES_MIN + 1, PART_BYTES_MIN),
            (100_000, 5_000),
        ] {
            let region = through(length, most, 1 << 20).unwrap();
            let expected = (0..length).map(|n| (n % 251) as u8);
            assert!(region.iter().copied().eq(expected), "{length} by {most}");
        }
    }

    #[test]
    fn a_region_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() {
        assert_eq!(through(100_000, 5_000, 100_000).unwrap().len(), 100_000);
        let refused = through(100_001, 5_000, 100_000).unwrap_err();
        assert!(refused.contains("edge_bytes_max"), "{refused}");
        assert!(through(200_000, 5_000, 100_000).is_err());
    }

    #[test]
    fn parts_that_are_too_small_and_a_last_one_alone_are_refused() {
        let mut assembly = Assembly::new(1 << 20);
        assert!(assembly.add(&[]).is_err());
        assert!(assembly.add(&[1; PART_BYTES_MIN - 1]).is_err());
        assert!(assembly.finish(&[1; 10]).is_err());
        assembly.add(&[1; PART_BYTES_MIN]).unwrap();
        assert_eq!(
            assembly.finish(&[1; 10]).unwrap().len(),
            PART_BYTES_MIN + 10
        );
        assert!(!assembly.has_begun());
    }

    #[test]
    fn what_a_receiver_takes_follows_what_its_edge_holds() {
        let of = |bytes| region_bytes_max(&EdgeOptions::named("edge").bytes(bytes)) as usize;
        assert_eq!(of(0), EDGE_BYTES_MIN);
        assert_eq!(of(5 << 20), 5 << 20);
        assert_eq!(of(usize::MAX), IPC_BODY_BYTES_MAX);
    }
}
