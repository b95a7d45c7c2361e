//! What may not be written, where it may all the same, and what to write instead.

use crate::items::{identifier, line_of, words};
use crate::tree::File;

/// Something that library code does without.
struct Ban {
    /// Any of these, as words of their own, outside comments and literals.
    found: &'static [&'static str],
    /// Where the ban holds: paths that begin so, all where empty.
    within: &'static [&'static str],
    /// Where it does not: paths that begin so.
    except: &'static [&'static str],
    /// Whether tests are bound too.
    in_tests: bool,
    instead: &'static str,
}

/// Code whose input comes from files, peers or users: bad input is an error there, never a panic.
const FED_FROM_OUTSIDE: &[&str] = &[
    "engine/src/bin/",
    "engine/src/connect",
    "engine/src/expr",
    "engine/src/job",
    "engine/src/wire",
    "netio/src/",
];

const BANS: &[Ban] = &[
    Ban {
        found: &["Instant::now"],
        within: &[],
        except: &[
            "engine/src/clock.rs",
            "shm/src/bell.rs",
            "shm/src/blocking.rs",
            "shm/src/link/placement.rs",
            "bench/",
        ],
        in_tests: false,
        instead: "the clock of engine/src/clock.rs; protocol code takes the time as an argument",
    },
    Ban {
        found: &["SystemTime::now"],
        within: &[],
        except: &["engine/src/clock.rs", "bench/"],
        in_tests: false,
        instead: "the clock of engine/src/clock.rs; protocol code takes the time as an argument",
    },
    Ban {
        found: &["println!", "print!", "eprintln!", "eprint!"],
        within: &[],
        except: &["engine/src/bin/", "bench/", "docs/examples/"],
        in_tests: false,
        instead: "a tracing event, or a returned value that the binary prints",
    },
    Ban {
        found: &["mpsc"],
        within: &[],
        except: &["bench/"],
        in_tests: false,
        instead: "an edge, or ringway_shm's ring: bounded, and the ways it ends are told apart",
    },
    Ban {
        found: &["thread::sleep"],
        within: &[],
        except: &["engine/src/bin/", "bench/"],
        in_tests: false,
        instead: "park on the waker; nothing on a worker sleeps",
    },
    Ban {
        found: &[
            "sync::atomic",
            "atomic::Ordering",
            "cell::UnsafeCell",
            "loom::",
        ],
        within: &["shm/"],
        except: &["shm/src/sync.rs", "shm/build.rs", "shm/tests/"],
        in_tests: false,
        instead: "crate::sync, which is core's or loom's",
    },
    Ban {
        found: &[
            "sync::atomic",
            "atomic::Ordering",
            "AtomicBool",
            "AtomicCell",
            "AtomicI32",
            "AtomicI64",
            "AtomicU32",
            "AtomicU64",
            "AtomicUsize",
            "UnsafeCell",
        ],
        within: &["engine/", "netio/"],
        except: &[],
        in_tests: false,
        instead: "a flag, counter or ring of ringway_shm: memory order is argued in one crate only",
    },
    Ban {
        found: &["unsafe"],
        within: &["engine/", "tests/", "bench/"],
        // A baseline that shm is held to, and that nobody else is to use.
        except: &["bench/src/shared/memfd.rs"],
        in_tests: true,
        instead: "a safe interface of shm or netio, with the unsafe block and its argument there",
    },
    Ban {
        found: &[".unwrap()", ".expect(", "panic!"],
        within: FED_FROM_OUTSIDE,
        except: &[],
        in_tests: false,
        instead: "an error that says what, where, and what to do, since input comes from outside here; \
                  or the reason why no input can lead here, as `// Invariant: ...` right above",
    },
    Ban {
        found: &["todo!", "unimplemented!", "dbg!"],
        within: &[],
        except: &[],
        in_tests: true,
        instead: "the code, or an error that says what is not offered",
    },
    Ban {
        found: &["#[ignore"],
        within: &[],
        except: &[],
        in_tests: true,
        instead: "a smaller size that always runs, or a bench",
    },
];

/// A comment that begins so, on the line of a finding or on one of the few above it, argues that what comes
/// from outside can't lead there. It excuses nothing else.
const ARGUMENT: &str = "// Invariant: ";
const ARGUMENT_LINES_ABOVE_MAX: usize = 4;

/// Words that promise something for later, or tell of the past: both belong to the tracker and to git.
const MARKERS: &[&str] = &["TODO", "FIXME", "XXX", "HACK", "for now", "For now"];

/// Names that say nothing about what is inside.
const VAGUE: &[&str] = &["Manager", "Helper", "Helpers", "Util", "Utils"];

pub(crate) fn items(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for ban in BANS.iter().filter(|ban| ban.binds(&file.path)) {
            for needle in ban.found {
                for offset in words(&file.code, needle) {
                    let bound = ban.in_tests || !file.is_test_code(offset);
                    if bound && !ban.is_excused(file, offset) {
                        found.push(format!(
                            "{}: {needle}: instead {}",
                            file.at(offset),
                            ban.instead
                        ));
                    }
                }
            }
        }
    }
    found
}

pub(crate) fn markers(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let text = match () {
            () if file.is_rust() => &file.comments,
            () if file.is_script() => &file.text,
            () => continue,
        };
        for marker in MARKERS {
            for offset in words(text, marker) {
                found.push(format!(
                    "{}: {marker}: say what is so, and file the rest",
                    file.at(offset)
                ));
            }
        }
    }
    found
}

pub(crate) fn names(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for keyword in ["struct", "enum", "trait", "mod", "fn"] {
            for offset in words(&file.code, keyword) {
                let Some((name, _)) = identifier(&file.code, offset + keyword.len()) else {
                    continue;
                };
                if let Some(instead) = better_name(keyword, name) {
                    found.push(format!(
                        "{}: {keyword} {name}: instead {instead}",
                        file.at(offset)
                    ));
                }
            }
        }
    }
    found
}

