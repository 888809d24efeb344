//! This broker's registration: a new epoch at each start, then the leaderships.
//!
//! Partitions are opened once, when the registration is committed and the broker is unfenced: before that the metadata
//! still says what the last run was.
//!
//! Kafka: `BrokerLifecycleManager`; KIP-631.

use controller::{Decision, Registration};
use model::BrokerEpoch;
use tracing::info;

use crate::{Cluster, ClusterError};

/// Why the broker was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// The controller is not here.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The controller refused.
    #[error(transparent)]
    Refused(#[from] controller::BrokerError),
}

/// Registers this broker, unfences it, and opens its partitions. Its broker epoch.
///
/// # Errors
/// The controller refused, or the node is ending.
pub async fn register(
    cluster: &Cluster,
    registration: Registration,
) -> Result<BrokerEpoch, RegistrationError> {
    cluster.decide(controller::Controller::bootstrap).await?;
    let id = registration.id;
    let epoch = cluster
        .decide(move |controller| controller.register_broker(&registration, controller.image().end()))
        .await??;
    cluster.decide(move |controller| -> Decision<_> { controller.unfence_broker(id, epoch) }).await??;
    cluster.open_partitions().await?;
    info!(broker_epoch = %epoch, "the broker is registered");
    Ok(epoch)
}
