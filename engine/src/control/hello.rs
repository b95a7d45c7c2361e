//! Who a process is.

/// Who a process is: the first message of each side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The job's name.
    pub job: String,
    /// The version of the program.
    pub version: String,
    /// The hash of the plan.
    pub plan: u64,
    /// The attempt of the job.
    pub attempt: u32,
    /// The number of the process, from 0.
    pub process: u32,
    /// How many processes there are.
    pub processes: u32,
    /// Random, chosen by process 0 for each run; 0 from the others.
    pub run: u128,
    /// The port at which the process listens for data edges; 0 where none comes into it.
    pub data_port: u16,
}

impl Hello {
    /// Why a peer that says `peer` cannot be part of the same job, if so: the same words on both
    /// sides.
    pub fn mismatch(&self, peer: &Self) -> Option<String> {
        let (one, other) = match self.process <= peer.process {
            true => (self, peer),
            false => (peer, self),
        };
        let (a, b) = (one.process, other.process);
        if one.version != other.version {
            return Some(format!(
                "process {a} is ringway {}, process {b} is ringway {}: run the same version in \
                 all processes",
                one.version, other.version
            ));
        }
        if one.job != other.job {
            return Some(format!(
                "process {a} runs the job `{}`, process {b} runs `{}`: give all processes the \
                 same job file",
                one.job, other.job
            ));
        }
        if one.processes != other.processes {
            return Some(format!(
                "process {a} is one of {}, process {b} is one of {}: give all processes the \
                 same hosts",
                one.processes, other.processes
            ));
        }
        if one.attempt != other.attempt {
            return Some(format!(
                "process {a} runs attempt {} of the job, process {b} attempt {}",
                one.attempt, other.attempt
            ));
        }
        if one.plan != other.plan {
            return Some(format!(
                "process {a} has the plan {:016x} of the job `{}`, process {b} has {:016x}: all \
                 processes need the same job file, input files and options",
                one.plan, one.job, other.plan
            ));
        }
        let is_led = a == 0 && b != 0;
        if !is_led || b >= one.processes {
            return Some(format!(
                "process {a} and process {b} of {} cannot talk: process 0 leads the others, and \
                 each needs a number of its own",
                one.processes
            ));
        }
        None
    }
}
