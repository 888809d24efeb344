//! Chance.

use model::Uuid;

/// Random bytes: the operating system's in production, the seed's in the simulator.
pub trait Rng: Send + Sync {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);

    /// 64 random bits.
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `bound`, which is not 0.
    fn below(&self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// A version 4 UUID.
    fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        Uuid::from_random(bytes)
    }
}
