//! A partition as clients of one listener see it: its leader if they can reach it, and the replicas that are away.
//!
//! Kafka: `KRaftMetadataCache.getPartitionMetadata`.

use metadata::{Broker, Image, Partition};
use model::{ErrorCode, NodeId};

/// Who can be reached, and what is wrong if the leader cannot.
pub(crate) struct PartitionView {
    /// None, or why clients should ask again.
    pub error: ErrorCode,
    /// The leader; [`NodeId::NONE`] if it cannot be reached.
    pub leader: NodeId,
    /// Replicas on brokers that are fenced or gone, or cannot be reached, and in log folders that failed.
    pub offline: Vec<NodeId>,
}

impl PartitionView {
    /// The view of `partition` through `listener`. Clients of `knows_listeners` understand LISTENER_NOT_FOUND.
    pub(crate) fn of(image: &Image, partition: &Partition, listener: &str, knows_listeners: bool) -> Self {
        let online = |node: NodeId| image.brokers.get(node).filter(|broker| !broker.fenced);
        let reachable = |broker: &Broker| broker.endpoint(listener).is_some();
        let works = |node: NodeId| {
            let directory = partition.directory(node);
            online(node).is_some_and(|broker| reachable(broker) && broker.has_directory(directory))
        };
        let leader = online(partition.leader);
        let error = match leader {
            Some(broker) if reachable(broker) => ErrorCode::None,
            Some(_) if knows_listeners => ErrorCode::ListenerNotFound,
            _ => ErrorCode::LeaderNotAvailable,
        };
        Self {
            error,
            leader: if error.is_none() { partition.leader } else { NodeId::NONE },
            offline: partition.replicas.iter().copied().filter(|node| !works(*node)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use metadata::{Endpoint, SecurityProtocol};
    use model::{BrokerEpoch, LeaderEpoch, Offset, PartitionEpoch, Uuid};

    use super::*;

    fn image(fenced: bool) -> Image {
        let endpoint = Endpoint {
            listener: "PLAINTEXT".into(),
            host: "h".into(),
            port: 9092,
            protocol: SecurityProtocol::Plaintext,
        };
        let broker = Broker {
            id: NodeId(1),
            epoch: BrokerEpoch(0),
            incarnation: Uuid::ZERO,
            endpoints: vec![endpoint],
            features: Vec::new(),
            rack: None,
            fenced,
            in_controlled_shutdown: false,
            directories: Vec::new(),
            cordoned_directories: None,
        };
        Image::default().apply(&[broker.to_record().into()], Offset(1)).expect("fits").0
    }

    fn partition() -> Partition {
        Partition {
            replicas: vec![NodeId(1), NodeId(2)],
            directories: vec![Partition::UNASSIGNED; 2],
            isr: vec![NodeId(1)],
            removing_replicas: Vec::new(),
            adding_replicas: Vec::new(),
            elr: Vec::new(),
            last_known_elr: Vec::new(),
            leader: NodeId(1),
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            recovery: metadata::LeaderRecovery::Recovered,
        }
    }

    #[test]
    fn a_leader_is_told_where_it_can_be_reached() {
        let view = PartitionView::of(&image(false), &partition(), "PLAINTEXT", true);
        assert_eq!((view.error, view.leader), (ErrorCode::None, NodeId(1)));
        assert_eq!(view.offline, [NodeId(2)], "no such broker");
    }

    #[test]
    fn a_leader_that_is_fenced_or_not_on_the_listener_is_not_available() {
        let error =
            |image: Image, listener, knows| PartitionView::of(&image, &partition(), listener, knows).error;
        assert_eq!(error(image(true), "PLAINTEXT", true), ErrorCode::LeaderNotAvailable);
        assert_eq!(error(image(false), "OTHER", true), ErrorCode::ListenerNotFound);
        assert_eq!(error(image(false), "OTHER", false), ErrorCode::LeaderNotAvailable);
    }
}
