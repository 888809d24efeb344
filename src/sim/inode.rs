//! What a file or folder holds now, and what of it would outlive a power loss.
//!
//! Invariant: `live` is what a running node sees, the durable part is what is on the device, and the pending
//! operations are those between the two, in order. After a failed sync the two may differ with nothing pending: the
//! operating system has marked the pages clean, and a later sync succeeds without them, unless they are written again.
//! Names and lengths are not lost that way: a file system that cannot write its journal takes no more writes.

use std::collections::BTreeMap;

use fastrand::Rng;

/// Names a file or folder, whatever it is called.
pub(crate) type InodeId = u64;

/// A file's bytes.
#[derive(Clone, Default)]
pub(crate) struct Content {
    pub(crate) live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { position: usize, bytes: Vec<u8> },
    SetLen(usize),
}

/// A folder's names.
#[derive(Clone, Default)]
pub(crate) struct Names {
    pub(crate) live: BTreeMap<String, InodeId>,
    durable: BTreeMap<String, InodeId>,
    pending: Vec<NameChange>,
}

#[derive(Clone)]
pub(crate) enum NameChange {
    Put(String, InodeId),
    Remove(String),
    Rename(String, String),
}

impl Content {
    pub(crate) fn write(&mut self, position: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        put(&mut self.live, position, bytes);
        self.pending.push(Change::Write { position, bytes: bytes.to_vec() });
    }

    pub(crate) fn set_len(&mut self, length: usize) {
        self.live.resize(length, 0);
        self.pending.push(Change::SetLen(length));
    }

    pub(crate) fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            apply(&mut self.durable, &change);
        }
    }

    /// A sync that fails: some of the bytes that were pending are on the device, the others will never be.
    pub(crate) fn fail_sync(&mut self, rng: &mut Rng) {
        let lengths =
            self.pending.iter().filter(|change| matches!(change, Change::SetLen(_))).cloned().collect();
        self.keep_some(rng);
        self.pending = lengths;
    }

    /// The power is gone: of what was not synced an arbitrary part is kept.
    pub(crate) fn lose_power(&mut self, rng: &mut Rng) {
        self.keep_some(rng);
        self.live = self.durable.clone();
    }

    /// Changes a byte on the device and in memory, as it happens to old disks.
    pub(crate) fn rot(&mut self, position: usize) {
        for bytes in [&mut self.live, &mut self.durable] {
            if let Some(byte) = bytes.get_mut(position) {
                *byte ^= 0x40;
            }
        }
    }

    fn keep_some(&mut self, rng: &mut Rng) {
        let pending = std::mem::take(&mut self.pending);
        let way = rng.u8(..4);
        let prefix = rng.usize(..=pending.len());
        for (i, change) in pending.into_iter().enumerate() {
            let kept = match way {
                0 => false,
                1 => true,
                2 => i < prefix,
                _ => rng.bool(),
            };
            match change {
                // A file system journals lengths in order: nothing after a lost cut can be there.
                Change::SetLen(_) if !kept => return,
                Change::SetLen(length) => self.durable.resize(length, 0),
                Change::Write { position, bytes } if kept || (way == 2 && i == prefix) => {
                    let torn = way >= 2 && rng.bool();
                    self.write_torn(position, &bytes, torn.then_some(&mut *rng));
                }
                Change::Write { .. } => {}
            }
        }
    }

    /// A write of which, where it is torn, only some sectors or pages came to the device.
    fn write_torn(&mut self, position: usize, bytes: &[u8], torn: Option<&mut Rng>) {
        let Some(rng) = torn else { return put(&mut self.durable, position, bytes) };
        let unit = if rng.bool() { 512 } else { 4096 };
        let in_order = rng.bool();
        let mut from = position;
        while from < position + bytes.len() {
            let to = ((from / unit + 1) * unit).min(position + bytes.len());
            if rng.bool() {
                put(&mut self.durable, from, &bytes[from - position..to - position]);
            } else if in_order {
                return;
            }
            from = to;
        }
    }
}

impl Names {
    pub(crate) fn change(&mut self, change: NameChange) {
        apply_name(&mut self.live, &change);
        self.pending.push(change);
    }

    pub(crate) fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            apply_name(&mut self.durable, &change);
        }
    }

    /// Of the changes that were not synced the first few are kept, as many as it happens.
    pub(crate) fn lose_power(&mut self, rng: &mut Rng) {
        let kept = rng.usize(..=self.pending.len());
        for change in std::mem::take(&mut self.pending).iter().take(kept) {
            apply_name(&mut self.durable, change);
        }
        self.live = self.durable.clone();
    }
}

