//! The levels that features are finalized at, for the whole cluster.
//!
//! Kafka: `FeaturesImage`; KIP-584, KIP-1022.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::records::metadata::{FeatureLevelRecord, MetadataRecord};

use crate::Delta;

/// The feature that says which metadata records may be written.
pub const METADATA_VERSION: &str = "metadata.version";
/// The feature of eligible leader replicas (KIP-966).
pub const ELR_VERSION: &str = "eligible.leader.replicas.version";

/// All finalized levels. Cheap to clone. A feature that is not in it has level 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    levels: Arc<BTreeMap<String, i16>>,
}

impl Features {
    /// The level of this feature; 0 where it was never finalized.
    pub fn level(&self, name: &str) -> i16 {
        self.levels.get(name).copied().unwrap_or_default()
    }

    /// All features whose level is not 0, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i16)> {
        self.levels.iter().map(|(name, level)| (name.as_str(), *level))
    }

    pub(crate) fn set(&mut self, record: &FeatureLevelRecord, delta: &mut Delta) {
        let levels = Arc::make_mut(&mut self.levels);
        match record.feature_level {
            0 => levels.remove(&record.name),
            level => levels.insert(record.name.clone(), level),
        };
        delta.features_changed = true;
    }

    /// The metadata version comes first: it says how to read the others.
    pub(crate) fn write(&self, records: &mut Vec<MetadataRecord>) {
        let mut levels: Vec<(&str, i16)> = self.iter().collect();
        levels.sort_by_key(|(name, _)| (*name != METADATA_VERSION, *name));
        records.extend(levels.into_iter().map(|(name, feature_level)| {
            MetadataRecord::FeatureLevel(FeatureLevelRecord { name: name.to_owned(), feature_level })
        }));
    }
}
