//! A sender that finds out whether its edge goes over shared memory.

use std::time::Duration;

use ringway_netio::frame::Identity;
use ringway_netio::session::{Mode, SenderSession};
use ringway_shm::Bell;
use ringway_shm::link::Watch;

use super::links::Io;
use super::sender_link::OutBody;
use crate::batch::Payload;
use crate::edge::EdgeOptions;
use crate::edge::shared::{
    DISABLE_SHARED_VARIABLE, Host, Knock, Knocked, Ordered, SharedOptions, Sharing, is_disabled,
};

/// How often it is looked whether the receiver has answered.
const ANSWER_POLL_MIN: Duration = Duration::from_micros(500);
const ANSWER_POLL_MAX: Duration = Duration::from_millis(100);

/// What a sender needs to find that out.
pub(super) struct Meeting<B: Payload> {
    ordered: Ordered<B>,
    edge: EdgeOptions,
    options: SharedOptions,
    identity: Option<Identity>,
    knock: Option<Box<Knock>>,
    /// When that was.
    knocked_at: Duration,
    /// How long the answer is waited for.
    patience: Duration,
}

/// How far it has come.
pub(super) enum Met<B: Payload> {
    /// The offer has not come, or the answer to the knock.
    Waiting(Box<Meeting<B>>),
    /// The edge goes over its connection, for this reason.
    Connection(String),
    /// It goes over shared memory.
    Memory(Box<Sharer<B>>),
    /// It can't be at all, for this reason.
    Failed(String),
}

/// What a sender over shared memory is made of.
pub(super) struct Sharer<B: Payload> {
    pub(super) host: Host,
    pub(super) ordered: Ordered<B>,
    pub(super) edge: EdgeOptions,
}

impl<B: Payload> Meeting<B> {
    pub(super) fn new(
        ordered: Ordered<B>,
        edge: EdgeOptions,
        options: SharedOptions,
        identity: Option<Identity>,
        patience: Duration,
    ) -> Self {
        Self {
            ordered,
            edge,
            options,
            identity,
            knock: None,
            knocked_at: Duration::ZERO,
            patience,
        }
    }

    /// When to look for an answer to the knock, which comes over a socket that the driver does not
    /// know: soon, and less often the longer it takes.
    pub(super) fn look_at(&self, now: Duration) -> Option<Duration> {
        self.knock.as_ref()?;
        let waited = now.saturating_sub(self.knocked_at);
        Some(now + (waited / 4).clamp(ANSWER_POLL_MIN, ANSWER_POLL_MAX))
    }

    /// Whether the receiver waits for the answer to its offer, and not for the descriptors.
    pub(super) fn has_knocked(&self) -> bool {
        self.knock.is_some()
    }

    pub(super) fn poll(
        mut self: Box<Self>,
        session: &SenderSession<OutBody>,
        io: &Io<'_>,
    ) -> Met<B> {
        if let Some(knock) = self.knock.take() {
            return self.wait(knock, io.now);
        }
        if is_disabled() && session.mode() != Mode::Undecided {
            return self.without(format!("switched off by {DISABLE_SHARED_VARIABLE}"));
        }
        let Some(offer) = session.offer() else {
            return match session.mode() {
                Mode::Undecided => Met::Waiting(self),
                Mode::V1 | Mode::Negotiated(_) => {
                    self.without("the receiver speaks version 1 of the wire".to_owned())
                }
            };
        };
        let knock = Knock::at(
            offer.token,
            self.identity,
            &self.options,
            &self.options.link(&self.edge),
            io.bell,
            io.clock.started_nanos(),
        );
        match knock {
            Ok(knock) => {
                self.knock = Some(Box::new(knock));
                self.knocked_at = io.now;
                Met::Waiting(self)
            }
            Err(why) => self.without(why),
        }
    }

    fn wait(mut self: Box<Self>, knock: Box<Knock>, now: Duration) -> Met<B> {
        match knock.poll() {
            // Not the socket: the receiver may believe in the memory by now.
            Ok(Knocked::Waiting(_)) if now >= self.knocked_at + self.patience => {
                let patience = self.patience;
                Met::Failed(format!(
                    "the receiver has not answered at its Unix socket for {patience:?}"
                ))
            }
            Ok(Knocked::Waiting(knock)) => {
                self.knock = Some(knock);
                Met::Waiting(self)
            }
            Ok(Knocked::Met(host)) => Met::Memory(Box::new(Sharer {
                host,
                ordered: self.ordered,
                edge: self.edge,
            })),
            Ok(Knocked::Refused(why)) => self.without(why),
            Err(why) => Met::Failed(why),
        }
    }

    /// It can't be shared memory, for this reason.
    pub(super) fn without(&self, why: String) -> Met<B> {
        match self.options.sharing {
            Sharing::Require => Met::Failed(format!("no shared memory: {why}")),
            Sharing::Prefer | Sharing::Off => Met::Connection(why),
        }
    }
}

/// Rings for the owner of a half who does not wait for the bell of the links, where the other
/// end has done something.
pub(super) struct Relay {
    user: Bell,
    watch: Watch,
}

impl Relay {
    /// None where the owner waits for the bell of the links.
    pub(super) fn new(user: &Bell, links: &Bell, watch: impl FnOnce() -> Watch) -> Option<Self> {
        (!user.is(links)).then(|| Self {
            user: user.clone(),
            watch: watch(),
        })
    }

    /// Rings, if the owner sleeps and has something to wake for.
    pub(super) fn pump(&mut self) {
        // What nobody waits for is news later.
        if self.user.is_armed() && self.watch.has_news() {
            self.user.ring();
        }
    }
}
