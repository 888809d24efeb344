//! What records changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{NodeId, TopicId, TopicIdPartition};

use crate::{ConfigResource, Topic};

/// The difference between two images: names of what changed. The new values are in the new image.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delta {
    /// Topics that are new and still there.
    pub topics_created: BTreeSet<TopicId>,
    /// Topics that are gone, as they last were. Not those that came and went within the same records.
    pub topics_deleted: Vec<Arc<Topic>>,
    /// Partitions that are new or have changed, those of new topics included.
    pub partitions_changed: BTreeSet<TopicIdPartition>,
    /// Resources whose values at run time changed.
    pub configs_changed: BTreeSet<ConfigResource>,
    /// Brokers that were registered, changed or unregistered.
    pub brokers_changed: BTreeSet<NodeId>,
    /// Controllers that were registered or unregistered.
    pub controllers_changed: BTreeSet<NodeId>,
    /// Whether a feature's level changed.
    pub features_changed: bool,
    /// Whether producer ids were given out.
    pub producer_ids_changed: bool,
    /// Whether quotas, access control, credentials or tokens changed.
    pub security_changed: bool,
}

impl Delta {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This difference and then a `later` one, as one.
    #[must_use]
    pub fn merged(mut self, later: Self) -> Self {
        for topic in later.topics_deleted {
            self.partitions_changed.retain(|partition| partition.topic_id != topic.id);
            if !self.topics_created.remove(&topic.id) {
                self.topics_deleted.push(topic);
            }
        }
        self.topics_created.extend(later.topics_created);
        self.partitions_changed.extend(later.partitions_changed);
        self.configs_changed.extend(later.configs_changed);
        self.brokers_changed.extend(later.brokers_changed);
        self.controllers_changed.extend(later.controllers_changed);
        self.features_changed |= later.features_changed;
        self.producer_ids_changed |= later.producer_ids_changed;
        self.security_changed |= later.security_changed;
        self
    }
}
