//! Configuration by environment variables, under the names that the images of Apache Kafka made common.
//!
//! `KAFKA_NUM_PARTITIONS` is `num.partitions`: the prefix goes, `_` is a dot, `__` an underscore, `___` a dash. `OTTLA_`
//! is mapped alike and counts more. `KAFKA_CFG_` (Bitnami's prefix) is `KAFKA_`.
//!
//! What does not count: variables of Kafka's start scripts (heap size, JMX) and of Ottla's image; what Kubernetes injects for a service that
//! is named `kafka` or `ottla` (`KAFKA_PORT=tcp://…`).
//!
//! Kafka: `KafkaDockerWrapper`.

/// One variable that sets a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    /// Its own name.
    pub(crate) name: String,
    /// The key.
    pub(crate) key: String,
    /// The value.
    pub(crate) value: String,
}

/// Variables of start scripts and images, without their prefix.
const OF_SCRIPTS: [&str; 13] = [
    "GC_LOG_OPTS",
    "HEAP_OPTS",
    "HOME",
    "IN_IMAGE",
    "JMX_HOSTNAME",
    "JMX_OPTS",
    "JMX_PORT",
    "JVM_PERFORMANCE_OPTS",
    "LOG4J_OPTS",
    "LOG4J_LOGGERS",
    "LOG4J_ROOT_LOGLEVEL",
    "OPTS",
    "VERSION",
];

const OF_TOOLS: &str = "TOOLS_LOG4J_LOGLEVEL";

/// The variables that set keys, those that count more last.
pub(crate) fn variables(environment: &[(String, String)]) -> Vec<Variable> {
    let mut all = Vec::new();
    for prefix in ["KAFKA_", "OTTLA_"] {
        all.extend(environment.iter().filter_map(|(name, value)| variable(prefix, name, value)));
    }
    all
}

fn variable(prefix: &str, name: &str, value: &str) -> Option<Variable> {
    let rest = name.strip_prefix(prefix)?;
    let rest = rest.strip_prefix("CFG_").unwrap_or(rest);
    if OF_SCRIPTS.contains(&rest) || rest == OF_TOOLS || is_of_a_service(rest, value) {
        return None;
    }
    let key = key_of(rest);
    // Testcontainers for .NET ends its list of listeners with a comma.
    let value = if key.ends_with("listeners") { value.trim_end_matches([',', ' ']) } else { value };
    Some(Variable { name: name.to_owned(), key, value: value.to_owned() })
}

/// Kubernetes' and Docker's links: `…SERVICE_HOST`, `…SERVICE_PORT_NAME`, `…PORT=tcp://…`, `…PORT_9092_TCP_ADDR`.
fn is_of_a_service(rest: &str, value: &str) -> bool {
    let is_link = |part: &str| rest.starts_with(part) || rest.contains(&format!("_{part}"));
    value.starts_with("tcp://")
        || value.starts_with("udp://")
        || is_link("SERVICE_")
        || is_link("PORT_")
        || rest == "PORT"
}

/// `NUM_PARTITIONS` is `num.partitions`, `A__B___C` is `a_b-c`.
fn key_of(rest: &str) -> String {
    let lower = rest.to_lowercase();
    lower.replace("___", "-").replace("__", "\u{0}").replace('_', ".").replace('\u{0}', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let environment: Vec<_> = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        variables(&environment).into_iter().map(|each| (each.key, each.value)).collect()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn underscores_are_dots_and_doubled_ones_themselves() {
        assert_eq!(keys(&[("KAFKA_NUM_PARTITIONS", "3")]), [pair("num.partitions", "3")]);
        assert_eq!(keys(&[("OTTLA_A__B___C_D", "x")]), [pair("a_b-c.d", "x")]);
        assert_eq!(keys(&[("KAFKA_CFG_NODE_ID", "2")]), [pair("node.id", "2")]);
    }

    #[test]
    fn ottlas_variables_come_after_kafkas() {
        let both = [("OTTLA_NODE_ID", "1"), ("KAFKA_NODE_ID", "2")];
        assert_eq!(keys(&both), [pair("node.id", "2"), pair("node.id", "1")]);
    }

    #[test]
    fn variables_of_scripts_and_services_do_not_count() {
        let none = [
            ("KAFKA_HEAP_OPTS", "-Xmx1G"),
            ("KAFKA_LOG4J_ROOT_LOGLEVEL", "INFO"),
            ("KAFKA_PORT", "tcp://10.0.0.1:9092"),
            ("KAFKA_PORT_9092_TCP_ADDR", "10.0.0.1"),
            ("KAFKA_SERVICE_HOST", "10.0.0.1"),
            ("KAFKA_BROKER_SERVICE_PORT", "9092"),
            ("PATH", "/bin"),
        ];
        assert_eq!(keys(&none), []);
    }

    #[test]
    fn a_comma_at_the_end_of_listeners_does_not_count() {
        let listeners = ("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://h:1,");
        assert_eq!(keys(&[listeners]), [pair("advertised.listeners", "PLAINTEXT://h:1")]);
    }
}
