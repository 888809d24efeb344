//! What can be counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::Summary;

/// A number that only grows. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicU64>);

/// A number that goes up and down. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<AtomicI64>);

impl Counter {
    /// `count` more.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Follows a counter that somebody else keeps, such as the kernel; never goes back.
    pub fn follow(&self, total: u64) {
        self.0.fetch_max(total, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Gauge {
    /// It is `number` now.
    pub fn set(&self, number: i64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// `change` more, or less where it is negative.
    pub fn add(&self, change: i64) {
        self.0.fetch_add(change, Ordering::Relaxed);
    }

    /// What it is.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A counter, a gauge or a summary: what a [`crate::Registry`] gives out.
pub trait Value: Clone + Default + sealed::Sealed {
    #[doc(hidden)]
    fn into_cell(self) -> Cell;
    #[doc(hidden)]
    fn of_cell(cell: &Cell) -> Option<Self>;
}

/// One of the three, as the registry keeps it.
#[derive(Clone, Debug)]
pub enum Cell {
    /// A counter.
    Counter(Counter),
    /// A gauge.
    Gauge(Gauge),
    /// A summary.
    Summary(Summary),
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! values {
    ($($value:ident)*) => {$(
        impl sealed::Sealed for $value {}

        impl Value for $value {
            fn into_cell(self) -> Cell {
                Cell::$value(self)
            }

            fn of_cell(cell: &Cell) -> Option<Self> {
                match cell {
                    Cell::$value(value) => Some(value.clone()),
                    _ => None,
                }
            }
        }
    )*};
}

values! { Counter Gauge Summary }
