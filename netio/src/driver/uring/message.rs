//! What the kernel reads to gather a send.

use std::ffi::c_void;
use std::ptr;

use crate::driver::SEND_SEGMENTS_MAX;
use crate::driver::outgoing::Outgoing;

/// A message over the segments of an [`Outgoing`], which it refers to by address.
#[repr(C)]
pub(super) struct Message {
    header: Header,
    segments: [Segment; SEND_SEGMENTS_MAX],
}

/// `struct msghdr` of the kernel.
#[repr(C)]
struct Header {
    name: *mut c_void,
    name_len: u32,
    segments: *const Segment,
    segments_len: usize,
    control: *mut c_void,
    control_len: usize,
    flags: u32,
}

/// `struct iovec`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Segment {
    base: *const u8,
    len: usize,
}

impl Message {
    /// A message of nothing. It is boxed, since its parts refer to each other.
    pub(super) fn new() -> Box<Self> {
        let header = Header {
            name: ptr::null_mut(),
            name_len: 0,
            segments: ptr::null(),
            segments_len: 0,
            control: ptr::null_mut(),
            control_len: 0,
            flags: 0,
        };
        let nothing = Segment {
            base: ptr::null(),
            len: 0,
        };
        Box::new(Self {
            header,
            segments: [nothing; SEND_SEGMENTS_MAX],
        })
    }

    /// Makes it the message of what is left of `outgoing`.
    pub(super) fn set(&mut self, outgoing: &Outgoing) {
        let (slices, count) = outgoing.slices();
        for (segment, slice) in self.segments.iter_mut().zip(&slices[..count]) {
            *segment = Segment {
                base: slice.as_ptr(),
                len: slice.len(),
            };
        }
        self.header.segments = self.segments.as_ptr();
        self.header.segments_len = count;
    }

    pub(super) fn as_ptr(&self) -> *const Self {
        self
    }
}