fn put(into: &mut Vec<u8>, position: usize, bytes: &[u8]) {
    let end = position + bytes.len();
    if into.len() < end {
        into.resize(end, 0);
    }
    into[position..end].copy_from_slice(bytes);
}

fn apply(durable: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { position, bytes } => put(durable, *position, bytes),
        Change::SetLen(length) => durable.resize(*length, 0),
    }
}

fn apply_name(names: &mut BTreeMap<String, InodeId>, change: &NameChange) {
    match change {
        NameChange::Put(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        NameChange::Remove(name) => {
            names.remove(name);
        }
        NameChange::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(synced: &[u8]) -> Content {
        let mut content = Content::default();
        content.write(0, synced);
        content.sync();
        content
    }

    /// What is there after a power loss, for many seeds.
    fn outcomes(content: &Content) -> std::collections::BTreeSet<Vec<u8>> {
        let lose = |seed| {
            let mut content = content.clone();
            content.lose_power(&mut Rng::with_seed(seed));
            content.live
        };
        (0..300).map(lose).collect()
    }

    #[test]
    fn what_was_synced_is_kept_and_what_was_not_may_be_kept_or_lost_in_any_part() {
        let mut content = content(b"ab");
        content.write(2, b"cd");
        content.write(4, b"ef");
        let outcomes = outcomes(&content);
        for outcome in [&b"ab"[..], b"abcd", b"abcdef", b"ab\0\0ef"] {
            assert!(outcomes.contains(outcome), "{outcome:?}");
        }
        assert!(outcomes.iter().all(|outcome| outcome.starts_with(b"ab")));
    }

    #[test]
    fn a_long_write_is_torn_at_sectors() {
        let mut content = content(b"");
        content.write(100, &[7; 10_000]);
        let outcomes = outcomes(&content);
        assert!(outcomes.iter().any(|bytes| bytes.len() == 512));
        assert!(outcomes.iter().all(|bytes| bytes.len() % 512 == 0 || bytes.len() == 10_100));
        assert!(outcomes.iter().any(|bytes| bytes.len() == 10_100 && bytes[600] == 0));
    }

    #[test]
    fn nothing_that_came_after_a_lost_cut_is_there() {
        let mut content = content(b"abcdef");
        content.set_len(2);
        content.write(2, b"XY");
        for outcome in outcomes(&content) {
            assert!([&b"abcdef"[..], b"ab", b"abXY"].contains(&&outcome[..]), "{outcome:?}");
        }
    }

    #[test]
    fn after_a_failed_sync_the_data_is_seen_but_never_written() {
        for seed in 0..20 {
            let mut content = content(b"ab");
            content.write(2, b"cd");
            content.fail_sync(&mut Rng::with_seed(seed));
            assert_eq!(content.live, b"abcd");
            content.write(4, b"ef");
            content.sync();
            content.lose_power(&mut Rng::with_seed(seed));
            assert!([&b"abcdef"[..], b"ab\0\0ef"].contains(&&content.live[..]));
        }
    }

    #[test]
    fn what_is_written_again_after_a_failed_sync_is_written() {
        for seed in 0..20 {
            let mut content = content(b"abcd");
            content.write(2, b"xy");
            content.set_len(3);
            content.fail_sync(&mut Rng::with_seed(seed));
            content.write(2, b"x");
            content.sync();
            content.lose_power(&mut Rng::with_seed(seed));
            assert_eq!(content.live, b"abx");
        }
    }

    #[test]
    fn names_are_kept_in_the_order_they_were_changed() {
        let mut names = Names::default();
        names.change(NameChange::Put("a".into(), 1));
        names.sync();
        names.change(NameChange::Put("a.tmp".into(), 2));
        names.change(NameChange::Rename("a.tmp".into(), "a".into()));
        let outcomes: std::collections::BTreeSet<_> = (0..50)
            .map(|seed| {
                let mut names = names.clone();
                names.lose_power(&mut Rng::with_seed(seed));
                names.live.into_iter().collect::<Vec<_>>()
            })
            .collect();
        let name = |name: &str, inode| (name.to_owned(), inode);
        let expected = [vec![name("a", 1)], vec![name("a", 1), name("a.tmp", 2)], vec![name("a", 2)]];
        assert_eq!(outcomes, expected.into_iter().collect());
    }
}
