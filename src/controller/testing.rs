//! A small cluster for the tests of this room.

use metadata::config::BrokerConfig;
use metadata::{Broker, Image};
use model::{BrokerEpoch, NodeId, Offset, Uuid};
use protocol::records::metadata::{FeatureLevelRecord, MetadataRecord};

use crate::{Controller, Decision};

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
    Controller::new(cluster(active, fenced), NodeId(1), BrokerConfig::default())
}

/// Applies what was decided and gives back the reply.
pub(crate) fn commit<R>(controller: &mut Controller, decision: Decision<R>) -> R {
    let end = controller.image().end().plus(decision.records.len() as i64);
    let (image, _) = controller.image().apply(&decision.records, end).expect("a decision fits its image");
    controller.advance(image);
    decision.reply
}

/// Random numbers that are none.
pub(crate) fn counter() -> impl FnMut() -> u64 {
    let mut n = 0;
    move || {
        n += 1;
        n
    }
}
