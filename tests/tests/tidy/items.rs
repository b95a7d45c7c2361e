//! Finds functions, modules and test-only regions in masked Rust code, by counting brackets. It need not be a
//! parser: rustfmt has seen the code before.

use std::ops::Range;

use crate::mask::is_word;

/// A function with a body.
pub(crate) struct Function {
    pub(crate) name: String,
    /// Where its `fn` stands.
    pub(crate) offset: usize,
    /// Lines from `fn` to the closing brace, both included.
    pub(crate) lines: usize,
}

/// A `mod`, with its body in braces or in a file of its own.
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) offset: usize,
    /// What lies between the braces; nothing for `mod name;`.
    pub(crate) body: Option<Range<usize>>,
}

pub(crate) fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for offset in words(code, "fn") {
        let Some((name, after)) = identifier(code, offset + 2) else {
            continue;
        };
        if let Some(body) = item_body(code, after) {
            let lines = code[offset..body.end].matches('\n').count() + 1;
            found.push(Function {
                name: name.to_string(),
                offset,
                lines,
            });
        }
    }
    found
}

pub(crate) fn modules(code: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for offset in words(code, "mod") {
        let Some((name, after)) = identifier(code, offset + 3) else {
            continue;
        };
        let body = match code[after..].trim_start().chars().next() {
            Some('{') => item_body(code, after),
            Some(';') => None,
            _ => continue,
        };
        found.push(Module {
            name: name.to_string(),
            offset,
            body,
        });
    }
    found
}

/// What follows `#[cfg(test)]` or a condition that names `test`, attribute included; all of a file that says
/// so of itself.
pub(crate) fn test_regions(code: &str) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    for (offset, _) in code.match_indices('#') {
        let inner = code[offset..].starts_with("#![cfg(");
        if !inner && !code[offset..].starts_with("#[cfg(") {
            continue;
        }
        let end = attribute_end(code, offset);
        let condition = &code[offset..end];
        if words(condition, "test").next().is_none() || condition.contains("not(test") {
            continue;
        }
        let end = if inner {
            code.len()
        } else {
            item_end(code, end)
        };
        regions.push(offset..end);
    }
    regions
}

/// Where `word` stands as a word of its own. It may hold other characters inside, as in `Instant::now`.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let edge = |inside: u8, outside: Option<&u8>| {
        !is_word(inside) || outside.is_none_or(|outside| !is_word(*outside))
    };
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let end = at + word.len();
            edge(
                bytes[*at],
                at.checked_sub(1).and_then(|before| bytes.get(before)),
            ) && edge(bytes[end - 1], bytes.get(end))
        })
}

/// The identifier that follows `at` after spaces, and where it ends.
pub(crate) fn identifier(code: &str, at: usize) -> Option<(&str, usize)> {
    let rest = &code[at..];
    let start = at + (rest.len() - rest.trim_start().len());
    let length = code.as_bytes()[start..]
        .iter()
        .take_while(|byte| is_word(**byte))
        .count();
    (length > 0).then(|| (&code[start..start + length], start + length))
}

pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

/// What lies between the braces of the item whose head goes on at `at`; nothing where it ends with `;`.
fn item_body(code: &str, at: usize) -> Option<Range<usize>> {
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b';' if depth == 0 => return None,
            b'{' if depth == 0 => return Some(offset + 1..closing_brace(code, offset)),
            _ => {}
        }
    }
    None
}

/// The end of the item, field or statement that begins at `at`, its attributes included.
fn item_end(code: &str, at: usize) -> usize {
    let mut start = at;
    while code[start..].trim_start().starts_with("#[") {
        start = attribute_end(code, start + code[start..].find('#').unwrap_or(0));
    }
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b';' | b',' if depth == 0 => return offset + 1,
            b'{' if depth == 0 => return code.len().min(closing_brace(code, offset) + 1),
            b'}' if depth == 0 => return offset,
            _ => {}
        }
    }
    code.len()
}

/// Just behind the `]` of the attribute that begins at `at`.
fn attribute_end(code: &str, at: usize) -> usize {
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return offset + 1;
        }
    }
    code.len()
}

/// The `}` of the `{` at `open`, or the end of code that lacks it.
fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return offset;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::{functions, modules, test_regions, words};

    #[test]
    fn a_function_counts_from_its_name_to_its_brace() {
        let code = "fn a(b: [u8; 2]) -> fn(u8)\nwhere\n{\n if x { y }\n}\n\
                    trait T { fn c(&self);\n fn d() {} }";
        let found: Vec<_> = functions(code)
            .into_iter()
            .map(|function| (function.name, function.lines))
            .collect();
        assert_eq!(found, [("a".to_string(), 5), ("d".to_string(), 1)]);
    }

    #[test]
    fn modules_are_found_with_and_without_a_body() {
        let code = "mod a;\npub(crate) mod b { mod c; }\nmodel mod_x; x.mod_y()";
        let found: Vec<_> = modules(code)
            .into_iter()
            .map(|module| (module.name, module.body.is_some()))
            .collect();
        assert_eq!(
            found,
            [("a".into(), false), ("b".into(), true), ("c".into(), false)]
        );
    }

    #[test]
    fn a_test_region_is_the_item_behind_the_attribute() {
        let code = "fn a() {}\n#[cfg(test)]\n#[x(y)]\nmod tests { fn b() {} }\nfn c() {}";
        let found: Vec<_> = test_regions(code)
            .into_iter()
            .map(|region| &code[region])
            .collect();
        assert_eq!(found, ["#[cfg(test)]\n#[x(y)]\nmod tests { fn b() {} }"]);
        let code = "#[cfg(all(loom, test))]\nuse x::y;\n#[cfg(not(test))] fn d() {} #[cfg(latest)] fn e() {}";
        let found: Vec<_> = test_regions(code)
            .into_iter()
            .map(|region| &code[region])
            .collect();
        assert_eq!(found, ["#[cfg(all(loom, test))]\nuse x::y;"]);
    }

    #[test]
    fn words_end_where_identifiers_do() {
        let code = "print!() eprint!() x.unwrap() x.unwrap_or() Instant::now() Instant::nowhere()";
        assert_eq!(words(code, "print!").count(), 1);
        assert_eq!(words(code, ".unwrap()").count(), 1);
        assert_eq!(words(code, "Instant::now").count(), 1);
    }
}
