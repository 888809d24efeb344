//! The series of one node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::value::Cell;
use crate::{Counter, Metric, Value, metrics, text};

/// Series of one metric that are shown; whoever asks for more counts unseen.
const SERIES_MAX: usize = 10_000;

/// All that one node counts. Clones are the same registry.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    families: Arc<Mutex<BTreeMap<&'static str, Family>>>,
}

/// One metric with all its series, by the values of its labels.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) help: &'static str,
    pub(crate) labels: Vec<&'static str>,
    pub(crate) divisor: u32,
    pub(crate) series: BTreeMap<Vec<String>, Cell>,
}

impl Registry {
    /// With nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The series of `metric` with these label values, in the table's order; the same one for everybody who asks. An
    /// empty value means "without this label". Ask once and keep it: this takes a lock.
    pub fn get<T: Value, const N: usize>(&self, metric: &Metric<T, N>, values: [&str; N]) -> T {
        let key: Vec<String> = values.iter().map(ToString::to_string).collect();
        let mut families = self.families();
        let family = families.entry(metric.name).or_insert_with(|| Family::of(metric));
        if let Some(value) = family.series.get(&key).and_then(T::of_cell) {
            return value;
        }
        let value = T::default();
        if family.series.len() < SERIES_MAX {
            family.series.insert(key, value.clone().into_cell());
            return value;
        }
        drop(families);
        self.refused().add(1);
        value
    }

    /// Drops every series whose label `label` has this value: the topic was deleted, the listener closed.
    pub fn forget(&self, label: &str, value: &str) {
        for family in self.families().values_mut() {
            if let Some(at) = family.labels.iter().position(|name| *name == label) {
                family.series.retain(|values, _| values[at] != value);
            }
        }
    }

    /// Begins another window of every summary; call it once a minute.
    pub fn rotate(&self) {
        for family in self.families().values() {
            for cell in family.series.values() {
                if let Cell::Summary(summary) = cell {
                    summary.rotate();
                }
            }
        }
    }

    /// Everything in Prometheus' text format, version 0.0.4.
    pub fn text(&self) -> String {
        text::encode(&self.families())
    }

    fn refused(&self) -> Counter {
        self.get(&metrics::SERIES_REFUSED, [])
    }

    // Nothing in here can stop half-way and leave the map wrong.
    fn families(&self) -> MutexGuard<'_, BTreeMap<&'static str, Family>> {
        self.families.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Family {
    fn of<T, const N: usize>(metric: &Metric<T, N>) -> Self {
        Self {
            help: metric.help,
            labels: metric.labels.to_vec(),
            divisor: metric.divisor,
            series: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_twice_counts_together() {
        let registry = Registry::new();
        registry.get(&metrics::BYTES_IN, ["orders"]).add(2);
        registry.clone().get(&metrics::BYTES_IN, ["orders"]).add(3);
        registry.get(&metrics::BYTES_IN, ["other"]).add(9);
        assert_eq!(registry.get(&metrics::BYTES_IN, ["orders"]).get(), 5);
    }

    #[test]
    fn a_deleted_topic_is_forgotten_everywhere() {
        let registry = Registry::new();
        registry.get(&metrics::BYTES_IN, ["orders"]).add(2);
        registry.get(&metrics::LOG_SIZE, ["orders", "0"]).set(2);
        registry.get(&metrics::LOG_SIZE, ["other", "0"]).set(7);
        registry.forget("topic", "orders");
        let text = registry.text();
        assert!(!text.contains("orders") && text.contains("other"), "{text}");
    }

    #[test]
    fn clients_cannot_make_a_metric_grow_without_end() {
        let registry = Registry::new();
        for i in 0..=SERIES_MAX {
            registry.get(&metrics::BYTES_IN, [&i.to_string()]).add(1);
        }
        let text = registry.text();
        assert!(text.contains("ottla_telemetry_seriesrefused_total 1\n"));
        assert_eq!(text.matches("bytesin_total{").count(), SERIES_MAX);
    }
}
