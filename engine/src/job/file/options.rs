//! The options of a job as a whole: the table `job`.

use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use crate::data_plane::TransportChoice;
use crate::job::PlanOptions;
use crate::partition::Parallelism;
use crate::placement::Cores;
use crate::worker::{HostKind, IdlePolicy};

use super::units::Size;

/// The table `job` of a job file. What is absent takes its default where the job is planned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobOptions {
    /// Subtasks of whatever does not say itself; 1 to 128. Default 1.
    pub parallelism: Option<Subtasks>,
    /// The cores to run on, a worker on each. Default `"auto"`: all that the process may use.
    #[serde(deserialize_with = "cores")]
    pub cores: Option<Cores>,
    /// What a worker does when there is nothing to do. Default `"adaptive"`.
    #[serde(deserialize_with = "parsed")]
    pub idle: Option<IdlePolicy>,
    /// What hosts the workers. Default `"thread"`.
    #[serde(deserialize_with = "parsed")]
    pub host: Option<HostKind>,
    /// Data elements in flight at most on an edge that does not say itself. Default 1024.
    pub edge_capacity: Option<Capacity>,
    /// Bytes in flight at most on an edge that does not say itself. Default `"64MiB"`, or the
    /// edge's share of `memory_max` where that is less.
    pub edge_bytes_max: Option<Size>,
    /// Bytes that all edges together may hold. Default `"4GiB"`; the command takes half
    /// of the memory of the machine or the cgroup instead.
    pub memory_max: Option<Size>,
    /// Whether operators without a repartition between them run as one task. Default true.
    pub chaining: Option<bool>,
    /// What carries edges between processes that do not say themselves: `"auto"`, `"local"`,
    /// `"shared"` or `"socket"`. Default `"auto"`: shared memory where both processes are on one
    /// host, else sockets.
    #[serde(deserialize_with = "parsed")]
    pub transport: Option<TransportChoice>,
    /// The folder in which `blocking` and `sort` make folders of their own for what they spill.
    /// Default: the system's folder for such files.
    pub spill_dir: Option<PathBuf>,
}

/// What is said elsewhere, such as on the command line, and goes before the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Instead of `job.parallelism`.
    pub parallelism: Option<Parallelism>,
    /// Instead of `job.transport`.
    pub transport: Option<TransportChoice>,
}

/// How many subtasks something has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub struct Subtasks(pub Parallelism);

/// What carries the edges of one stream between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct TransportName(pub(super) TransportChoice);

/// How many data elements an edge may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
pub struct Capacity(usize);

/// The most data elements that an edge may be made for: its slots are allocated ahead.
const CAPACITY_ELEMENTS_MAX: usize = 1 << 20;

impl JobOptions {
    /// Subtasks of whatever does not say itself.
    pub fn parallelism(&self) -> Parallelism {
        self.parallelism
            .map_or(Parallelism::ONE, |subtasks| subtasks.0)
    }

    /// How to plan the job on `workers`, each with the CPU it is pinned to, if any, in so many
    /// processes.
    pub fn plan_options(&self, workers: Vec<Option<usize>>, processes: usize) -> PlanOptions {
        let default = PlanOptions::default();
        let memory_max = self.memory_max.map(|size| size.bytes() as u64);
        PlanOptions {
            parallelism: self.parallelism(),
            workers,
            processes,
            capacity_elements: self
                .edge_capacity
                .map_or(default.capacity_elements, Capacity::elements),
            edge_bytes_max: self.edge_bytes_max.map(Size::bytes),
            memory_max_bytes: memory_max.unwrap_or(default.memory_max_bytes),
            chaining: self.chaining.unwrap_or(default.chaining),
            transport: self.transport.unwrap_or(default.transport),
        }
    }
}

impl Capacity {
    /// In data elements.
    pub const fn elements(self) -> usize {
        self.0
    }
}

impl TryFrom<u32> for Subtasks {
    type Error = String;

    fn try_from(subtasks: u32) -> Result<Self, String> {
        Parallelism::new(subtasks)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

impl TryFrom<String> for TransportName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse().map(Self)
    }
}

impl TryFrom<u64> for Capacity {
    type Error = String;

    fn try_from(elements: u64) -> Result<Self, String> {
        let fits = usize::try_from(elements)
            .ok()
            .filter(|elements| (1..=CAPACITY_ELEMENTS_MAX).contains(elements));
        fits.map(Self).ok_or_else(|| {
            format!("an edge holds 1 to {CAPACITY_ELEMENTS_MAX} elements, not {elements}")
        })
    }
}

fn cores<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cores>, D::Error> {
    deserializer.deserialize_any(CoresVisitor).map(Some)
}

fn parsed<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = String>,
{
    let name = String::deserialize(deserializer)?;
    name.parse().map(Some).map_err(de::Error::custom)
}

struct CoresVisitor;

impl Visitor<'_> for CoresVisitor {
    type Value = Cores;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("\"auto\", a number of cores, or a list of CPUs such as \"0,2-3\"")
    }

    fn visit_i64<E: de::Error>(self, workers: i64) -> Result<Cores, E> {
        match usize::try_from(workers) {
            Ok(workers) if workers > 0 => Ok(Cores::Count(workers)),
            _ => Err(E::custom("a job runs on at least 1 core")),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Cores, E> {
        text.parse().map_err(E::custom)
    }
}