/// Files that speak of a place only their author has, which nobody else can follow.
pub(crate) fn foreign_paths(files: &[File]) -> Vec<String> {
    // Put together here, or this file would be the first to fail.
    let homes = ["work", "root", "home"].map(|folder| format!("/{folder}/"));
    let others = [["/tmp/", "wt"].concat(), ["../", "shared/"].concat()];
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path != ".ci/run") {
        for needle in homes.iter().chain(&others) {
            for (offset, _) in file.text.match_indices(needle.as_str()) {
                let before = file.text[..offset].chars().next_back();
                let absolute = before
                    .is_none_or(|before| !before.is_alphanumeric() && !"_-./".contains(before));
                if absolute {
                    found.push(format!(
                        "{}: {needle}: name a place inside the repository",
                        file.at(offset)
                    ));
                }
            }
        }
    }
    found
}

impl Ban {
    fn binds(&self, path: &str) -> bool {
        let begins = |prefix: &&str| path.starts_with(*prefix);
        (self.within.is_empty() || self.within.iter().any(begins))
            && !self.except.iter().any(begins)
    }

    fn is_excused(&self, file: &File, offset: usize) -> bool {
        if self.within != FED_FROM_OUTSIDE {
            return false;
        }
        let lines = line_of(&file.text, offset);
        let above = file.comments.lines().take(lines);
        above
            .skip(lines.saturating_sub(ARGUMENT_LINES_ABOVE_MAX + 1))
            .any(|line| line.contains(ARGUMENT))
    }
}

/// Names that the trait of another crate has given.
const GIVEN: [&str; 2] = ["get_flight_info", "get_schema"];

fn better_name(keyword: &str, name: &str) -> Option<&'static str> {
    match keyword {
        "fn" if GIVEN.contains(&name) => None,
        "fn" if name.starts_with("get_") => Some("the noun alone"),
        "mod"
            if matches!(
                name,
                "util" | "utils" | "helper" | "helpers" | "misc" | "manager"
            ) =>
        {
            Some("the concept that the module holds")
        }
        "struct" | "enum" | "trait" if VAGUE.iter().any(|vague| name.ends_with(vague)) => {
            Some("what it is or does")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::File;

    fn items(path: &str, text: &str) -> usize {
        super::items(&[File::new(path, text)]).len()
    }

    #[test]
    fn a_banned_item_is_found_in_library_code_only() {
        let text = "fn a() { Instant::now(); }";
        assert_eq!(items("engine/src/task.rs", text), 1);
        assert_eq!(items("engine/src/clock.rs", text), 0);
        assert_eq!(items("bench/src/main.rs", text), 0);
        assert_eq!(items("tests/src/lib.rs", text), 0);
        assert_eq!(
            items(
                "engine/src/task.rs",
                &format!("#[cfg(test)]\nmod tests {{ {text} }}")
            ),
            0
        );
        assert_eq!(
            items(
                "engine/src/task.rs",
                "// Instant::now()\nlet a = \"Instant::now\";"
            ),
            0
        );
    }

    #[test]
    fn every_ban_finds_what_it_names() {
        for ban in super::BANS {
            let folder = ban.within.first().copied().unwrap_or("engine/src/");
            for needle in ban.found {
                let text = format!("fn a() {{ {needle} }}");
                assert!(
                    items(&format!("{folder}/canary.rs"), &text) > 0,
                    "{needle} in {folder}"
                );
            }
        }
    }

    #[test]
    fn an_argument_excuses_a_panic_near_it_and_nothing_else() {
        let path = "engine/src/wire.rs";
        let argued = |lines: usize| {
            format!(
                "// Invariant: checked above.\nlet a = b{}\n.unwrap();",
                "\n.c()".repeat(lines)
            )
        };
        assert_eq!(items(path, &argued(2)), 0);
        assert_eq!(items(path, &argued(3)), 1);
        assert_eq!(items(path, "a.unwrap(); // Invariant: checked above."), 0);
        assert_eq!(
            items(path, "// Invariant: none.\nlet a = Instant::now();"),
            1
        );
    }

    #[test]
    fn bans_that_bind_tests_find_them_there() {
        assert_eq!(
            items(
                "tests/tests/a.rs",
                "#[test]\n#[ignore = \"slow\"]\nfn a() {}"
            ),
            1
        );
        assert_eq!(
            items(
                "engine/src/a.rs",
                "#![forbid(unsafe_code)]\nfn a() { unsafe { b() } }"
            ),
            1
        );
        assert_eq!(items("shm/src/a.rs", "fn a() { unsafe { b() } }"), 0);
    }

    #[test]
    fn markers_are_found_in_comments_and_nowhere_else() {
        let found = |text: &str| super::markers(&[File::new("engine/src/a.rs", text)]).len();
        assert_eq!(found("// FIXME: b\n/* good enough for now */"), 2);
        assert_eq!(found("let a = \"FIXME\"; // mktemp XXXXXX"), 0);
    }

    #[test]
    fn vague_names_are_found() {
        let text = "struct EdgeManager; mod utils; fn get_name() {} struct Utility; fn get() {}";
        assert_eq!(super::names(&[File::new("engine/src/a.rs", text)]).len(), 3);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let found = |text: &str| super::foreign_paths(&[File::new("docs/A.md", text)]).len();
        assert_eq!(found(&["see /", "work/notes"].concat()), 1);
        assert_eq!(found(&["`/tmp/", "wt/a`"].concat()), 1);
        assert_eq!(found("https://a.example/work/b and frame/work/c"), 0);
    }
}
