//! Prometheus' text format.
//!
//! A summary is shown as jmx_exporter shows a histogram of Kafka: `name{quantile="0.50"}` and so on, `name_count`, and
//! `name_sum` besides, which Kafka does not have.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::registry::Family;
use crate::value::Cell;

/// As Kafka's dashboards write them: text, because 0.5 is not "0.50" to them.
const QUANTILES: [&str; 6] = ["0.50", "0.75", "0.95", "0.98", "0.99", "0.999"];
const QUANTILE_PARTS: [f64; 6] = [0.5, 0.75, 0.95, 0.98, 0.99, 0.999];

pub(crate) fn encode(families: &BTreeMap<&'static str, Family>) -> String {
    let mut text = String::new();
    for (name, family) in families {
        let Some(any) = family.series.values().next() else { continue };
        line(&mut text, format_args!("# HELP {name} {}", family.help));
        line(&mut text, format_args!("# TYPE {name} {}", type_of(any)));
        for (values, cell) in &family.series {
            let labels = label_pairs(&family.labels, values);
            put_series(&mut text, name, &labels, family.divisor, cell);
        }
    }
    text
}

fn type_of(cell: &Cell) -> &'static str {
    match cell {
        Cell::Counter(_) => "counter",
        Cell::Gauge(_) => "gauge",
        Cell::Summary(_) => "summary",
    }
}

fn put_series(text: &mut String, name: &str, labels: &[String], divisor: u32, cell: &Cell) {
    let braced = braces(labels);
    let divided = |number: f64| number / f64::from(divisor);
    match cell {
        Cell::Gauge(gauge) => line(text, format_args!("{name}{braced} {}", divided(gauge.get() as f64))),
        Cell::Counter(counter) => {
            line(text, format_args!("{name}{braced} {}", divided(counter.get() as f64)));
        }
        Cell::Summary(summary) => {
            for (quantile, micros) in QUANTILES.iter().zip(summary.quantiles(QUANTILE_PARTS)) {
                let with_quantile = [labels, &[format!("quantile=\"{quantile}\"")]].concat();
                let (braced, value) = (braces(&with_quantile), divided(micros as f64));
                line(text, format_args!("{name}{braced} {value}"));
            }
            line(text, format_args!("{name}_sum{braced} {}", divided(summary.sum_micros() as f64)));
            line(text, format_args!("{name}_count{braced} {}", summary.count()));
        }
    }
}

fn label_pairs(labels: &[&str], values: &[String]) -> Vec<String> {
    let given = labels.iter().zip(values).filter(|(_, value)| !value.is_empty());
    given.map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect()
}

fn braces(labels: &[String]) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _ = writeln!(text, "{arguments}");
}

#[cfg(test)]
mod tests {
    use crate::{Registry, metrics};
    use std::time::Duration;

    #[test]
    fn the_text_is_what_prometheus_and_kafkas_dashboards_read() {
        let registry = Registry::new();
        registry.get(&metrics::BYTES_IN, [""]).add(7);
        registry.get(&metrics::BYTES_IN, ["a\"b"]).add(5);
        registry.get(&metrics::RAFT_LEADER, []).set(-1);
        registry.get(&metrics::PROCESS_CPU, []).follow(1500);
        let summary = registry.get(&metrics::LOG_FLUSH_TIME, []);
        (0..4).for_each(|_| summary.record(Duration::from_micros(7)));
        let expected = r#"# HELP kafka_log_logflushstats_logflushrateandtimems Milliseconds that a flush of one log took; its count is the number of flushes.
# TYPE kafka_log_logflushstats_logflushrateandtimems summary
kafka_log_logflushstats_logflushrateandtimems{quantile="0.50"} 0.007
kafka_log_logflushstats_logflushrateandtimems{quantile="0.75"} 0.007
kafka_log_logflushstats_logflushrateandtimems{quantile="0.95"} 0.007
kafka_log_logflushstats_logflushrateandtimems{quantile="0.98"} 0.007
kafka_log_logflushstats_logflushrateandtimems{quantile="0.99"} 0.007
kafka_log_logflushstats_logflushrateandtimems{quantile="0.999"} 0.007
kafka_log_logflushstats_logflushrateandtimems_sum 0.028
kafka_log_logflushstats_logflushrateandtimems_count 4
# HELP kafka_server_brokertopicmetrics_bytesin_total Bytes of record batches that producers appended.
# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total 7
kafka_server_brokertopicmetrics_bytesin_total{topic="a\"b"} 5
# HELP kafka_server_raftmetrics_current_leader The node that leads the metadata quorum; -1 where none is known.
# TYPE kafka_server_raftmetrics_current_leader gauge
kafka_server_raftmetrics_current_leader -1
# HELP process_cpu_seconds_total User and system CPU time in seconds.
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.5
"#;
        assert_eq!(registry.text(), expected);
    }
}
