//! How long things may be: short enough that a reader holds one in mind.

use crate::tree::File;

/// Lines of a file, its tests included.
const FILE_LINES_MAX: usize = 800;
/// Lines of a function, from `fn` to the closing brace.
const FUNCTION_LINES_MAX: usize = 70;
/// Characters of a line, in Rust and in scripts.
const LINE_WIDTH_MAX: usize = 110;
/// Half of the Rust files are to be no longer than this.
const FILE_LINES_MEDIAN_MAX: usize = 250;

pub(crate) fn files(files: &[File]) -> Vec<String> {
    let long = |file: &&File| file.text.lines().count() > FILE_LINES_MAX;
    sources(files)
        .filter(long)
        .map(|file| {
            let lines = file.text.lines().count();
            format!(
                "{}: {lines} lines, at most {FILE_LINES_MAX}: give its second concept a file",
                file.path
            )
        })
        .collect()
}

pub(crate) fn functions(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        for function in file.functions() {
            if function.lines > FUNCTION_LINES_MAX {
                found.push(format!(
                    "{}: fn {} has {} lines, at most {FUNCTION_LINES_MAX}: name a part of it",
                    file.at(function.offset),
                    function.name,
                    function.lines
                ));
            }
        }
    }
    found
}

pub(crate) fn lines(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in sources(files) {
        for (index, line) in file.text.lines().enumerate() {
            let width = line.chars().count();
            if width > LINE_WIDTH_MAX {
                let place = format!("{}:{}", file.path, index + 1);
                found.push(format!(
                    "{place}: {width} columns, at most {LINE_WIDTH_MAX}: break the line"
                ));
            }
        }
    }
    found
}

/// Prints the median, which is worth knowing before it is too large.
pub(crate) fn median(files: &[File]) -> Vec<String> {
    let mut lengths: Vec<usize> = files
        .iter()
        .filter(|file| file.is_rust())
        .map(|file| file.text.lines().count())
        .collect();
    lengths.sort_unstable();
    let Some(median) = lengths.get(lengths.len() / 2) else {
        return Vec::new();
    };
    println!("{} Rust files, median length {median} lines", lengths.len());
    if *median > FILE_LINES_MEDIAN_MAX {
        return vec![format!(
            "the median length of files is {median} lines, at most {FILE_LINES_MEDIAN_MAX}"
        )];
    }
    Vec::new()
}

fn sources(files: &[File]) -> impl Iterator<Item = &File> {
    files
        .iter()
        .filter(|file| file.is_rust() || file.is_script())
}

#[cfg(test)]
mod tests {
    use super::{FILE_LINES_MAX, FILE_LINES_MEDIAN_MAX, FUNCTION_LINES_MAX, LINE_WIDTH_MAX};
    use crate::tree::File;

    fn with(text: String) -> Vec<File> {
        vec![File::new("engine/src/a.rs", &text)]
    }

    #[test]
    fn a_file_at_the_limit_passes_and_one_line_more_does_not() {
        assert!(super::files(&with("//\n".repeat(FILE_LINES_MAX))).is_empty());
        assert_eq!(
            super::files(&with("//\n".repeat(FILE_LINES_MAX + 1))).len(),
            1
        );
        assert_eq!(
            super::median(&with("//\n".repeat(FILE_LINES_MEDIAN_MAX + 1))).len(),
            1
        );
    }

    #[test]
    fn a_function_at_the_limit_passes_and_one_line_more_does_not() {
        let function = |lines: usize| format!("fn a() {{\n{}}}\n", "    // }\n".repeat(lines - 2));
        assert!(super::functions(&with(function(FUNCTION_LINES_MAX))).is_empty());
        assert_eq!(
            super::functions(&with(function(FUNCTION_LINES_MAX + 1))).len(),
            1
        );
    }

    #[test]
    fn a_line_at_the_limit_passes_and_one_column_more_does_not() {
        assert!(super::lines(&with("é".repeat(LINE_WIDTH_MAX))).is_empty());
        assert_eq!(super::lines(&with("é".repeat(LINE_WIDTH_MAX + 1))).len(), 1);
    }
}
