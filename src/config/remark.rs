//! What a person should know of a configuration that is not wrong: said once at start, grouped.

use std::collections::BTreeMap;

use metadata::config::Accepted;

/// One group of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// Kafka has them, Ottla does not need them.
    NotNeeded(Vec<String>),
    /// Ottla knows them and does nothing with them yet.
    Later(Vec<String>),
    /// Nobody has them; each perhaps with the key that was meant.
    Unknown(Vec<String>),
}

/// Collects the groups.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    not_needed: Vec<String>,
    later: Vec<String>,
    unknown: BTreeMap<String, Option<&'static str>>,
}

impl Remarks {
    /// A key was accepted, in one way or another.
    pub(super) fn accepted(&mut self, key: &str, accepted: Accepted) {
        match accepted {
            Accepted::Used => {}
            Accepted::Later => self.later.push(key.to_owned()),
            Accepted::NotNeeded => self.not_needed.push(key.to_owned()),
        }
    }

    /// A key is nobody's.
    pub(super) fn unknown(&mut self, key: String, near: Option<&'static str>) {
        self.unknown.insert(key, near);
    }

    /// The groups that have keys.
    pub(super) fn into_all(self) -> Vec<Remark> {
        let meant = |(key, near): (String, Option<&str>)| match near {
            Some(near) => format!("{key} (did you mean {near}?)"),
            None => key,
        };
        let unknown = self.unknown.into_iter().map(meant).collect();
        let all = [Remark::NotNeeded(self.not_needed), Remark::Later(self.later), Remark::Unknown(unknown)];
        all.into_iter().filter(|remark| !remark.keys().is_empty()).collect()
    }
}

impl Remark {
    /// The keys.
    pub fn keys(&self) -> &[String] {
        match self {
            Self::NotNeeded(keys) | Self::Later(keys) | Self::Unknown(keys) => keys,
        }
    }

    /// What there is to say of them.
    pub fn what(&self) -> &'static str {
        match self {
            Self::NotNeeded(_) => "configurations of Kafka that Ottla does not need are ignored",
            Self::Later(_) => "configurations that this version knows and does not act on",
            Self::Unknown(_) => "unknown configurations are ignored",
        }
    }
}
