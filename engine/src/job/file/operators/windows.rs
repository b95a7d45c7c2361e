//! The keys that say which windows of event time there are.

use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::units::Span;
use crate::job::file::wiring::Wiring;
use crate::operators::window::WindowAssigner;

/// The windows that `size`, `slide` and `offset` of a consumer say.
///
/// # Errors
/// When there are no such windows.
pub(super) fn assigner(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    size: Span,
    slide: Option<Span>,
    offset: Option<Span>,
) -> Result<WindowAssigner, JobFileError> {
    let size_ms = size.event_time_ms();
    let slide_ms = slide.unwrap_or(size).event_time_ms();
    let offset_ms = offset.unwrap_or_default().event_time_ms();
    WindowAssigner::sliding(size_ms, slide_ms, offset_ms).map_err(|error| {
        let key = match slide {
            Some(_) if size_ms > 0 => "slide",
            _ => "size",
        };
        let path = consumer.declared.path(&[key]);
        wiring.document.error(&path, error.to_string())
    })
}
