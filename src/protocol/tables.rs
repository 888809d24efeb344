//! The list of Kafka 4.4's APIs.
//!
//! Kafka: `org.apache.kafka.common.protocol.ApiKeys`.

pub use crate::generated::apis::APIS;
use crate::schema::ApiSpec;

/// The API of this key, if Kafka 4.4 has one.
pub fn api(key: i16) -> Option<&'static ApiSpec> {
    let found = APIS.binary_search_by_key(&key, |api| api.key).ok()?;
    APIS.get(found)
}
