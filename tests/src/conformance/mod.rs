//! What every edge promises, whatever carries it: one function a promise, its name a sentence.
//!
//! A transport is not done until it passes. To run all of it against a subject:
//!
//! ```text
//! ringway_tests::edge_conformance!(local = LocalEdge);
//! ```

pub mod bounds;
pub mod counters;
pub mod elements;
pub mod endings;
pub mod order;
pub mod payloads;
pub mod priority;
pub mod rejection;
pub mod subjects;
pub mod threads;
pub mod waiting;
pub mod waking;

use ringway::batch::Payload;
use ringway::edge::{EdgeOptions, Popped, Receiver, Rejected, Sender};
use ringway::element::StreamElement;
use ringway::wire::Wired;
use ringway_shm::Bell;

/// Something that calls itself an edge.
pub trait EdgeSubject: Sync {
    /// How failures call it.
    fn name(&self) -> &'static str;

    /// Whether each half sees at once what the other does. If not, it does soon; and what is
    /// on the way between the two adds to what the edge takes.
    fn is_instant(&self) -> bool {
        true
    }

    /// Whether both halves have one clock. If not, times of one are told to the other as they are
    /// by the other's clock.
    fn has_one_clock(&self) -> bool {
        true
    }

    /// Whether a half that goes can say how and why. If not, all that the other learns is that
    /// it went without having ended the stream.
    fn tells_reasons(&self) -> bool {
        true
    }

    /// Opens an edge whose halves are woken by these bells.
    fn open_with<B: Wired>(
        &self,
        options: EdgeOptions,
        sender_bell: Bell,
        receiver_bell: Bell,
    ) -> (Sender<B>, Receiver<B>);

    /// Opens an edge for a thread on either side.
    fn open<B: Wired>(&self, options: EdgeOptions) -> (Sender<B>, Receiver<B>) {
        self.open_with(options, Bell::thread(), Bell::thread())
    }

    /// The forms that wait without limit, which a thread may call.
    fn waiting<B: Payload>(&self) -> Waiting<B> {
        Waiting {
            push: Sender::push,
            pop: Receiver::pop,
        }
    }
}

/// How a thread waits for an edge.
pub struct Waiting<B: Payload> {
    /// Pushes an element, and waits for room.
    pub push: fn(&mut Sender<B>, StreamElement<B>) -> Result<(), Rejected<B>>,
    /// Takes an element, and waits for one.
    pub pop: fn(&mut Receiver<B>) -> Popped<B>,
}

// Derived, they would ask the same of the payload.
impl<B: Payload> Copy for Waiting<B> {}

impl<B: Payload> Clone for Waiting<B> {
    fn clone(&self) -> Self {
        *self
    }
}

/// Holds a subject to one promise, and names it if that is broken.
pub fn check<S: EdgeSubject>(subject: &S, promise: impl FnOnce(&S)) {
    let _named = Named(subject.name());
    promise(subject);
}

/// The source text of every group of promises.
const GROUPS: &[&str] = &[
    include_str!("bounds.rs"),
    include_str!("counters.rs"),
    include_str!("endings.rs"),
    include_str!("order.rs"),
    include_str!("payloads.rs"),
    include_str!("priority.rs"),
    include_str!("rejection.rs"),
    include_str!("threads.rs"),
    include_str!("waiting.rs"),
    include_str!("waking.rs"),
];

/// How many promises the groups hold, so that none is written and never run.
pub fn promises_written() -> usize {
    let promises = |text: &&str| text.matches("\npub fn ").count();
    GROUPS.iter().map(promises).sum()
}

struct Named(&'static str);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the edge that broke its promise: {}", self.0);
        }
    }
}

