//! Every file of a crate is part of it, and tests stand last.

use std::collections::{HashMap, HashSet};

use crate::items::Module;
use crate::tree::File;

/// Folders at the root of the repository. Names with a leading dot and build output are not looked at.
const TOP_LEVEL: &[&str] = &[
    "bench", "docs", "engine", "netio", "scripts", "shm", "tests",
];

/// Files that no `mod` leads to, so that the compiler never sees them.
pub(crate) fn dead(files: &[File]) -> Vec<String> {
    let tree = ModuleTree::new(files);
    let mut alive = HashSet::new();
    for file in files
        .iter()
        .filter(|file| is_root(&file.path, &tree.crates))
    {
        tree.visit(file, &mut alive);
    }
    files
        .iter()
        .filter(|file| file.is_rust() && tree.owns(&file.path) && !alive.contains(&file.path))
        .map(|file| {
            format!(
                "{}: no mod leads here: name it in its parent, or remove it",
                file.path
            )
        })
        .collect()
}

/// Files that are compiled for tests only, because the `mod` that leads to them is.
pub(crate) fn test_only(files: &[File]) -> HashSet<String> {
    let tree = ModuleTree::new(files);
    let mut found = HashSet::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for (child, offset) in tree.children(file) {
            if file.is_test_code(offset) {
                tree.visit(child, &mut found);
            }
        }
    }
    found
}

/// Library code behind a test module, where nobody looks for it.
pub(crate) fn tests_last(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.is_rust() && !file.path.starts_with("tests/tests/"))
    {
        let library = file.library_code();
        let test_module = |offset: usize| file.is_test_code(offset) && !file.is_test_code(0);
        let bodies = file
            .modules()
            .into_iter()
            .filter(|module| test_module(module.offset));
        let Some(first) = bodies
            .filter_map(|module| module.body)
            .map(|body| body.start)
            .min()
        else {
            continue;
        };
        let rest = &library[first..];
        if !rest.trim().is_empty() {
            let offset = first + (rest.len() - rest.trim_start().len());
            found.push(format!(
                "{}: code behind the tests: move it above them",
                file.at(offset)
            ));
        }
    }
    found
}

pub(crate) fn top_level(files: &[File]) -> Vec<String> {
    let folders: HashSet<&str> = files
        .iter()
        .filter_map(|file| file.path.split_once('/'))
        .map(|(folder, _)| folder)
        .collect();
    let mut found: Vec<String> = folders
        .into_iter()
        .filter(|folder| !folder.starts_with('.') && !TOP_LEVEL.contains(folder))
        .map(|folder| {
            format!("{folder}/: no folder of the top level: it belongs into one of {TOP_LEVEL:?}")
        })
        .collect();
    found.sort();
    found
}

/// Whether cargo compiles the file as a crate of its own.
fn is_root(path: &str, crates: &[&str]) -> bool {
    let inside = |folder: &str| {
        path.strip_prefix(folder)
            .and_then(|rest| rest.strip_prefix('/'))
    };
    crates
        .iter()
        .filter_map(|folder| inside(folder))
        .any(|rest| {
            let parts: Vec<&str> = rest.split('/').collect();
            match parts[..] {
                ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
                ["src", "bin", file] | ["tests" | "benches" | "examples", file] => {
                    file.ends_with(".rs")
                }
                ["src", "bin", _, "main.rs"] | ["tests" | "benches" | "examples", _, "main.rs"] => {
                    true
                }
                _ => false,
            }
        })
}

/// Which file a `mod` leads to.
struct ModuleTree<'a> {
    by_path: HashMap<&'a str, &'a File>,
    /// The folders of all crates.
    crates: Vec<&'a str>,
}

impl<'a> ModuleTree<'a> {
    fn new(files: &'a [File]) -> Self {
        Self {
            by_path: files
                .iter()
                .map(|file| (file.path.as_str(), file))
                .collect(),
            crates: files
                .iter()
                .filter_map(|file| file.path.strip_suffix("/Cargo.toml"))
                .collect(),
        }
    }

