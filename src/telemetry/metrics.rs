//! The table of all metrics.

use std::marker::PhantomData;

use crate::{Counter, Gauge, Summary};

/// A metric of type `T` with `LABELS` labels.
#[derive(Clone, Copy, Debug)]
pub struct Metric<T, const LABELS: usize> {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) labels: [&'static str; LABELS],
    /// What is counted is shown divided by this: microseconds counted, milliseconds shown.
    pub(crate) divisor: u32,
    value: PhantomData<fn() -> T>,
}

const fn count(labels: &[&str]) -> usize {
    labels.len()
}

macro_rules! metrics {
    ($($metric:ident: $value:ty = $name:literal $([$($label:literal),*])? $(/ $divisor:literal)?, $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $metric: Metric<$value, { count(&[$($($label),*)?]) }> = Metric {
                name: $name,
                help: $help,
                labels: [$($($label),*)?],
                divisor: 1 $(* $divisor)?,
                value: PhantomData,
            };
        )*

        /// Name, labels and help of all of them.
        #[cfg(test)]
        const ALL: &[(&str, &[&str], &str)] = &[$(($name, &[$($($label),*)?], $help),)*];
    };
}

// Counters of a topic are shown per topic, and once without the label for all topics together: give "" for that.
metrics! {
    MESSAGES_IN: Counter = "kafka_server_brokertopicmetrics_messagesin_total" ["topic"],
        "Records that producers appended.";
    BYTES_IN: Counter = "kafka_server_brokertopicmetrics_bytesin_total" ["topic"],
        "Bytes of record batches that producers appended.";
    BYTES_OUT: Counter = "kafka_server_brokertopicmetrics_bytesout_total" ["topic"],
        "Bytes of record batches that consumers fetched.";
    BYTES_REJECTED: Counter = "kafka_server_brokertopicmetrics_bytesrejected_total" ["topic"],
        "Bytes of record batches that were refused because they are too large.";
    PRODUCE_REQUESTS: Counter = "kafka_server_brokertopicmetrics_totalproducerequests_total" ["topic"],
        "Produce requests, once for each partition in them.";
    FETCH_REQUESTS: Counter = "kafka_server_brokertopicmetrics_totalfetchrequests_total" ["topic"],
        "Fetch requests, once for each partition that was read.";
    PRODUCE_REQUESTS_FAILED: Counter = "kafka_server_brokertopicmetrics_failedproducerequests_total" ["topic"],
        "Produce requests that failed, once for each partition that did.";
    FETCH_REQUESTS_FAILED: Counter = "kafka_server_brokertopicmetrics_failedfetchrequests_total" ["topic"],
        "Fetch requests that failed, once for each partition that did.";

    REQUESTS: Counter = "kafka_network_requestmetrics_requests_total" ["request", "version"],
        "Requests that were answered.";
    REQUEST_ERRORS: Counter = "kafka_network_requestmetrics_errors_total" ["request", "error"],
        "Errors in answers, with NONE for answers without any.";
    REQUEST_TIME: Summary = "kafka_network_requestmetrics_totaltimems" ["request"] / 1000,
        "Milliseconds from a request's last byte to its answer.";
    REQUEST_LOCAL_TIME: Summary = "kafka_network_requestmetrics_localtimems" ["request"] / 1000,
        "Milliseconds that a request took up to its ordered point.";
    REQUEST_REMOTE_TIME: Summary = "kafka_network_requestmetrics_remotetimems" ["request"] / 1000,
        "Milliseconds that a request waited behind its ordered point, for disks and followers.";

    CONNECTIONS: Gauge = "kafka_server_socket_server_metrics_connection_count" ["listener"],
        "Connections that are open.";
    CONNECTIONS_CREATED: Counter = "kafka_server_socket_server_metrics_connection_creation_total" ["listener"],
        "Connections that were accepted.";
    CONNECTIONS_CLOSED: Counter = "kafka_server_socket_server_metrics_connection_close_total" ["listener"],
        "Connections that were closed, by either side.";

    LOG_SIZE: Gauge = "kafka_log_log_size" ["topic", "partition"],
        "Bytes of a partition's segments.";
    LOG_START_OFFSET: Gauge = "kafka_log_log_logstartoffset" ["topic", "partition"],
        "The first offset that can be read.";
    LOG_END_OFFSET: Gauge = "kafka_log_log_logendoffset" ["topic", "partition"],
        "The offset that the next record gets.";
    LOG_SEGMENTS: Gauge = "kafka_log_log_numlogsegments" ["topic", "partition"],
        "Segments of a partition.";
    LOG_FLUSH_TIME: Summary = "kafka_log_logflushstats_logflushrateandtimems" / 1000,
        "Milliseconds that a flush of one log took; its count is the number of flushes.";
    LOG_FOLDERS_OFFLINE: Gauge = "kafka_log_logmanager_offlinelogdirectorycount",
        "Log folders that failed and are no longer used.";
    LOG_FOLDER_OFFLINE: Gauge = "kafka_log_logmanager_logdirectoryoffline" ["logDirectory"],
        "1 where the log folder failed and is no longer used.";

    PARTITIONS: Gauge = "kafka_server_replicamanager_partitioncount",
        "Partitions with a replica on this node.";
    LEADERS: Gauge = "kafka_server_replicamanager_leadercount",
        "Partitions that this node leads.";
    REPLICAS_OFFLINE: Gauge = "kafka_server_replicamanager_offlinereplicacount",
        "Replicas on this node that cannot be used.";
    UNDER_REPLICATED: Gauge = "kafka_server_replicamanager_underreplicatedpartitions",
        "Partitions led here whose ISR is smaller than their replica set.";
    UNDER_MIN_ISR: Gauge = "kafka_server_replicamanager_underminisrpartitioncount",
        "Partitions led here whose ISR is smaller than min.insync.replicas.";

    CONTROLLER_ACTIVE: Gauge = "kafka_controller_kafkacontroller_activecontrollercount",
        "1 where this node is the active controller.";
    TOPICS: Gauge = "kafka_controller_kafkacontroller_globaltopiccount",
        "Topics of the cluster, as the controller knows them.";
    PARTITIONS_GLOBAL: Gauge = "kafka_controller_kafkacontroller_globalpartitioncount",
        "Partitions of the cluster, as the controller knows them.";
    PARTITIONS_OFFLINE: Gauge = "kafka_controller_kafkacontroller_offlinepartitionscount",
        "Partitions without a leader.";
    BROKERS_ACTIVE: Gauge = "kafka_controller_kafkacontroller_activebrokercount",
        "Brokers that are registered and not fenced.";
    BROKERS_FENCED: Gauge = "kafka_controller_kafkacontroller_fencedbrokercount",
        "Brokers that are registered and fenced.";

    RAFT_LEADER: Gauge = "kafka_server_raftmetrics_current_leader",
        "The node that leads the metadata quorum; -1 where none is known.";
    RAFT_EPOCH: Gauge = "kafka_server_raftmetrics_current_epoch",
        "The epoch of the metadata quorum.";
    RAFT_HIGH_WATERMARK: Gauge = "kafka_server_raftmetrics_high_watermark",
        "The high watermark of the metadata log.";
    RAFT_LOG_END_OFFSET: Gauge = "kafka_server_raftmetrics_log_end_offset",
        "The end of the metadata log on this node.";

    GROUPS: Gauge = "kafka_coordinator_group_groupmetadatamanager_numgroups",
        "Classic groups that this node coordinates.";
    GROUPS_STABLE: Gauge = "kafka_coordinator_group_groupmetadatamanager_numgroupsstable",
        "Classic groups whose members have their assignments.";
    GROUPS_EMPTY: Gauge = "kafka_coordinator_group_groupmetadatamanager_numgroupsempty",
        "Classic groups without members.";
    GROUPS_DEAD: Gauge = "kafka_coordinator_group_groupmetadatamanager_numgroupsdead",
        "Classic groups that are being removed.";
    GROUPS_PREPARING_REBALANCE: Gauge = "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance",
        "Classic groups that wait for members to join.";
    GROUPS_COMPLETING_REBALANCE: Gauge = "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance",
        "Classic groups that wait for their leader's assignment.";

    BROKER_STATE: Gauge = "kafka_server_kafkaserver_brokerstate",
        "1 starting, 2 recovering, 3 running, 6 shutting down.";
    PROCESS_OPEN_FILES: Gauge = "process_open_fds",
        "Open file descriptors.";
    PROCESS_CPU: Counter = "process_cpu_seconds_total" / 1000,
        "User and system CPU time in seconds.";
    PROCESS_MEMORY: Gauge = "process_resident_memory_bytes",
        "Resident memory in bytes.";
    SERIES_REFUSED: Counter = "ottla_telemetry_seriesrefused_total",
        "Series that are not shown because their metric has too many.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_stands_once() {
        let names: BTreeSet<&str> = ALL.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn every_name_is_one_that_prometheus_takes() {
        for (name, labels, help) in ALL {
            for word in std::iter::once(name).chain(*labels) {
                assert!(word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{word}");
            }
            assert!(help.ends_with('.'), "{name}");
        }
    }
}
