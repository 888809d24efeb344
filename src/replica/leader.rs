//! The leader's side of a partition.

use std::collections::BTreeMap;

use model::{LeaderEpoch, NodeId, Offset};

/// A partition that this node leads in one leader epoch.
#[derive(Clone, Debug)]
pub struct Leader {
    me: NodeId,
    epoch: LeaderEpoch,
    epoch_start: Offset,
    high_watermark: Offset,
    ends: BTreeMap<NodeId, Offset>,
}

impl Leader {
    /// A leader of `epoch`, whose first record will get offset `epoch_start`; `restored` is the high watermark known
    /// before. The ISR's other members count from nothing until they have fetched.
    pub fn new(
        me: NodeId,
        epoch: LeaderEpoch,
        epoch_start: Offset,
        isr: impl IntoIterator<Item = NodeId>,
        restored: Offset,
    ) -> Self {
        let mut ends: BTreeMap<_, _> = isr.into_iter().map(|member| (member, Offset(0))).collect();
        ends.insert(me, restored);
        Self { me, epoch, epoch_start, high_watermark: restored.min(epoch_start), ends }
    }

    /// Its leader epoch.
    pub fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// The offset below which everything is committed, exclusive.
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// How many replicas are in sync.
    pub fn isr_size(&self) -> usize {
        self.ends.len()
    }

    /// Whether the high watermark may be shown: not before all that older epochs left is committed (KIP-207).
    pub fn is_exposed(&self) -> bool {
        self.high_watermark >= self.epoch_start
    }

    /// The leader's own log is safe up to `end`, exclusive. Tells the new high watermark if it moved.
    pub fn handle_counted(&mut self, end: Offset) -> Option<Offset> {
        self.ends.insert(self.me, end);
        let lowest = self.ends.values().copied().min().unwrap_or(end);
        (lowest > self.high_watermark).then(|| {
            self.high_watermark = lowest;
            lowest
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: NodeId = NodeId(1);

    fn leader(isr: &[i32]) -> Leader {
        Leader::new(ME, LeaderEpoch(3), Offset(10), isr.iter().map(|id| NodeId(*id)), Offset(4))
    }

    #[test]
    fn alone_in_the_isr_its_own_end_is_committed() {
        let mut leader = leader(&[1]);
        assert_eq!(leader.high_watermark(), Offset(4));
        assert_eq!(leader.handle_counted(Offset(12)), Some(Offset(12)));
        assert_eq!(leader.handle_counted(Offset(12)), None);
    }

    #[test]
    fn the_high_watermark_is_exposed_from_the_epochs_start() {
        let mut leader = leader(&[1]);
        assert!(!leader.is_exposed());
        leader.handle_counted(Offset(10));
        assert!(leader.is_exposed());
    }

    #[test]
    fn a_member_that_has_not_fetched_holds_it_back() {
        let mut leader = leader(&[1, 2]);
        assert_eq!(leader.handle_counted(Offset(12)), None);
        assert_eq!(leader.high_watermark(), Offset(4));
    }

    #[test]
    fn it_never_goes_back() {
        let mut leader = leader(&[1]);
        leader.handle_counted(Offset(12));
        assert_eq!(leader.handle_counted(Offset(11)), None);
        assert_eq!(leader.high_watermark(), Offset(12));
    }
}
