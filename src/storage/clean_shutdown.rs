//! `.kafka_cleanshutdown`: the proof that all logs of a folder were closed in order.
//!
//! ```text
//! {"version":0,"brokerEpoch":17}
//! ```
//!
//! It is written last and removed before any log is touched. Kafka: `CleanShutdownFileHandler`; KIP-966.

use model::BrokerEpoch;

pub(crate) const FILE: &str = ".kafka_cleanshutdown";

/// The file's text.
pub(crate) fn encode(broker_epoch: BrokerEpoch) -> String {
    format!("{{\"version\":0,\"brokerEpoch\":{broker_epoch}}}")
}

/// The broker epoch of the last life; none where the file does not say it, as with an older Kafka's empty file.
pub(crate) fn parse(bytes: &[u8]) -> Option<BrokerEpoch> {
    let content: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    content.get("brokerEpoch")?.as_i64().map(BrokerEpoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_broker_epoch_goes_both_ways() {
        assert_eq!(parse(encode(BrokerEpoch(17)).as_bytes()), Some(BrokerEpoch(17)));
        assert_eq!(parse(br#"{ "brokerEpoch" : -1, "version" : 0 }"#), Some(BrokerEpoch(-1)));
    }

    #[test]
    fn without_an_epoch_it_is_only_a_sign() {
        for text in ["", "{", "{}", "[]", r#"{"brokerEpoch":"x"}"#, "\0\0\0"] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
