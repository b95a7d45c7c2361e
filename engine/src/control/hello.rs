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
    /// Why a peer that says `peer` cannot be part of the same job, if so.
    pub fn mismatch(&self, peer: &Self) -> Option<String> {
        let (own, other) = (self.process, peer.process);
        if self.version != peer.version {
            return Some(format!(
                "process {own} is ringway {}, process {other} is ringway {}: run the same \
                 version in all processes",
                self.version, peer.version
            ));
        }
        if self.job != peer.job {
            return Some(format!(
                "process {own} runs the job `{}`, process {other} runs `{}`: give all processes \
                 the same job file",
                self.job, peer.job
            ));
        }
        if self.processes != peer.processes {
            return Some(format!(
                "process {own} is one of {}, process {other} is one of {}: give all processes \
                 the same hosts",
                self.processes, peer.processes
            ));
        }
        if self.attempt != peer.attempt {
            return Some(format!(
                "process {own} runs attempt {} of the job, process {other} attempt {}",
                self.attempt, peer.attempt
            ));
        }
        if self.plan != peer.plan {
            return Some(format!(
                "process {own} has the plan {:016x} of the job `{}`, process {other} has \
                 {:016x}: all processes need the same job file, input files and options",
                self.plan, self.job, peer.plan
            ));
        }
        let pair_of_leader = (own == 0) != (other == 0);
        if !pair_of_leader || other >= self.processes {
            return Some(format!(
                "process {own} was reached by one that says it is process {other} of {}: give \
                 each process a number of its own",
                self.processes
            ));
        }
        None
    }
}
