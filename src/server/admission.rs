//! How many connections there may be, in all and of one address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use model::Map;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Counts connections.
pub(crate) struct Admission {
    all: Arc<Semaphore>,
    of_address: Mutex<BTreeMap<IpAddr, usize>>,
    of_address_max: usize,
    overrides: Map<IpAddr, usize>,
}

/// A place for one connection, free again when dropped.
pub(crate) struct Place {
    admission: Arc<Admission>,
    address: IpAddr,
    _all: OwnedSemaphorePermit,
}

impl Admission {
    pub(crate) fn new(max: usize, of_address_max: usize, overrides: Map<IpAddr, usize>) -> Arc<Self> {
        let all = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { all, of_address: Mutex::default(), of_address_max, overrides })
    }

    /// Waits until there may be one connection more.
    pub(crate) async fn wait(&self) -> OwnedSemaphorePermit {
        match Arc::clone(&self.all).acquire_owned().await {
            Ok(permit) => permit,
            // It is never closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// A place for a connection from `address`; `None` where there are too many of it.
    pub(crate) fn admit(self: &Arc<Self>, permit: OwnedSemaphorePermit, address: IpAddr) -> Option<Place> {
        let max = self.overrides.get(&address).copied().unwrap_or(self.of_address_max);
        let mut counts = self.of_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= max {
            if *count == 0 {
                counts.remove(&address);
            }
            return None;
        }
        *count += 1;
        Some(Place { admission: Arc::clone(self), address, _all: permit })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.admission.of_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    #[tokio::test]
    async fn an_address_has_so_many_places_and_gets_them_back() {
        let overrides = Map::from_iter([(B, 0)]);
        let admission = Admission::new(10, 2, overrides);
        let first = admission.admit(admission.wait().await, A);
        let second = admission.admit(admission.wait().await, A);
        assert!(first.is_some() && second.is_some());
        assert!(admission.admit(admission.wait().await, A).is_none());
        assert!(admission.admit(admission.wait().await, B).is_none());
        drop(first);
        assert!(admission.admit(admission.wait().await, A).is_some());
        drop(second);
        assert_eq!(admission.of_address.lock().unwrap().len(), 0);
        assert_eq!(admission.all.available_permits(), 10);
    }
}
