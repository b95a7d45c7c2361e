//! The stand-in of the model checker: the epoch on the heap, and a kick in place of an eventfd.

use crate::bell::Bell;
use crate::doorbell::Doorbell;
use crate::sync::{Arc, AtomicU32};

#[derive(Debug)]
pub(crate) struct Page {
    epoch: Arc<AtomicU32>,
}

impl Page {
    pub(crate) fn new() -> Page {
        Page {
            epoch: Arc::new(AtomicU32::new(1)),
        }
    }

    pub(crate) fn epoch(&self) -> &AtomicU32 {
        &self.epoch
    }

    /// What rings the bell that this page belongs to.
    pub(crate) fn doorbell(&self, bell: Bell) -> Doorbell {
        let epoch = self.epoch.clone();
        Doorbell::new(Pull { epoch, bell })
    }
}

#[derive(Debug)]
pub(crate) struct Pull {
    epoch: Arc<AtomicU32>,
    bell: Bell,
}

impl Pull {
    pub(crate) fn epoch(&self) -> &AtomicU32 {
        &self.epoch
    }

    pub(crate) fn pull(&self) {
        self.bell.model_kick();
    }
}
