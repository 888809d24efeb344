//! How the tables of keys are written down: two lines a key.

macro_rules! default_value {
    (null) => {
        None
    };
    ($text:literal) => {
        Some($text)
    };
}

macro_rules! topic_keys {
    ($($name:literal $kind:ident $default:tt $validator:expr, [$($broker:literal),*], $used:ident => $doc:literal;)*) => {
        &[$(ConfigKey {
            name: $name,
            kind: ConfigType::$kind,
            default: default_value!($default),
            validator: $validator,
            update: UpdateMode::ClusterWide,
            broker_keys: &[$($broker),*],
            used: matches!(Standing::$used, Standing::Used),
            doc: $doc,
        }),*]
    };
}

macro_rules! broker_keys {
    ($($name:literal $kind:ident $default:tt $validator:expr, $update:ident, $used:ident => $doc:literal;)*) => {
        &[$(ConfigKey {
            name: $name,
            kind: ConfigType::$kind,
            default: default_value!($default),
            validator: $validator,
            update: UpdateMode::$update,
            broker_keys: &[],
            used: matches!(Standing::$used, Standing::Used),
            doc: $doc,
        }),*]
    };
}

pub(super) use {broker_keys, default_value, topic_keys};

/// Whether Ottla acts on a key already.
pub(super) enum Standing {
    /// It does.
    Used,
    /// It will, or the key's purpose has another answer here.
    Later,
}
