//! Where a partition's wishes go, beside its committer: shared by all partitions of a node.

use std::sync::Arc;

use env::Clock;

use crate::fetchers::Fetchers;
use crate::isr_changes::IsrChanges;
use crate::ticks::Ticks;

/// All of them.
pub(crate) struct Outlets {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) fetchers: Arc<Fetchers>,
    pub(crate) isr_changes: IsrChanges,
    pub(crate) ticks: Ticks,
}
