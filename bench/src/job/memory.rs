//! What becomes of memory that what is measured has freed.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The variable by which the C library takes its settings.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Freed memory stays with the process, up to 1 GiB.
const KEEP: &str = "glibc.malloc.trim_threshold=1073741824:glibc.malloc.mmap_threshold=1073741824";

/// Begins this program anew so that what is freed stays with it, unless the variable is set.
///
/// Jobs and loops of some 20 ms come one after the other, each with state of its own. Whether the
/// C library gives what they freed back to the system depends on thresholds that move with what
/// was freed before: the same job takes its pages from the system anew or not, which is a third
/// of its time.
pub fn keep_freed_memory() {
    if std::env::var_os(TUNABLES).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let mut again = Command::new(program);
    again.args(std::env::args_os().skip(1)).env(TUNABLES, KEEP);
    // It returns only where it fails; then the figures are what they are without.
    let _ = again.exec();
}
