//! Which operations a client may do, as the bits of the answers that tell it.
//!
//! Without an authorizer everybody may do everything.
//!
//! Kafka: `AclEntry.supportedOperations`, `Utils.to32BitField`; KIP-430.

/// The request did not ask.
pub(crate) const NOT_ASKED: i32 = i32::MIN;

const READ: i32 = 1 << 3;
const WRITE: i32 = 1 << 4;
const CREATE: i32 = 1 << 5;
const DELETE: i32 = 1 << 6;
const ALTER: i32 = 1 << 7;
const DESCRIBE: i32 = 1 << 8;
const CLUSTER_ACTION: i32 = 1 << 9;
const DESCRIBE_CONFIGS: i32 = 1 << 10;
const ALTER_CONFIGS: i32 = 1 << 11;
const IDEMPOTENT_WRITE: i32 = 1 << 12;

/// All that can be done to a topic.
pub(crate) const TOPIC: i32 =
    READ | WRITE | CREATE | DELETE | ALTER | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS;

/// All that can be done to a group.
pub(crate) const GROUP: i32 = READ | DELETE | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS;

/// All that can be done to the cluster.
pub(crate) const CLUSTER: i32 =
    CREATE | ALTER | DESCRIBE | CLUSTER_ACTION | DESCRIBE_CONFIGS | ALTER_CONFIGS | IDEMPOTENT_WRITE;

/// `bits` if they were asked for.
pub(crate) fn if_asked(asked: bool, bits: i32) -> i32 {
    if asked { bits } else { NOT_ASKED }
}
