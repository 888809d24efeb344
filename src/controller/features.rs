//! The features of the cluster: what this version can do, and at which levels an empty cluster begins.
//!
//! Kafka: `Feature`, `FeatureControlManager`, `Formatter`; KIP-584, KIP-1022.

use metadata::{ConfigResource, ELR_VERSION, METADATA_VERSION};
use protocol::records::metadata::{AbortTransactionRecord, ConfigRecord, FeatureLevelRecord, MetadataRecord};

use crate::{Controller, Decision};

/// A feature and the levels that this version can work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedFeature {
    /// The feature.
    pub name: &'static str,
    /// The lowest level.
    pub min: i16,
    /// The highest level.
    pub max: i16,
    /// The level that an empty cluster begins with; 0 is without it.
    pub initial: i16,
}

const fn feature(name: &'static str, min: i16, max: i16, initial: i16) -> SupportedFeature {
    SupportedFeature { name, min, max, initial }
}

/// All features of Kafka 4.4, the metadata version first.
///
/// The metadata version begins at 30 (4.3-IV0), not at 33: it is the last one that today's consoles know by name, and
/// those that do not know it switch off what they could do. share.version 2 needs a later one.
pub const SUPPORTED_FEATURES: &[SupportedFeature] = &[
    feature(METADATA_VERSION, 7, 33, 30),
    feature(ELR_VERSION, 0, 1, 1),
    feature("group.version", 0, 1, 1),
    feature("share.version", 0, 2, 1),
    feature("streams.version", 0, 1, 1),
    feature("transaction.version", 0, 2, 2),
    // Its level stands in the control records of the quorum, not in the image.
    feature("kraft.version", 0, 1, 0),
];

impl Controller {
    /// What an active controller begins with. A cluster that has nothing yet gets its feature levels, and the value of
    /// `min.insync.replicas` for all brokers, which eligible leader replicas need to be the same everywhere. A
    /// transaction that a controller before this one did not end is aborted: nobody else will end it.
    pub fn bootstrap(&self) -> Decision<()> {
        let mut records: Vec<MetadataRecord> = Vec::new();
        if self.image.is_in_transaction() {
            let reason = Some("the controller that began it is gone".to_owned());
            records.push(AbortTransactionRecord { reason }.into());
        }
        if self.image.features.level(METADATA_VERSION) == 0 {
            records.extend(initial_levels());
            records.push(self.min_insync_replicas_of_all().into());
        }
        Decision { records, reply: () }
    }

    fn min_insync_replicas_of_all(&self) -> ConfigRecord {
        let all = ConfigResource::all_brokers();
        ConfigRecord {
            resource_type: all.kind.code(),
            resource_name: all.name,
            name: "min.insync.replicas".into(),
            value: Some(self.config.broker.layers().integer("min.insync.replicas").to_string()),
        }
    }

    pub(crate) fn elr_is_on(&self) -> bool {
        self.image.features.level(ELR_VERSION) > 0
    }
}

fn initial_levels() -> impl Iterator<Item = MetadataRecord> {
    let levels = SUPPORTED_FEATURES.iter().filter(|feature| feature.initial > 0);
    levels.map(|feature| {
        FeatureLevelRecord { name: feature.name.into(), feature_level: feature.initial }.into()
    })
}

#[cfg(test)]
mod tests {
    use metadata::Image;
    use model::Offset;
    use protocol::records::metadata::BeginTransactionRecord;

    use super::*;
    use crate::testing::{commit, controller_at};

    #[test]
    fn an_empty_cluster_gets_its_levels_once() {
        let mut controller = controller_at(Image::default());
        let decision = controller.bootstrap();
        commit(&mut controller, decision);
        assert_eq!(controller.image().features.level(METADATA_VERSION), 30);
        assert_eq!(controller.image().features.level("group.version"), 1);
        assert_eq!(controller.image().features.level("kraft.version"), 0);
        assert_eq!(controller.image().configs.of(&ConfigResource::all_brokers())["min.insync.replicas"], "1");
        assert!(controller.bootstrap().records.is_empty());
    }

    #[test]
    fn a_transaction_that_nobody_ended_is_aborted() {
        let begin = BeginTransactionRecord { name: None };
        let half = FeatureLevelRecord { name: METADATA_VERSION.into(), feature_level: 7 };
        let (image, _) = Image::default().apply(&[begin.into(), half.into()], Offset(2)).expect("fits");
        let mut controller = controller_at(image);
        let decision = controller.bootstrap();
        commit(&mut controller, decision);
        assert!(!controller.image().is_in_transaction());
        assert_eq!(controller.image().features.level(METADATA_VERSION), 30);
    }
}
