//! Splits a Rust text into code and comments. Both parts keep the length and the line breaks of the text, so
//! an offset means the same place in all three.

use std::ops::Range;

/// What a stretch of Rust text is.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    /// A string, byte string, raw string, or character, with its quotes.
    Literal,
}

/// The code, in which comments and the insides of literals are blank and every literal's ends are `"`; and
/// the comments, in which all else is blank.
pub(crate) fn split(text: &str) -> (String, String) {
    let mut code = text.as_bytes().to_vec();
    let mut comments = code.clone();
    let mut at = 0;
    while at < text.len() {
        let (kind, end) = next(text.as_bytes(), at);
        let here = at..end;
        match kind {
            Kind::Code => blank(&mut comments[here]),
            Kind::Comment => blank(&mut code[here]),
            Kind::Literal => {
                blank(&mut comments[here.clone()]);
                blank(&mut code[here.clone()]);
                code[here.start] = b'"';
                code[here.end - 1] = b'"';
            }
        }
        at = end;
    }
    let whole = |bytes| String::from_utf8(bytes).expect("stretches end between characters");
    (whole(code), whole(comments))
}

/// Overwrites everything but line breaks with spaces.
pub(crate) fn blank(bytes: &mut [u8]) {
    for byte in bytes {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// Whether `byte` can be part of an identifier.
pub(crate) fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// The kind and the end of the stretch that begins at `at`.
fn next(text: &[u8], at: usize) -> (Kind, usize) {
    let rest = &text[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => (Kind::Comment, at + line_comment(rest)),
        b'/' if rest.starts_with(b"/*") => (Kind::Comment, at + block_comment(rest)),
        b'"' => (Kind::Literal, at + string(rest)),
        b'\'' => match character(rest) {
            Some(length) => (Kind::Literal, at + length),
            None => (Kind::Code, at + 1),
        },
        byte if is_word(byte) => {
            let word = word_at(text, at);
            match raw_string(&text[word.end..]) {
                Some(length) if is_raw_prefix(&text[word.clone()]) => {
                    (Kind::Literal, word.end + length)
                }
                _ => (Kind::Code, word.end),
            }
        }
        _ => (Kind::Code, at + 1),
    }
}

fn word_at(text: &[u8], at: usize) -> Range<usize> {
    let length = text[at..].iter().take_while(|byte| is_word(**byte)).count();
    at..at + length
}

fn is_raw_prefix(word: &[u8]) -> bool {
    matches!(word, b"r" | b"br" | b"cr")
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(rest.len())
}

/// Block comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `#"..."#` with any number of `#`, or nothing where no raw string goes on, as in `r#type`.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
    if rest.get(hashes) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let inside = hashes + 1;
    let end = rest[inside..]
        .windows(close.len())
        .position(|window| window == close);
    Some(end.map_or(rest.len(), |end| inside + end + close.len()))
}

/// The length of a character literal, or nothing where the quote begins a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        let end = rest.get(3..)?.iter().position(|byte| *byte == b'\'')?;
        return Some(3 + end + 1);
    }
    let text = std::str::from_utf8(rest.get(1..6.min(rest.len()))?).unwrap_or_else(|error| {
        std::str::from_utf8(&rest[1..1 + error.valid_up_to()]).unwrap_or("")
    });
    let length = text.chars().next()?.len_utf8();
    (rest.get(1 + length) == Some(&b'\'')).then_some(length + 2)
}

#[cfg(test)]
mod tests {
    use super::split;

    fn code(text: &str) -> String {
        let (code, comments) = split(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(comments.len(), text.len());
        code
    }

    #[test]
    fn comments_and_the_insides_of_literals_are_not_code() {
        assert_eq!(code("a // b {\nc"), "a       \nc");
        assert_eq!(code("a /* { /* { */ { */ b"), "a                   b");
        assert_eq!(code(r#"f("{ \" {", 'x')"#), r#"f("      ", " ")"#);
        assert_eq!(
            code("r#\"{ \" {\"# + b\"{\" + br\"\\\""),
            "\"        \" + b\" \" + \"   \""
        );
    }

    #[test]
    fn quotes_of_characters_and_of_lifetimes_are_told_apart() {
        assert_eq!(
            code("f::<'a>('{', '\\'', '\\u{7d}', 'é')"),
            "f::<'a>(\" \", \"  \", \"      \", \"  \")"
        );
        assert_eq!(
            code("'outer: loop { break 'outer; }"),
            "'outer: loop { break 'outer; }"
        );
        assert_eq!(code("let r#type = b'{';"), "let r#type = b\" \";");
    }

    #[test]
    fn what_never_ends_reaches_to_the_end() {
        for text in ["\"{", "r#\"{\"", "/* { ", "'\\", "'", "\"\\"] {
            let (code, _) = split(text);
            assert!(!code.contains('{'), "{text}");
        }
    }
}
