//! What a node says when it starts: who it is, where its data lies, where it listens and what it tells its clients.
//!
//! Two of the lines are waited for by tools, word for word: Testcontainers wants `Transitioning from RECOVERY to RUNNING`
//! or `Kafka Server started`, each once, when clients can connect.
//!
//! Kafka: `BrokerServer`, `KafkaRaftServer`.

use model::{ClusterId, NodeId};
use tracing::{info, warn};

use crate::config::{Config, unreachable};

/// Before anything is opened.
pub(crate) fn starting(config: &Config) {
    let data = config.log_dirs().iter().map(|dir| absolute(dir)).collect::<Vec<_>>().join(", ");
    info!(version = env!("CARGO_PKG_VERSION"), node_id = config.node_id().0, data, "Ottla starts");
    if let Some(bytes) = config.memory.limit() {
        info!(mib = bytes >> 20, tail_cache_mib = config.memory.tail_bytes() >> 20, "memory limit");
    }
    for listener in &config.listeners {
        let told = listener.advertised.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
        info!(name = listener.name, address = %listener.bind, clients_are_told = told, "listener");
    }
    for remark in &config.remarks {
        warn!(keys = remark.keys().join(", "), "{}", remark.what());
    }
}

/// Looks whether clients can reach what they are told, on a thread of its own: a name may take seconds to not resolve.
pub(crate) fn check_reach(config: &Config) {
    let (listeners, in_container) = (config.listeners.clone(), config.in_container);
    #[expect(
        clippy::disallowed_methods,
        reason = "it only logs, belongs to no node and is never waited for"
    )]
    std::thread::spawn(move || {
        for doubt in unreachable(&listeners, in_container) {
            let told = doubt.told.to_string();
            warn!(
                name = doubt.listener,
                clients_are_told = told,
                why = doubt.why,
                "clients may not reach a listener"
            );
        }
    });
}

/// All listeners serve.
pub(crate) fn running(node_id: NodeId, cluster_id: &ClusterId) {
    info!(node_id = node_id.0, cluster_id = %cluster_id, "Transitioning from RECOVERY to RUNNING");
    info!(node_id = node_id.0, "Kafka Server started");
}

fn absolute(dir: &std::path::Path) -> String {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned()).display().to_string()
}
