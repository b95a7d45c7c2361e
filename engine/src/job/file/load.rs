//! From the text of a job file to the graph of the job.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use crate::connect::ConnectorStats;
use crate::job::{Graph, Plan, PlanError};

use super::document::{Document, under};
use super::error::{JobFileError, Place};
use super::inputs::{Section, declared, in_order};
use super::options::{JobOptions, Overrides, Subtasks};
use super::tree::Language;
use super::wiring::Wiring;
use super::{operators, sinks, sources};

/// A job as its file says it, checked as far as can be without running it.
pub struct LoadedJob {
    /// The graph.
    pub graph: Graph,
    /// What the file says of the job as a whole, and what was said instead of it.
    pub options: JobOptions,
    /// The sources, in the order of the file.
    pub sources: Vec<Connected>,
    /// The sinks, each behind what it takes.
    pub sinks: Vec<Connected>,
    /// The streams that have a name, with their columns, each behind those that it is made of.
    pub streams: Vec<(String, SchemaRef)>,
    /// What the user should know.
    pub warnings: Vec<String>,
    file: Option<PathBuf>,
    /// Where each source, operator and sink stands.
    places: BTreeMap<String, Place>,
}

/// A source or sink of a loaded job, with the counters that it keeps while the job runs.
#[derive(Clone, Debug)]
pub struct Connected {
    /// Its name.
    pub name: String,
    /// Its connector.
    pub connector: String,
    /// What it reads or where it writes, for people.
    pub describes: String,
    /// Bytes that each of its subtasks may hold beside the worker.
    pub memory_bytes: usize,
    /// What it has read or written.
    pub stats: ConnectorStats,
}

/// The largest job file: a job of thousands of operators is a tenth of it.
const TEXT_BYTES_MAX: u64 = 16 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Top {
    name: Option<String>,
    #[serde(default)]
    job: JobOptions,
}

