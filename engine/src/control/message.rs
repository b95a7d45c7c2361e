//! What processes of a job tell each other.

use std::fmt;

use crate::element::Barrier;

use super::Hello;

/// What processes of a job tell each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Who this process is; the first message of each side.
    Hello(Hello),
    /// The other side cannot be part of the job. Nothing follows.
    Refused(String),
    /// This process is there.
    Heartbeat,
    /// From process 0: all processes are there. Make and open everything. Where each process
    /// listens for data edges, in their order.
    Open(Vec<String>),
    /// To process 0: everything of this process is open.
    Opened,
    /// From process 0: everything is open everywhere. Run.
    Start,
    /// To process 0: somebody asks the job to stop in order. From process 0: stop.
    Stop(StopWay),
    /// To process 0: somebody cancels the job. From process 0: cancel.
    Cancel(CancelCause),
    /// To process 0: something failed here.
    Failure(Fault),
    /// To process 0: all tasks of this process are over; what they report, as the process
    /// encodes it.
    Finished(ProcessEnd, Vec<u8>),
    /// From process 0: how the job ended. Nothing follows.
    Over(JobEnd),
    /// From process 0: what do your tasks report now?
    ReportWanted,
    /// To process 0: what the tasks report now.
    Report(Vec<u8>),
    /// From process 0: a checkpoint begins at the sources.
    Trigger(Barrier),
    /// To process 0: the tasks of this process have their part of a checkpoint, or cannot.
    Acknowledge {
        /// The checkpoint.
        id: u64,
        /// Whether the part is there and durable.
        taken: bool,
        /// What the checkpoint is to know of it.
        part: Vec<u8>,
    },
    /// From process 0: a checkpoint was given up.
    Abort(u64),
    /// From process 0: a checkpoint is decided; sinks commit.
    Commit(u64),
    /// To process 0: the sinks of this process have committed.
    Committed(u64),
}

/// How the sources of a job stop. The numbers are those of the wire, as for the enums below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopWay {
    /// As if their input had ended.
    End = 0,
    /// Without an end: nothing is final.
    Stop = 1,
}

/// Why a job is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelCause {
    /// Whoever runs it said so.
    Asked = 0,
    /// Ctrl-C (SIGINT).
    Interrupt = 1,
    /// SIGTERM.
    Terminate = 2,
    /// Something failed; the outcome of the job says what.
    Failure = 3,
}

/// Something that failed in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// In which process.
    pub process: u32,
    /// Whether it began there, and not at the other end of an edge.
    pub is_cause: bool,
    /// What happened.
    pub message: String,
}

/// How the tasks of a process ended, all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// All of them ended.
    Ended = 0,
    /// Some were stopped in order, the others ended.
    Stopped = 1,
    /// Some were cancelled.
    Cancelled = 2,
    /// Some failed, or did not stop; [`Message::Failure`] has said what.
    Failed = 3,
}

/// How a job ended, in all processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// All input was processed.
    Ended,
    /// It was stopped in order.
    Stopped,
    /// It was cancelled.
    Cancelled(CancelCause),
    /// It failed.
    Failed(Fault),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}: {}", self.process, self.message)
    }
}