/// Makes a module of tests, one for each promise, that hold a subject to them.
#[macro_export]
macro_rules! edge_conformance {
    ($module:ident = $subject:expr) => {
        $crate::edge_conformance! { @promises $module, $subject;
            order {
                all_four_kinds_keep_their_order_among_each_other
                barriers_stay_between_the_rows_around_them
                fields_of_control_elements_arrive_as_they_were
                what_is_pushed_and_popped_at_random_agrees_with_a_plain_queue
            }
            bounds {
                a_full_edge_takes_data_again_after_a_pop
                the_capacity_is_exact
                the_bytes_in_flight_are_bounded
                a_batch_above_the_byte_bound_passes_alone
                batches_without_bytes_are_bounded_as_elements
                control_elements_do_not_wait_for_room_of_data
                control_elements_are_bounded_too
            }
            rejection {
                a_rejected_element_comes_back
                a_receiver_that_closes_says_so_and_it_is_no_failure
                a_receiver_that_is_dropped_is_a_lost_peer_of_the_named_edge
                a_receiver_that_fails_tells_why
                closed_is_told_apart_from_full_on_the_same_element
                nothing_stays_queued_when_the_receiver_is_gone
                finish_tells_that_the_receiver_went_before_it
            }
            endings {
                everything_accepted_is_taken_before_the_end
                an_empty_stream_ends
                a_stream_that_is_dropped_has_failed
                a_sender_that_panics_has_failed
                a_stream_that_fails_tells_why
                a_cancelled_stream_is_no_end
                a_stream_is_stopped_if_its_last_element_says_so
                a_stop_marker_that_is_not_last_or_does_not_stop_leaves_an_end
                a_stop_marker_that_was_rejected_leaves_an_end
                a_stop_marker_does_not_soften_a_cancel_or_a_loss
                the_ending_is_said_again
            }
            waiting {
                a_blocked_push_goes_on_when_there_is_room
                a_blocked_push_learns_that_the_receiver_went
                a_blocked_pop_goes_on_when_there_is_an_element
                a_blocked_pop_learns_how_the_stream_ended
                a_blocked_pop_returns_for_a_priority_barrier
                a_timed_push_gives_the_element_back
                a_timed_pop_returns_empty
                a_timeout_of_zero_tries_once
            }
            waking {
                a_parked_receiver_is_woken_by_a_push
                a_quiet_push_wakes_at_the_flush
                a_parked_receiver_is_woken_by_a_priority_barrier
                a_parked_receiver_is_woken_by_any_ending
                a_parked_sender_is_woken_by_a_pop
                a_parked_sender_is_woken_when_bytes_are_given_back
                a_parked_sender_is_woken_when_the_receiver_goes
                a_receiver_that_is_awake_is_not_rung
            }
            priority {
                a_priority_barrier_overtakes_and_tells_what_it_overtook
                the_order_goes_on_after_a_priority_barrier
                a_priority_barrier_on_an_empty_edge_overtakes_nothing
                what_was_taken_meanwhile_is_not_peeked
                one_priority_barrier_is_under_way_at_a_time
                a_priority_barrier_needs_no_room
                a_priority_barrier_outlives_the_end_of_the_stream
                a_priority_barrier_for_a_receiver_that_is_gone_comes_back
            }
            payloads {
                a_batch_without_columns_keeps_its_rows
                schema_metadata_and_repeated_names_are_kept
                empty_batches_are_delivered
                event_times_of_rows_are_kept
                a_row_of_mebibytes_arrives_as_it_was
                a_batch_arrives_value_by_value
            }
            counters {
                the_high_water_mark_never_falls
                depth_follows_pushes_and_pops
                what_was_accepted_is_counted_and_what_was_rejected_is_not
                blocked_time_is_counted
                both_ends_know_name_capacity_and_transport
                positions_count_elements_on_both_sides
                the_origin_travels_with_its_element
            }
            threads {
                a_hundred_thousand_elements_arrive_once_and_in_order
                a_narrow_edge_loses_nothing
                spinning_halves_agree_with_waiting_ones
                a_close_that_races_with_pushes_accounts_for_every_element
                halves_that_go_at_random_moments_leak_nothing
            }
        }
    };
    (@promises $module:ident, $subject:expr; $($group:ident { $($promise:ident)+ })+) => {
        mod $module {
            use super::*;
            $($(
                #[test]
                fn $promise() {
                    $crate::conformance::check(
                        &$subject,
                        |subject| $crate::conformance::$group::$promise(subject),
                    );
                }
            )+)+

            #[test]
            fn no_promise_is_left_out() {
                let listed = [$($(stringify!($promise)),+),+].len();
                assert_eq!(listed, $crate::conformance::promises_written());
            }
        }
    };
}
