//! How operators that gather results give them: a batch at a time, as long as there is room,
//! and watermarks after what they made due.

use crate::batch::Payload;
use crate::clock::ProcessingTime;
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress, RowCounts};

/// Things that one step frees or looks at without a result, so that many do not hold the core.
pub(super) const STEP_ITEMS_MAX: usize = 65_536;

/// What gathering came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathered {
    /// Nothing is left that is due.
    All,
    /// A batch is full, and more may be due.
    Batch,
    /// The step is long enough, however little was gathered.
    Enough,
}

impl Gathered {
    /// All that was due, unless what was left of the step's budget is used up.
    pub(super) const fn within(budget: usize) -> Self {
        match budget {
            0 => Self::Enough,
            _ => Self::All,
        }
    }
}

/// An operator in its parts: what it takes in makes results due, which are gathered until they
/// are a batch.
///
/// Whatever is one of these is an [`Operator`].
pub trait Gather: Send {
    /// What it takes.
    type In: Payload;
    /// What it gives.
    type Out: Payload;

    /// Takes a batch in. Nothing is due that was before.
    ///
    /// # Errors
    /// When the batch cannot be processed.
    fn take_in(
        &mut self,
        batch: Self::In,
        out: &mut Emitter<'_, Self::Out>,
    ) -> Result<(), OperatorError>;

    /// Event time has come to `watermark`, which makes due what it completes.
    fn advance(&mut self, watermark: EventTime);

    /// The watermark that is to be passed on when nothing is due any more.
    fn advancing(&mut self) -> &mut Option<Watermark>;

    /// Gathers what is due until it is a batch, or the step is long enough.
    ///
    /// # Errors
    /// When a result cannot be computed.
    fn fill(&mut self) -> Result<Gathered, OperatorError>;

    /// Whether nothing is gathered.
    fn is_empty(&self) -> bool;

    /// The batch of what was gathered; nothing is after it.
    ///
    /// # Errors
    /// When a result cannot be computed.
    fn build(&mut self) -> Result<Self::Out, OperatorError>;

    /// All that `watermark` made due was emitted: what is passed on for it.
    fn passed_on(&mut self, watermark: Watermark) -> Watermark {
        watermark
    }

    /// Frees some of what nothing needs any more; returns whether that is all.
    ///
    /// # Errors
    /// When what is kept cannot be rearranged.
    fn free_some(&mut self) -> Result<bool, OperatorError> {
        Ok(true)
    }

    /// The stream has ended, which may make more due.
    fn end(&mut self) {}

    /// When [`Gather::on_time`] is to be called.
    fn due_at(&self) -> Option<ProcessingTime> {
        None
    }

    /// That processing time has come, which may make more due.
    fn on_time(&mut self) {}

    /// Rows that are treated apart from others.
    fn row_counts(&self) -> Option<RowCounts>;
}

fn go_on<G: Gather>(
    operator: &mut G,
    out: &mut Emitter<'_, G::Out>,
) -> Result<Progress, OperatorError> {
    loop {
        let gathered = operator.fill()?;
        if !operator.is_empty() {
            if out.is_full() {
                return Ok(Progress::More);
            }
            out.emit(operator.build()?);
        }
        match gathered {
            Gathered::All => break,
            Gathered::Batch => {}
            Gathered::Enough => return Ok(Progress::More),
        }
    }
    if let Some(watermark) = operator.advancing().take() {
        out.watermark(operator.passed_on(watermark));
    }
    Ok(match operator.free_some()? {
        true => Progress::Done,
        false => Progress::More,
    })
}

impl<G: Gather> Operator<G::In, G::Out> for G {
    fn process(
        &mut self,
        batch: G::In,
        out: &mut Emitter<'_, G::Out>,
    ) -> Result<Progress, OperatorError> {
        self.take_in(batch, out)?;
        go_on(self, out)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, G::Out>,
    ) -> Result<Progress, OperatorError> {
        if !watermark.idle {
            self.advance(watermark.timestamp);
        }
        *self.advancing() = Some(watermark);
        go_on(self, out)
    }

    fn on_timer(&mut self, out: &mut Emitter<'_, G::Out>) -> Result<Progress, OperatorError> {
        self.on_time();
        go_on(self, out)
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        self.due_at()
    }

    fn on_end(&mut self, out: &mut Emitter<'_, G::Out>) -> Result<Progress, OperatorError> {
        self.end();
        go_on(self, out)
    }

    fn resume(&mut self, out: &mut Emitter<'_, G::Out>) -> Result<Progress, OperatorError> {
        go_on(self, out)
    }

    fn counts(&self) -> Option<RowCounts> {
        self.row_counts()
    }
}
