//! Changes bytes as a hostile peer or a bad disk would.

use fastrand::Rng;

/// Bytes that lengths and varints turn on.
const TELLING: [u8; 8] = [0x00, 0x01, 0x02, 0x0f, 0x7f, 0x80, 0xfe, 0xff];
const BYTES_MAX: usize = 64 << 10;

/// Flips, overwrites, inserts, removes, repeats or cuts, one to four times.
pub(crate) fn mutate(bytes: &mut Vec<u8>, random: &mut Rng) {
    for _ in 0..random.usize(1..5) {
        let at = random.usize(..=bytes.len());
        match random.u8(..9) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.u8(..)),
            2 => drop(bytes.splice(at..at, [0xff; 5])),
            3 if at < bytes.len() => drop(bytes.remove(at)),
            4 => bytes.extend_from_within(at..),
            5 | 6 if at < bytes.len() => bytes[at] ^= 1 << random.u8(..8),
            _ if at < bytes.len() => bytes[at] = TELLING[random.usize(..TELLING.len())],
            _ => {}
        }
        bytes.truncate(BYTES_MAX);
    }
}
