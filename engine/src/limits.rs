//! Every maximum and default size, with its unit in the name and the reason beside it.

use std::time::Duration;

/// Elements that a local edge holds: deep enough that both cores run without meeting.
pub const EDGE_CAPACITY_ELEMENTS: usize = 1024;

/// Elements that a receive side which is fed by a peer holds.
pub const RECEIVE_CAPACITY_ELEMENTS: usize = 256;

/// Bytes that may be in flight on one edge, whatever the number of elements.
pub const EDGE_BYTES_MAX: usize = 64 << 20;

/// Bytes in flight that every edge is given at least, however many share the job's memory:
/// one batch of ordinary size must fit.
pub const EDGE_BYTES_MIN: usize = 256 << 10;

/// Control elements that may wait where data has no room: they are exempt from the bounds
/// on data, not from a bound.
pub const CONTROL_ELEMENTS_MAX: usize = 256;

/// After this time a push or pop that cannot go on is reported once as stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(3);

/// Elements that an awaited half pushes or takes before it lets the other tasks of its
/// executor run, though it need not wait: few enough that they wait for microseconds only.
pub const ASYNC_TURN_ELEMENTS: u32 = 128;

/// Bytes that one step may leave in all outboxes of a task before the step ends.
pub const OUTBOX_BYTES_MAX: usize = 1 << 20;

/// Batches that one step may leave in an outbox before the step ends.
pub const OUTBOX_BATCHES_MAX: usize = 64;

/// Elements that a task takes from its gate in one step, so that tasks share a core fairly.
pub const STEP_ELEMENTS_MAX: usize = 64;

/// Time after which a task's step ends even if there is more to take.
pub const STEP_TIME_MAX: Duration = Duration::from_micros(500);

/// Rows of a batch that a source or a batcher builds.
pub const BATCH_ROWS: usize = 8192;

/// Rows of a batch that a source may never exceed: a claimed count beyond it is refused.
pub const BATCH_ROWS_MAX: usize = 1 << 24;

/// Rows of a batch that an edge over a connection takes: more can only be rows without columns,
/// and would be sent in pieces without end.
pub const WIRE_BATCH_ROWS_MAX: usize = u32::MAX as usize;

/// Key groups: the unit in which keyed state is spread over subtasks.
pub const KEY_GROUPS: u32 = 128;

/// Subtasks of one operator: a subtask without a key group would be idle for ever.
pub const PARALLELISM_MAX: u32 = KEY_GROUPS;

/// Inputs of one gate.
pub const GATE_INPUTS_MAX: usize = 65_536;

/// Aligned checkpoints that a gate tracks at once.
pub const PENDING_BARRIERS_MAX: usize = 64;

/// Ids of completed or aborted checkpoints that a gate remembers above its floor.
pub const DEAD_BARRIERS_MAX: usize = 1024;

/// Time that an idle worker spins before it parks.
pub const SPIN_BEFORE_PARK: Duration = Duration::from_micros(50);

/// The longest time that a worker parks, so that timers and lost wakes are bounded.
pub const PARK_TIME_MAX: Duration = Duration::from_millis(100);

/// Types within types of a schema that comes from outside: every walk over it is a recursion,
/// and must not use up a stack.
pub const NESTING_MAX: usize = 64;

/// Fields of a schema that comes from outside, at any depth: the widest tables that people
/// have are a tenth of this.
pub const IPC_FIELDS_MAX: usize = 65_536;

/// Bytes of the metadata of an Arrow IPC message: room for a schema of as many fields as are
/// allowed, each with a long name. It also bounds the buffers of a batch (16 bytes each).
pub const IPC_METADATA_BYTES_MAX: usize = 16 << 20;

/// Bytes of the body of an Arrow IPC message, and what the buffers of a compressed one expand
/// to together: as much as an edge may hold.
pub const IPC_BODY_BYTES_MAX: usize = EDGE_BYTES_MAX;

/// Bytes of all dictionaries of an Arrow IPC stream, which stay in memory to its end.
pub const IPC_DICTIONARY_BYTES_MAX: usize = IPC_BODY_BYTES_MAX;

/// Values of a nested column of one batch: what offsets of 32 bits can reach. Types without
/// buffers (null, structures of nothing) have no other bound.
pub const IPC_ITEMS_MAX: usize = i32::MAX as usize;

const _: () = assert!(
    OUTBOX_BYTES_MAX <= EDGE_BYTES_MAX,
    "one step's output fits an edge"
);
const _: () = assert!(RECEIVE_CAPACITY_ELEMENTS <= EDGE_CAPACITY_ELEMENTS);
const _: () = assert!(
    STEP_ELEMENTS_MAX <= RECEIVE_CAPACITY_ELEMENTS,
    "a step never empties more than a receive side"
);
const _: () = assert!(EDGE_BYTES_MIN <= EDGE_BYTES_MAX);
const _: () = assert!(BATCH_ROWS <= BATCH_ROWS_MAX);
const _: () = assert!(PARALLELISM_MAX <= KEY_GROUPS);
const _: () = assert!(BATCH_ROWS_MAX <= IPC_ITEMS_MAX);
const _: () = assert!(
    IPC_BODY_BYTES_MAX <= EDGE_BYTES_MAX,
    "a decoded batch fits an edge"
);
const _: () = assert!(
    IPC_FIELDS_MAX * 256 <= IPC_METADATA_BYTES_MAX,
    "a schema of the most fields fits its message"
);
