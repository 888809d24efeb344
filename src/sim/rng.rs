//! A node's chance: the seed's.

use std::sync::Mutex;

use env::Rng;

use crate::executor::lock;

pub(crate) struct SimRng(Mutex<fastrand::Rng>);

impl SimRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }
}

impl Rng for SimRng {
    fn fill(&self, bytes: &mut [u8]) {
        lock(&self.0).fill(bytes);
    }
}
