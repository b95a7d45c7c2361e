//! Control elements, as the engine and as the wire has them.

use ringway_netio::frame::Control;

use crate::element::{Barrier, BarrierMode, Drain, StreamElement, Watermark};

/// The control element as the wire has it; nothing for data.
pub fn control_of<B>(element: &StreamElement<B>) -> Option<Control> {
    Some(match *element {
        StreamElement::Data(_) => return None,
        StreamElement::Watermark(Watermark { timestamp, idle }) => match idle {
            false => Control::Watermark {
                timestamp_ms: timestamp,
            },
            true => Control::WatermarkIdle {
                timestamp_ms: timestamp,
            },
        },
        StreamElement::Barrier(Barrier { id, terminal, mode }) => Control::Barrier {
            id,
            mode: mode.0,
            terminal,
        },
        StreamElement::Drain(Drain {
            subtask,
            target_parallelism,
        }) => Control::Drain {
            subtask,
            target_parallelism,
        },
    })
}

/// The element that the wire says.
pub fn element_of<B>(control: Control) -> StreamElement<B> {
    match control {
        Control::Watermark { timestamp_ms } => {
            StreamElement::Watermark(Watermark::active(timestamp_ms))
        }
        Control::WatermarkIdle { timestamp_ms } => {
            StreamElement::Watermark(Watermark::idle(timestamp_ms))
        }
        Control::Barrier { id, mode, terminal } => StreamElement::Barrier(Barrier {
            id,
            terminal,
            mode: BarrierMode(mode),
        }),
        Control::Drain {
            subtask,
            target_parallelism,
        } => StreamElement::Drain(Drain {
            subtask,
            target_parallelism,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::CONTROLS;

    #[test]
    fn every_control_element_comes_back_as_it_was() {
        for element in CONTROLS {
            let control = control_of(&element).unwrap();
            assert_eq!(element_of::<()>(control), element);
        }
        assert_eq!(control_of(&StreamElement::Data(())), None);
    }
}
