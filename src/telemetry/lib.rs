//! What a node counts, and how Prometheus reads it.
//!
//! The names are a table ([`metrics`]) in the dialect of Kafka's jmx_exporter and Strimzi, so that the dashboards and
//! alerts that people have keep working. A [`Registry`] is handed around: there is no global one, so two nodes in one
//! process count apart. Whoever counts asks once for a [`Counter`], [`Gauge`] or [`Summary`] and keeps it; counting is one
//! atomic addition.
//!
//! Invariants: a name has one type and one list of labels; a metric has a bounded number of series, whatever a client names its
//! topics; what nobody counts is not shown, rather than shown as zero.
//!
//! Kafka: `KafkaMetricsGroup`, `BrokerTopicMetrics`, `RequestMetrics`; the rules of jmx_exporter's `kafka-kraft-3_0_0.yml`.

pub mod metrics;
mod registry;
mod summary;
mod text;
mod value;

pub use metrics::Metric;
pub use registry::Registry;
pub use summary::Summary;
pub use value::{Counter, Gauge, Value};
