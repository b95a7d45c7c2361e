//! Text within HTML and SVG.

/// Text that is shown as it is, in an element or between the quotes of an attribute. Characters
/// that XML has no place for are left out.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(letter),
            letter if letter.is_control() => {}
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// As much of a text as there is room for, in letters.
pub(crate) fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A word for an `id`: letters, digits and dashes.
pub(crate) fn slug(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() => letter.to_ascii_lowercase(),
        _ => '-',
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_can_neither_open_an_element_nor_end_an_attribute() {
        let text = "<script>alert(\"a\" + 'b')</script> & more";
        let escaped = escape(text);
        assert!(!escaped.contains(['<', '>', '"', '\'']), "{escaped}");
        assert!(escaped.ends_with("&amp; more"), "{escaped}");
    }

    #[test]
    fn what_has_no_place_in_a_document_is_left_out() {
        assert_eq!(escape("a\u{0}b\u{1b}[31mc\nd"), "ab[31mc\nd");
        assert_eq!(escape("Größe × 2"), "Größe × 2");
    }

    #[test]
    fn a_text_that_has_no_room_is_cut() {
        assert_eq!(shortened("raw tcp", 7), "raw tcp");
        assert_eq!(shortened("mutex and condvar", 7), "mutex…");
    }

    #[test]
    fn an_id_has_no_space_and_no_slash() {
        assert_eq!(slug("edge/Socket v1"), "edge-socket-v1");
    }
}
