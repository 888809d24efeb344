//! The differences between Ottla and Apache Kafka that are meant. The reader's copy of this table is the section
//! "Differences" of README.md.

/// A difference that is no fault.
struct Explained {
    /// What the case's name begins with.
    case: &'static str,
    /// What the difference holds.
    difference: &'static str,
    /// Why it stays.
    #[expect(dead_code, reason = "for the reader")]
    reason: &'static str,
}

const EXPLAINED: &[Explained] = &[];

/// Whether a difference of a case is meant.
pub(crate) fn is_explained(case: &str, difference: &str) -> bool {
    EXPLAINED.iter().any(|row| case.starts_with(row.case) && difference.contains(row.difference))
}
