//! A page whose fenced blocks are jobs, input and results.
//!
//! What stands behind the language of a block says what it is:
//!
//! - `toml`: a job that is run; `toml plan`: one that is only planned
//! - `file=NAME`: input, which is there before any job runs; `stdin` is standard input
//! - `result=NAME`: what the jobs before it wrote there; `stdout` is standard output
//! - `rows=NAME`: the same, in any order

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A page of `docs`.
pub(crate) struct Page {
    path: String,
    blocks: Vec<Block>,
}

struct Block {
    /// The line of the page, from 1.
    line: usize,
    kind: Kind,
    text: String,
}

enum Kind {
    Job { is_run: bool },
    File(String),
    Result { name: String, in_order: bool },
    Shown,
}

/// Where the pages are.
pub(crate) fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

impl Page {
    /// The page at `path`, from `docs` on.
    pub(crate) fn read(path: &str) -> Self {
        let text = fs::read_to_string(docs().join(path)).expect("there is such a page");
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (index, line) in text.lines().enumerate() {
            match (line.strip_prefix("```"), &mut open) {
                (Some(info), None) => {
                    open = Some(Block {
                        line: index + 1,
                        kind: Kind::of(info),
                        text: String::new(),
                    });
                }
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (None, Some(block)) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        let path = path.to_owned();
        Self { path, blocks }
    }

    /// Runs the jobs in a folder of their own, beside the example data, and compares what they
    /// wrote.
    pub(crate) fn run(&self) {
        let folder = tempfile::tempdir().expect("a folder for the example");
        let data = docs().join("examples/data").canonicalize();
        symlink(
            data.expect("there are examples"),
            folder.path().join("data"),
        )
        .unwrap();
        for block in &self.blocks {
            if let Kind::File(name) = &block.kind {
                fs::write(folder.path().join(name), &block.text).unwrap();
            }
        }
        let mut jobs = 0;
        let mut printed = String::new();
        for block in &self.blocks {
            let place = format!("docs/{}:{}", self.path, block.line);
            match &block.kind {
                Kind::Job { is_run } => {
                    let name = format!("job{}.toml", block.line);
                    fs::write(folder.path().join(&name), &block.text).unwrap();
                    printed = ringway(folder.path(), *is_run, &name, &place);
                    jobs += 1;
                }
                Kind::Result { name, in_order } => {
                    let written = match &name[..] {
                        "stdout" => printed.clone(),
                        name => fs::read_to_string(folder.path().join(name)).unwrap_or_default(),
                    };
                    let lines = |text: &str| {
                        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
                        if !in_order {
                            lines.sort();
                        }
                        lines
                    };
                    assert_eq!(lines(&written), lines(&block.text), "{place}");
                }
                Kind::File(_) | Kind::Shown => {}
            }
        }
        assert!(jobs > 0, "docs/{} has an example", self.path);
    }
}

impl Kind {
    fn of(info: &str) -> Self {
        let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
        if language == "toml" {
            return Self::Job {
                is_run: rest != "plan",
            };
        }
        match rest.split_once('=') {
            Some(("file", name)) => Self::File(name.to_owned()),
            Some((kind @ ("result" | "rows"), name)) => Self::Result {
                name: name.to_owned(),
                in_order: kind == "result",
            },
            _ => Self::Shown,
        }
    }
}

/// Runs or plans the job `name` in `folder`, and returns what it printed.
fn ringway(folder: &Path, is_run: bool, name: &str, place: &str) -> String {
    let command = match is_run {
        true => &["run", "--quiet"][..],
        false => &["check"],
    };
    let mut command_line = Command::new(env!("CARGO_BIN_EXE_ringway"));
    command_line.args(command).arg(name).current_dir(folder);
    let inherited = std::env::vars().filter(|(name, _)| name.starts_with("RINGWAY_"));
    for (name, _) in inherited {
        command_line.env_remove(name);
    }
    let mut child = command_line
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    if let (Some(mut stdin), Ok(input)) = (child.stdin.take(), fs::read(folder.join("stdin"))) {
        stdin.write_all(&input).expect("the job reads its input");
    }
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{place}: {errors}");
    String::from_utf8(output.stdout).expect("it prints text")
}
