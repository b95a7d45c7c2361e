//! Finds lines that are nested so deeply that whoever reads them by recursion runs out of stack.

/// Levels of objects and lists in a row. The library reads more, but recurses where it describes
/// what does not fit.
pub(super) const LEVELS_MAX: usize = 100;

/// Makes sure that the line `text` has no more levels than a row may have. Whether it is JSON at
/// all is the decoder's to say.
///
/// # Errors
/// A sentence.
pub(super) fn require_levels(text: &[u8]) -> Result<(), String> {
    let opens = |byte: &&u8| matches!(**byte, b'{' | b'[');
    // Hardly any line opens as many, nested or not.
    if text.iter().filter(opens).count() <= LEVELS_MAX || levels(text) <= LEVELS_MAX {
        return Ok(());
    }
    Err(format!("it is nested in more than {LEVELS_MAX} levels"))
}

/// How many are open at once, at most.
fn levels(text: &[u8]) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    let (mut is_text, mut is_escaped) = (false, false);
    for &byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'{' | b'[' => {
                open += 1;
                most = most.max(open);
            }
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_that_are_open_at_once_and_not_what_stands_in_text() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(require_levels(nested(LEVELS_MAX).as_bytes()).is_ok());
        assert!(require_levels(nested(LEVELS_MAX + 1).as_bytes()).is_err());
        let wide = "[1],".repeat(10 * LEVELS_MAX);
        assert!(require_levels(wide.as_bytes()).is_ok());
        let text = format!("{{\"a\\\"\\\\\":\"{}\\\"[\"}}", "[".repeat(10 * LEVELS_MAX));
        assert_eq!(levels(text.as_bytes()), 1);
        assert!(require_levels(text.as_bytes()).is_ok());
    }
}
