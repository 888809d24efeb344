//! A small cluster for the tests of this room.

use metadata::config::BrokerConfig;
use metadata::{Broker, Image};
use model::{BrokerEpoch, ClusterId, Instant, NodeId, Offset, Uuid};
use protocol::records::metadata::{FeatureLevelRecord, MetadataRecord};

use crate::{Config, ConnectionId, Controller, Decision, Heartbeat};

/// When tests happen that have nothing to do with time.
pub(crate) const NOW: Instant = Instant(0);

/// Brokers of these numbers, active and fenced, each with one log folder.
pub(crate) fn cluster(active: &[i32], fenced: &[i32]) -> Image {
    let all = active.iter().map(|id| broker(*id, false)).chain(fenced.iter().map(|id| broker(*id, true)));
    let mut records: Vec<MetadataRecord> = all.map(|broker| broker.to_record().into()).collect();
    records.push(FeatureLevelRecord { name: metadata::ELR_VERSION.into(), feature_level: 1 }.into());
    Image::default().apply(&records, Offset(100)).expect("records that fit").0
}

fn broker(id: i32, fenced: bool) -> Broker {
    Broker {
        id: NodeId(id),
        epoch: BrokerEpoch(i64::from(id) * 10),
        incarnation: Uuid([9; 16]),
        endpoints: Vec::new(),
        features: Vec::new(),
        rack: None,
        fenced,
        in_controlled_shutdown: false,
        directories: vec![folder(id)],
        cordoned_directories: None,
    }
}

/// The log folder of a broker.
pub(crate) fn folder(id: i32) -> Uuid {
    Uuid([id as u8 + 100; 16])
}

/// A controller of that cluster.
pub(crate) fn controller(active: &[i32], fenced: &[i32]) -> Controller {
    controller_at(cluster(active, fenced))
}

/// A controller that begins at this image.
pub(crate) fn controller_at(image: Image) -> Controller {
    let config =
        Config { node: NodeId(1), cluster_id: ClusterId::from("c"), broker: BrokerConfig::default() };
    Controller::new(image, config, NOW)
}

/// Applies what was decided and gives back the reply.
pub(crate) fn commit<R>(controller: &mut Controller, decision: Decision<R>) -> R {
    let end = controller.image().end().plus(decision.records.len() as i64);
    let (image, _) = controller.image().apply(&decision.records, end).expect("a decision fits its image");
    controller.advance(image);
    decision.reply
}

/// A heartbeat of a broker that has all metadata and wants to be unfenced.
pub(crate) fn heartbeat(controller: &Controller, id: i32) -> Heartbeat {
    let epoch = controller.image().brokers.get(NodeId(id)).map_or(BrokerEpoch(-1), |broker| broker.epoch);
    Heartbeat {
        id: NodeId(id),
        epoch,
        metadata_offset: Offset(controller.image().end().0 - 1),
        want_fence: false,
        want_shut_down: false,
        offline_directories: Vec::new(),
        lost: Vec::new(),
        connection: ConnectionId(id as u64),
    }
}

/// Random numbers that are none.
pub(crate) fn counter() -> impl FnMut() -> u64 {
    let mut n = 0;
    move || {
        n += 1;
        n
    }
}
