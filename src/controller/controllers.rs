//! Controllers that make themselves known, so that clients find all of them at any of them.
//!
//! Kafka: `ClusterControlManager.registerController`; KIP-919.

use model::NodeId;
use protocol::records::metadata::RegisterControllerRecord;

use crate::{Controller, Decision};

impl Controller {
    /// Registers a controller as it describes itself; one that is known as that already is no change.
    pub fn register_controller(&self, registration: RegisterControllerRecord) -> Decision<()> {
        let id = NodeId(registration.controller_id);
        let known = self.image.brokers.controllers().find(|known| NodeId(known.controller_id) == id);
        let records = match known {
            Some(known) if *known == registration => Vec::new(),
            _ => vec![registration.into()],
        };
        Decision { records, reply: () }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{commit, controller};

    #[test]
    fn a_controller_is_registered_once_for_each_run() {
        let mut controller = controller(&[1], &[]);
        let run = |incarnation| RegisterControllerRecord {
            controller_id: 3,
            incarnation_id: model::Uuid([incarnation; 16]),
            ..RegisterControllerRecord::default()
        };
        for (incarnation, records) in [(1, 1), (1, 0), (2, 1)] {
            let decision = controller.register_controller(run(incarnation));
            assert_eq!(decision.records.len(), records);
            commit(&mut controller, decision);
        }
    }
}
