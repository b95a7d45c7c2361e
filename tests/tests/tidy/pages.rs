//! Markdown pages have one title, and their links inside the repository lead somewhere.

use std::collections::HashSet;

use crate::tree::File;

pub(crate) fn titles(files: &[File]) -> Vec<String> {
    pages(files)
        .filter_map(|file| {
            let titles = prose(&file.text)
                .filter(|(_, line)| line.starts_with("# "))
                .count();
            (titles != 1).then(|| format!("{}: {titles} titles (`# `), a page has one", file.path))
        })
        .collect()
}

pub(crate) fn links(files: &[File]) -> Vec<String> {
    let mut known: HashSet<String> = HashSet::new();
    for file in files {
        known.insert(file.path.clone());
        known.extend(
            file.path
                .match_indices('/')
                .map(|(end, _)| file.path[..end].to_string()),
        );
    }
    let mut found = Vec::new();
    for file in pages(files) {
        for (number, line) in prose(&file.text) {
            for target in targets(line) {
                let path = resolve(&file.path, target);
                if !known.contains(&path) && !exists(&path) {
                    found.push(format!(
                        "{}:{number}: link to {target}: there is no {path}",
                        file.path
                    ));
                }
            }
        }
    }
    found
}

fn pages(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| file.path.ends_with(".md"))
}

/// The numbered lines outside fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}

/// The targets of `[text](target)` that mean a place in the repository, without what follows `#`.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("](") {
        let rest = &line[at + 2..];
        let target = rest.split([')', ' ', '#']).next().unwrap_or("");
        if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
            found.push(target);
        }
    }
    found
}

/// The path from the root of what a page links to.
fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Files that are no text are not among those read.
fn exists(path: &str) -> bool {
    crate::tree::root().join(path).exists()
}

#[cfg(test)]
mod tests {
    use crate::tree::File;

    #[test]
    fn a_page_has_exactly_one_title() {
        let found = |text: &str| super::titles(&[File::new("docs/A.md", text)]).len();
        assert_eq!(found("# A\n## B\n```sh\n# a comment\n```\n"), 0);
        assert_eq!(found("# A\n# B\n"), 1);
        assert_eq!(found("## A\n"), 1);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let files = |link: &str| {
            [
                File::new("docs/decisions/a.md", &format!("# A\nsee [b]({link})")),
                File::new("docs/B.md", "# B"),
            ]
        };
        for good in [
            "../B.md",
            "../B.md#part",
            "https://b.example/x",
            "#part",
            "../decisions",
            "./a.md",
        ] {
            assert!(super::links(&files(good)).is_empty(), "{good}");
        }
        for bad in ["B.md", "../canary.md#part"] {
            assert_eq!(super::links(&files(bad)).len(), 1, "{bad}");
        }
    }
}
