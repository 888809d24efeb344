//! What clients sent, were told and saw, and what may never be.
//!
//! A record's value is its producer's name and a number that counts its records in that partition. Checked as it comes:
//! one offset has one record, a record has one offset, no observer sees a high watermark or log start go back, a consumer
//! that reads on misses nothing. Checked at the end: everything acknowledged stands where its producer was told, and the
//! records of an idempotent producer are all there, in order.
//!
//! Kafka: the anomalies of Jepsen's workload for it, as far as they concern one node without transactions.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Topic and partition.
pub(crate) type Place = (&'static str, i32);

/// A record by its producer and its number.
pub(crate) type Name = (Arc<str>, u64);

/// All that is known.
#[derive(Default)]
pub(crate) struct Ledger {
    records: BTreeMap<(Place, i64), Name>,
    offsets: BTreeMap<Name, (Place, i64)>,
    acknowledged: BTreeMap<Name, (Place, Option<i64>)>,
    high_watermarks: BTreeMap<(Observer, Place), i64>,
    log_starts: BTreeMap<Place, i64>,
    committed: BTreeMap<(Arc<str>, Place), i64>,
    idempotent: Vec<(Arc<str>, u64)>,
    violations: Vec<String>,
}

/// Who sees a high watermark.
pub(crate) type Observer = u64;

impl Ledger {
    /// A record was acknowledged; a duplicate's answer may lack the offset.
    pub(crate) fn acknowledged(&mut self, name: Name, place: Place, offset: Option<i64>) {
        self.acknowledged.insert(name, (place, offset));
    }

    /// A consumer saw a record.
    pub(crate) fn seen(&mut self, place: Place, offset: i64, name: Name) {
        let before = self.records.insert((place, offset), name.clone());
        if before.as_ref().is_some_and(|before| *before != name) {
            self.violation(format!("{place:?} offset {offset} was {before:?} and is {name:?}"));
        }
        let before = self.offsets.insert(name.clone(), (place, offset));
        if before.is_some_and(|before| before != (place, offset)) {
            self.violation(format!("{name:?} stands at {before:?} and at {place:?} offset {offset}"));
        }
    }

    /// An observer was told where a log begins and what is committed.
    pub(crate) fn bounds(&mut self, observer: Observer, place: Place, log_start: i64, high_watermark: i64) {
        let start_before = self.log_starts.insert(place, log_start).unwrap_or_default();
        let end_before = self.high_watermarks.insert((observer, place), high_watermark).unwrap_or_default();
        if start_before > log_start || end_before > high_watermark || log_start > high_watermark {
            let text =
                format!("{place:?} was {start_before}..{end_before} and is {log_start}..{high_watermark}");
            self.violation(text);
        }
    }

    /// In the end a partition is committed up to here: whatever was seen is below.
    pub(crate) fn end(&mut self, place: Place, high_watermark: i64) {
        let seen =
            self.records.range((place, 0)..=(place, i64::MAX)).next_back().map(|((_, offset), _)| *offset);
        if seen.is_some_and(|seen| seen >= high_watermark) {
            self.violation(format!("{place:?} offset {seen:?} was seen, and its end is {high_watermark}"));
        }
    }

    /// A group's commit was acknowledged. Each group commits rising offsets.
    pub(crate) fn committed(&mut self, group: &Arc<str>, place: Place, offset: i64) {
        self.committed.insert((Arc::clone(group), place), offset);
    }

    /// A group's offset was fetched while nothing was being committed for it but `attempted`.
    pub(crate) fn fetched(&mut self, group: &Arc<str>, place: Place, offset: i64, attempted: i64) {
        let acknowledged = self.committed.get(&(Arc::clone(group), place)).copied().unwrap_or(-1);
        if offset < acknowledged || offset > attempted {
            self.violation(format!(
                "group {group} at {place:?}: {offset} where {acknowledged} was committed and {attempted} tried"
            ));
        }
        // What was read once is committed.
        self.committed.insert((Arc::clone(group), place), offset.max(acknowledged));
    }

    /// Something that may never be.
    pub(crate) fn violation(&mut self, what: String) {
        self.violations.push(what);
    }

    /// How many records were acknowledged.
    pub(crate) fn acknowledged_count(&self) -> usize {
        self.acknowledged.len()
    }

    /// An idempotent producer has ended after so many records: in the end all must be there, in order.
    pub(crate) fn check_later(&mut self, name: &Arc<str>, sent: u64) {
        self.idempotent.push((Arc::clone(name), sent));
    }

    fn check_producer(&mut self, name: &Arc<str>, sent: u64) {
        let mut last = -1;
        for number in 0..sent {
            match self.offsets.get(&(Arc::clone(name), number)) {
                Some((_, offset)) if *offset > last => last = *offset,
                Some((place, offset)) => {
                    let text = format!(
                        "{name} {number} at {place:?} offset {offset} is behind one before it at {last}"
                    );
                    self.violation(text);
                }
                None => self.violation(format!("{name} {number} of {sent} is not there")),
            }
        }
    }

    /// After everything was read to the end: what was wrong.
    pub(crate) fn check(mut self) -> Vec<String> {
        let acknowledged = std::mem::take(&mut self.acknowledged);
        for (name, (place, offset)) in acknowledged {
            let found = self.offsets.get(&name).copied();
            if found.is_none_or(|found| found.0 != place || offset.is_some_and(|offset| offset != found.1)) {
                self.violation(format!(
                    "{name:?} was acknowledged at {place:?} {offset:?}, and is at {found:?}"
                ));
            }
        }
        for (name, sent) in std::mem::take(&mut self.idempotent) {
            self.check_producer(&name, sent);
        }
        self.violations
    }
}
