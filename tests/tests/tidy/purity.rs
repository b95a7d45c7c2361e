//! Protocol code is pure: it takes time and input as arguments and returns facts, so that it can be tested by
//! operation sequences, recorded answers and simulation. What would break that is found by name.

use crate::items::words;
use crate::tree::File;

/// Modules of protocol code: a file `NAME.rs`, or all files of a folder `NAME/`.
const PURE: &[&str] = &[
    "engine/src/align",
    "engine/src/control",
    "engine/src/partition",
    "engine/src/watermark",
    "netio/src/credit",
    "netio/src/frame",
    "netio/src/session",
];

/// What a pure module does not name.
const IMPURE: &[(&str, &str)] = &[
    ("Instant", "take the time as an argument"),
    ("SystemTime", "take the time as an argument"),
    ("Clock", "take the time as an argument"),
    ("std::net", "take and return bytes"),
    ("std::io", "take and return bytes"),
    ("std::fs", "take and return values"),
    ("std::env", "take the setting as an argument"),
    (
        "std::thread",
        "return what is to happen, and let the worker do it",
    ),
    ("Mutex", "own the state, and let the caller share it"),
    ("RwLock", "own the state, and let the caller share it"),
    ("Condvar", "own the state, and let the caller share it"),
    ("atomic", "own the state, and let the caller share it"),
    ("ringway_shm", "own the state, and let the caller share it"),
    ("tracing", "return the fact, and let the caller log it"),
    ("metrics", "return the fact, and let the caller count it"),
];

/// The crate that promises the compiler to hold no unsafe code.
const FORBIDS_UNSAFE: &str = "engine/src/lib.rs";

pub(crate) fn check(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_pure(&file.path)) {
        for (name, instead) in IMPURE {
            for offset in words(&file.library_code(), name) {
                found.push(format!(
                    "{}: {name} in pure protocol code: {instead}",
                    file.at(offset)
                ));
            }
        }
    }
    found
}

pub(crate) fn forbids_unsafe(files: &[File]) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.path == FORBIDS_UNSAFE && !file.code.trim().is_empty())
        .filter(|file| !file.code.contains("#![forbid(unsafe_code)]"))
        .map(|file| format!("{}: lacks #![forbid(unsafe_code)]", file.path))
        .collect()
}

fn is_pure(path: &str) -> bool {
    PURE.iter().any(|module| {
        path.strip_prefix(module)
            .is_some_and(|rest| rest == ".rs" || rest.starts_with('/') && rest.ends_with(".rs"))
    })
}

#[cfg(test)]
mod tests {
    use crate::tree::File;

    #[test]
    fn an_impure_name_is_found_in_pure_modules_only() {
        let found = |path: &str, text: &str| super::check(&[File::new(path, text)]).len();
        for text in [
            "use std::time::Instant;",
            "use std::{net::A, io};\nuse std::io;",
            "tracing::warn!(a)",
        ] {
            assert_eq!(found("engine/src/align.rs", text), 1, "{text}");
            assert_eq!(found("engine/src/align/pins.rs", text), 1, "{text}");
            assert_eq!(found("engine/src/alignment.rs", text), 0, "{text}");
            assert_eq!(found("engine/src/gate.rs", text), 0, "{text}");
        }
        assert_eq!(
            found(
                "engine/src/align.rs",
                "// Instant\n#[cfg(test)]\nmod tests { use std::env; }"
            ),
            0
        );
    }

    #[test]
    fn a_library_that_may_hold_unsafe_code_is_found() {
        let found =
            |text: &str| super::forbids_unsafe(&[File::new("engine/src/lib.rs", text)]).len();
        assert_eq!(found("//! #![forbid(unsafe_code)]\npub mod edge;"), 1);
        assert_eq!(
            found("//! Edges.\n#![forbid(unsafe_code)]\npub mod edge;"),
            0
        );
    }
}
