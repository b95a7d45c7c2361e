//! A filter on system calls, as a container runtime sets one.

use std::ffi::c_int;

use rustix::io::Errno;

const SET_NO_NEW_PRIVS: c_int = 38;
const SET_SECCOMP: c_int = 22;
const MODE_FILTER: usize = 2;

const LOAD_NUMBER: u16 = 0x20;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_ABOVE: u16 = 0x25;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const FAIL: u32 = 0x0005_0000;

#[repr(C)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    operand: u32,
}

#[repr(C)]
struct Program {
    length: u16,
    instructions: *const Instruction,
}

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
}

/// From now on the three system calls of io_uring (425 to 427, on every architecture) fail
/// with `errno` on this thread and on those that it starts.
pub(crate) fn deny_io_uring(errno: Errno) {
    let error = u32::try_from(errno.raw_os_error()).unwrap();
    let step = |code, if_true, if_false, operand| Instruction {
        code,
        if_true,
        if_false,
        operand,
    };
    let instructions = [
        step(LOAD_NUMBER, 0, 0, 0),
        step(JUMP_IF_AT_LEAST, 0, 2, 425),
        step(JUMP_IF_ABOVE, 1, 0, 427),
        step(RETURN, 0, 0, FAIL | error),
        step(RETURN, 0, 0, ALLOW),
    ];
    let program = Program {
        length: 5,
        instructions: instructions.as_ptr(),
    };
    // SAFETY: both calls have the arguments that prctl documents for these options, each as
    // wide as a register. The kernel copies the program, which lives until after the call and
    // has the layout of `struct sock_fprog`, with as many instructions as it says.
    let denied = unsafe {
        prctl(SET_NO_NEW_PRIVS, 1_usize, 0_usize, 0_usize, 0_usize) == 0
            && prctl(SET_SECCOMP, MODE_FILTER, &raw const program) == 0
    };
    assert!(denied, "{}", std::io::Error::last_os_error());
}