    /// Whether the file lies where a crate keeps its modules.
    fn owns(&self, path: &str) -> bool {
        let inside = |folder: &str| ["src", "tests"].map(|part| format!("{folder}/{part}/"));
        self.crates
            .iter()
            .any(|folder| inside(folder).iter().any(|part| path.starts_with(part)))
    }

    /// Adds the file and all that its `mod` lines lead to.
    fn visit(&self, file: &File, seen: &mut HashSet<String>) {
        if seen.insert(file.path.clone()) {
            for (child, _) in self.children(file) {
                self.visit(child, seen);
            }
        }
    }

    /// The files that the `mod` lines of a file lead to, with the place of the line.
    fn children(&self, file: &File) -> Vec<(&'a File, usize)> {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let folder = match name {
            "mod.rs" => folder.to_string(),
            _ if is_root(&file.path, &self.crates) => folder.to_string(),
            _ => format!("{folder}/{}", name.trim_end_matches(".rs")),
        };
        let modules = file.modules();
        let mut found = Vec::new();
        for module in modules.iter().filter(|module| module.body.is_none()) {
            let surrounds = |outer: &&Module| {
                outer
                    .body
                    .as_ref()
                    .is_some_and(|body| body.contains(&module.offset))
            };
            let inner: String = modules
                .iter()
                .filter(surrounds)
                .map(|outer| format!("/{}", outer.name))
                .collect();
            let stem = format!("{folder}{inner}/{}", module.name);
            let places = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
            let files = places
                .iter()
                .filter_map(|place| self.by_path.get(place.as_str()));
            found.extend(files.map(|file| (*file, module.offset)));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::File;

    fn file(path: &str, text: &str) -> File {
        File::new(path, text)
    }

    #[test]
    fn a_file_that_no_mod_leads_to_is_found() {
        let files = [
            file("engine/Cargo.toml", ""),
            file(
                "engine/src/lib.rs",
                "mod edge; mod state { mod keyed; } // mod gone;",
            ),
            file("engine/src/edge.rs", "mod local;\n#[cfg(test)]\nmod tests;"),
            file("engine/src/edge/local.rs", ""),
            file("engine/src/edge/tests.rs", ""),
            file("engine/src/edge/remote.rs", ""),
            file("engine/src/state/keyed/mod.rs", "pub mod map;"),
            file("engine/src/state/keyed/map.rs", ""),
            file("engine/src/gone.rs", ""),
            file("engine/src/bin/ringway/main.rs", "mod run;"),
            file("engine/src/bin/ringway/run.rs", ""),
            file("engine/tests/a/main.rs", ""),
        ];
        let found = super::dead(&files);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("engine/src/edge/remote.rs")
                && found[1].starts_with("engine/src/gone.rs")
        );
    }

    #[test]
    fn a_file_behind_a_test_module_is_test_code() {
        let files = [
            file("engine/Cargo.toml", ""),
            file("engine/src/lib.rs", "mod a;\n#[cfg(test)]\nmod cases;"),
            file("engine/src/a.rs", ""),
            file("engine/src/cases.rs", "mod b;"),
            file("engine/src/cases/b.rs", ""),
        ];
        let mut found: Vec<_> = super::test_only(&files).into_iter().collect();
        found.sort();
        assert_eq!(found, ["engine/src/cases.rs", "engine/src/cases/b.rs"]);
    }

    #[test]
    fn code_behind_the_tests_is_found() {
        let found = |text: &str| super::tests_last(&[file("engine/src/a.rs", text)]).len();
        assert_eq!(
            found("fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\nfn c() {}"),
            1
        );
        assert_eq!(
            found("fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\n// c\n"),
            0
        );
        assert_eq!(found("#[cfg(test)]\nmod tests;\nfn a() {}"), 0);
        assert_eq!(
            found("fn a() {}\n#[cfg(test)]\nmod tests {}\n#[cfg(all(test, loom))]\nmod models {}"),
            0
        );
    }

    #[test]
    fn a_new_folder_at_the_root_is_found() {
        assert_eq!(
            super::top_level(&[
                file("sandbox/a.rs", ""),
                file("docs/A.md", ""),
                file("LICENSE", "")
            ])
            .len(),
            1
        );
    }
}
