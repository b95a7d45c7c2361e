//! The input of a source whose files were there when its job was planned.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::connect::saved::Saved;
use crate::connect::side::reader::{Note, ReadJob, ReadOutput, Stop};
use crate::connect::side::source::Input;
use crate::connect::{ConnectError, ConnectorStats, ListedFile, Part, Position, SplitFormat};

use super::listed::FileId;
use super::split::{Split, is_assigned};

/// The files of a source that reads splits.
#[derive(Clone)]
pub struct SplitInput {
    /// Knows the files' format.
    pub format: Arc<dyn SplitFormat>,
    /// The files of the source.
    pub files: Arc<[ListedFile]>,
    /// The splits of the source, in their order: those of all subtasks.
    pub splits: Arc<[Split]>,
    /// Where to count.
    pub stats: ConnectorStats,
}

/// Of which splits of a source a subtask reads what.
pub(crate) struct PlannedInput {
    input: SplitInput,
    /// The subtask's index, and how many there are.
    place: (u32, u32),
    /// What a checkpoint says of each file, with its fingerprint.
    files: Vec<(FileId, u64)>,
    /// The splits of the subtask that were not read to their end when it started.
    left: Vec<Left>,
    /// How many of these were read to their end since.
    done: usize,
}

/// A split that is to be read, by its number of all of them, and what of it was read before.
#[derive(Clone, Copy)]
struct Left {
    number: usize,
    from: Position,
}

/// What is saved of it: splits by what they are, so that they are known again whatever the plan
/// makes of the files then.
#[derive(Serialize, Deserialize)]
struct SavedSplits {
    /// The fingerprints of all files of the source.
    files: Vec<u64>,
    left: Vec<SavedSplit>,
}

#[derive(Serialize, Deserialize)]
struct SavedSplit {
    file: FileId,
    part: Part,
    read: Position,
}

impl PlannedInput {
    pub(crate) fn new(input: SplitInput) -> Self {
        // Once, and not at each checkpoint: there may be many files.
        let identify = |listed: &ListedFile| {
            let id = listed.id();
            let fingerprint = id.fingerprint();
            (id, fingerprint)
        };
        Self {
            files: input.files.iter().map(identify).collect(),
            input,
            place: (0, 1),
            left: Vec::new(),
            done: 0,
        }
    }

    fn splits_left(&self) -> &[Left] {
        &self.left[self.done..]
    }

    /// Makes sure that there is no file that was not there when `saved` was.
    fn require_same_files(&self, saved: &[Saved<SavedSplits>]) -> Result<(), ConnectError> {
        let Some(first) = saved.first() else {
            return Ok(());
        };
        let known: HashSet<u64> = first.value.files.iter().copied().collect();
        let new = self
            .files
            .iter()
            .position(|(_, print)| !known.contains(print));
        match new {
            Some(file) => Err(changed(&self.input.files[file].path)),
            None => Ok(()),
        }
    }
}

/// Finds the splits of a plan by what a checkpoint says of them.
struct Known<'a> {
    files: HashMap<PathBuf, (usize, &'a FileId)>,
    numbers: HashMap<(usize, Part), usize>,
}

impl<'a> Known<'a> {
    fn of(input: &'a PlannedInput) -> Self {
        let files = input.files.iter().enumerate();
        let splits = input.input.splits.iter().enumerate();
        Self {
            files: files
                .map(|(file, (id, _))| (id.path(), (file, id)))
                .collect(),
            numbers: splits
                .map(|(number, split)| ((split.file, split.part), number))
                .collect(),
        }
    }

    /// The number of the split that was saved as `saved`.
    fn number_of(&self, saved: &SavedSplit) -> Result<usize, ConnectError> {
        let path = saved.file.path();
        let Some((file, id)) = self.files.get(&path) else {
            let reason = "was not read to its end, and is not among the files of this source any \
                          more: put it back, or start the job anew";
            return Err(ConnectError::file(&path, reason));
        };
        if **id != saved.file {
            return Err(changed(&path));
        }
        let number = self.numbers.get(&(*file, saved.part)).copied();
        number.ok_or_else(|| {
            let reason = "is not cut into the splits that it was cut into when the checkpoint was \
                          made: give the options that the job had then";
            ConnectError::file(&path, reason)
        })
    }
}

impl Input for PlannedInput {
    fn open(&mut self, index: u32, parallelism: u32) {
        self.place = (index, parallelism);
        let numbers = 0..self.input.splits.len();
        let own = numbers.filter(|number| is_assigned(*number, index, parallelism));
        let from = Position::Start;
        self.left = own.map(|number| Left { number, from }).collect();
    }

    fn restore(&mut self, saved: Vec<Saved<Value>>) -> Result<(), ConnectError> {
        let saved = saved.into_iter().map(Saved::read);
        let saved: Vec<Saved<SavedSplits>> = saved.collect::<Result<_, _>>()?;
        let known = Known::of(self);
        let mut left = Vec::new();
        for split in saved.iter().flat_map(|saved| &saved.value.left) {
            let (number, from) = (known.number_of(split)?, split.read);
            if is_assigned(number, self.place.0, self.place.1) {
                left.push(Left { number, from });
            }
        }
        self.require_same_files(&saved)?;
        left.sort_by_key(|left| left.number);
        self.left = left;
        self.input.format.resume();
        Ok(())
    }

    fn splits(&self) -> Vec<Split> {
        let left = self.splits_left().iter();
        left.map(|left| self.input.splits[left.number].clone())
            .collect()
    }

    fn job(&mut self) -> Option<Box<dyn ReadJob>> {
        let left = self.splits_left().to_vec();
        let input = self.input.clone();
        (!left.is_empty()).then(|| Box::new(PlannedJob { input, left }) as Box<dyn ReadJob>)
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Reached(split, position) => self.left[split].from = position,
            Note::Done(split) => self.done = split + 1,
            Note::Came(_) | Note::Left(_) => unreachable!("no file comes or goes"),
        }
    }

    fn save(&self) -> Value {
        let saved = |left: &Left| {
            let split = &self.input.splits[left.number];
            SavedSplit {
                file: self.files[split.file].0.clone(),
                part: split.part,
                read: left.from,
            }
        };
        let saved = SavedSplits {
            files: self.files.iter().map(|(_, print)| *print).collect(),
            left: self.splits_left().iter().map(saved).collect(),
        };
        saved_value(&saved)
    }
}

/// Reads splits, one after the other.
struct PlannedJob {
    input: SplitInput,
    left: Vec<Left>,
}

impl ReadJob for PlannedJob {
    fn run(&mut self, out: &mut ReadOutput<'_>) -> Result<(), Stop> {
        for (index, left) in self.left.iter().enumerate() {
            let split = &self.input.splits[left.number];
            let listed = &self.input.files[split.file];
            out.read_split(index, &*self.input.format, split, left.from, listed)?;
            // What was read to its end may still be gone, or not what others read under its name.
            listed.check_place()?;
            out.note(Note::Done(index))?;
        }
        Ok(())
    }
}

/// What a source saves as a value: numbers and text, which always can be.
pub(crate) fn saved_value(saved: &impl Serialize) -> Value {
    serde_json::to_value(saved).unwrap_or_default()
}

fn changed(path: &Path) -> ConnectError {
    let reason = "the file has come or changed since the checkpoint was made: a job goes on with the \
                  files that it had; take it away or put the old one back, or start the job anew";
    ConnectError::file(path, reason)
}