impl LoadedJob {
    /// Loads the job file `path`: JSON if its name ends in `.json`, TOML if it ends in `.toml`.
    /// Relative paths in it begin at its folder.
    ///
    /// Files that sources name are listed, and their headers read; nothing is written.
    ///
    /// # Errors
    /// When the file cannot be read, or the job in it cannot be run. The error names file,
    /// line and key.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, JobFileError> {
        let refuse = |message: String| JobFileError::new(Place::default(), message).in_file(path);
        let language = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Language::Toml,
            Some("json") => Language::Json,
            _ => {
                let message = "is it TOML or JSON? Name it so that it ends in .toml or .json";
                return Err(refuse(message.to_owned()));
            }
        };
        let size = std::fs::metadata(path)
            .map_err(|error| refuse(error.to_string()))?
            .len();
        if size > TEXT_BYTES_MAX {
            return Err(refuse(format!(
                "{size} bytes are no job file (16 MiB at most)"
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        let base = path.parent().unwrap_or(Path::new(""));
        let job = Self::parse(&text, language, base, overrides);
        let job = job.map_err(|error| error.in_file(path))?;
        Ok(Self {
            file: Some(path.to_owned()),
            ..job
        })
    }

    /// The job in the text of a job file. Relative paths in it begin at `base`.
    ///
    /// # Errors
    /// As for [`LoadedJob::load`], without the file's name.
    pub fn parse(
        text: &str,
        language: Language,
        base: &Path,
        overrides: &Overrides,
    ) -> Result<Self, JobFileError> {
        let document = Document::parse(text, language, base)?;
        let sections = ["sources", "operators", "sinks"];
        let top: Top = document.read(&[], &document.root.without(&sections), &sections)?;
        let mut options = top.job;
        if let Some(parallelism) = overrides.parallelism {
            options.parallelism = Some(Subtasks(parallelism));
        }
        options.transport = overrides.transport.or(options.transport);
        let declared = declared(&document)?;
        let consumers = in_order(&document, &declared)?;
        let graph = Graph::new(top.name.unwrap_or_else(|| "job".to_owned()));
        let mut wiring = Wiring::new(&document, graph, options.parallelism(), &consumers);
        wiring.graph.note(text.as_bytes());
        wiring.spill_dir = spill_dir(&document, &options)?;
        let (mut source_list, mut sink_list) = (Vec::new(), Vec::new());
        for this in declared
            .iter()
            .filter(|this| this.section == Section::Sources)
        {
            source_list.push(sources::add(&mut wiring, this)?);
        }
        if source_list.is_empty() {
            return Err(document.error(&[], "the job has no source: add a table `sources.NAME`"));
        }
        for consumer in &consumers {
            match consumer.declared.section {
                Section::Sinks => sink_list.push(sinks::add(&mut wiring, consumer)?),
                _ => operators::add(&mut wiring, consumer)?,
            }
        }
        wiring.claims.check(&document)?;
        let untaken = wiring.untaken().into_iter();
        let warnings = untaken
            .map(|name| format!("nothing takes `{name}`: its rows are discarded"))
            .collect();
        let streams = wiring.schemas();
        Ok(Self {
            streams,
            graph: wiring.graph,
            options,
            sources: source_list,
            sinks: sink_list,
            warnings,
            file: None,
            places: declared
                .iter()
                .map(|this| (this.name.to_owned(), document.place(&this.path(&[]))))
                .collect(),
        })
    }

    /// Plans the job on `workers`, each with the CPU it is pinned to, if any. The graph moves
    /// into the plan.
    ///
    /// # Errors
    /// When it cannot be planned. The error names file, line and key, unless it is about the
    /// job as a whole.
    pub fn plan(&mut self, workers: Vec<Option<usize>>) -> Result<Plan, JobFileError> {
        self.plan_for(workers, 1)
    }

    /// As [`LoadedJob::plan`], for `processes` processes, of which this is one and has
    /// `workers`.
    ///
    /// # Errors
    /// As for `plan`.
    pub fn plan_for(
        &mut self,
        workers: Vec<Option<usize>>,
        processes: usize,
    ) -> Result<Plan, JobFileError> {
        let graph = std::mem::take(&mut self.graph);
        let options = self.options.plan_options(workers, processes);
        Plan::new(graph, &options).map_err(|error| {
            let place = match &error {
                PlanError::ForwardMismatch { to: name, .. }
                | PlanError::Memory { to: name, .. }
                | PlanError::NoCodec { to: name, .. }
                | PlanError::LocalBetween { to: name, .. }
                | PlanError::NothingBetween { to: name, .. }
                | PlanError::NoProcess { name, .. }
                | PlanError::NeverEnds { name, .. }
                | PlanError::BlockingBetween { name }
                | PlanError::TooManyInputs { name, .. }
                | PlanError::DuplicateUid { second: name, .. } => {
                    let owner = name
                        .split_once('.')
                        .map_or(name.as_str(), |(owner, _)| owner);
                    self.places.get(owner)
                }
                _ => None,
            };
            let error = JobFileError::new(place.cloned().unwrap_or_default(), error.to_string());
            match &self.file {
                Some(file) => error.in_file(file),
                None => error,
            }
        })
    }
}

/// Where what is spilled goes, if the job says so. That no stage needs it yet is no reason to
/// learn only after the first one that it is not there.
fn spill_dir(document: &Document, options: &JobOptions) -> Result<Option<PathBuf>, JobFileError> {
    let Some(dir) = &options.spill_dir else {
        return Ok(None);
    };
    let dir = document.base.join(dir);
    if dir.is_dir() {
        return Ok(Some(dir));
    }
    let message = format!("there is no folder {}: create it first", dir.display());
    Err(document.error(&under(&[], &["job", "spill_dir"]), message))
}

impl fmt::Debug for LoadedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedJob")
            .field("name", &self.graph.name)
            .field("options", &self.options)
            .field("sources", &self.sources)
            .field("sinks", &self.sinks)
            .finish_non_exhaustive()
    }
}
