//! What the command says, to readers that may be gone.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::EXIT_FAILED;

/// Standard error, as far as anyone reads it: what cannot be written there is lost, for there
/// is nobody else to tell, and the job goes on.
pub(crate) struct Errors;

impl Write for Errors {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Says `text` on standard error, if anyone listens.
pub(crate) fn say(text: impl Display) {
    let _ = Errors.write_all(text.to_string().as_bytes());
}

/// Writes `text` to standard output, and returns the exit code of a command that would end
/// with `code` otherwise. A reader that is gone has all it wants; where the text is lost for
/// another reason, such as a full disk, a command that went well has failed.
pub(crate) fn print(text: impl Display, code: u8) -> u8 {
    let mut output = io::stdout().lock();
    let written = output
        .write_all(text.to_string().as_bytes())
        .and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(format_args!(
                "error: standard output cannot be written: {error}\n"
            ));
            if code == 0 { EXIT_FAILED } else { code }
        }
        _ => code,
    }
}
