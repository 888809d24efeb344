//! This broker's registration: a new epoch at each start, then the leaderships.
//!
//! Logs are opened meanwhile. Partitions are led when the registration is committed and the broker is unfenced: before
//! that the metadata still says what the last run was.
//!
//! Kafka: `BrokerLifecycleManager`; KIP-631.

use controller::{Controller, Heartbeat, Registration};
use model::{BrokerEpoch, Offset};
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
    // With its answer everything that was committed before is known here: no log is taken for a stray.
    cluster.decide(Controller::bootstrap).await?;
    let ((), epoch) = tokio::join!(cluster.open_logs(), unfenced(cluster, registration));
    let epoch = epoch?;
    cluster.open_partitions().await?;
    info!(broker_epoch = %epoch, "the broker is registered");
    Ok(epoch)
}

async fn unfenced(cluster: &Cluster, registration: Registration) -> Result<BrokerEpoch, RegistrationError> {
    let (id, connection) = (registration.id, registration.connection);
    let epoch = cluster
        .decide_at(move |controller, now| {
            let log_end = controller.image().end();
            controller.register_broker(&registration, log_end, now)
        })
        .await??;
    cluster.registered(epoch);
    let heartbeat = Heartbeat {
        id,
        epoch,
        metadata_offset: Offset(epoch.0),
        want_fence: false,
        want_shut_down: false,
        offline_directories: Vec::new(),
        lost: Vec::new(),
        connection,
    };
    cluster.decide_at(move |controller, now| controller.heartbeat(&heartbeat, now)).await??;
    Ok(epoch)
}
