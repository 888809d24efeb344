//! The kernel's randomness.

use env::Rng;

/// Random bytes from the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostRng;

impl Rng for HostRng {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the kernel gives randomness: without it no id would be unique");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ids_differ() {
        assert_ne!(HostRng.uuid(), HostRng.uuid());
        assert!(HostRng.below(3) < 3);
    }
}
