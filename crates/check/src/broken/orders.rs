//! Orderings weaker than the contract's, for the loom kit.

use crate::loomed::Orders;
use loom::sync::atomic::Ordering;

/// `compare_exchange` orders nothing.
#[derive(Debug)]
pub enum RelaxedExchange {}
impl Orders for RelaxedExchange {
    const EXCHANGE: Ordering = Ordering::Relaxed;
}

/// `compare_exchange` releases and does not acquire.
#[derive(Debug)]
pub enum ReleaseExchange {}
impl Orders for ReleaseExchange {
    const EXCHANGE: Ordering = Ordering::Release;
}

/// `load_acquire` does not acquire.
#[derive(Debug)]
pub enum RelaxedLoad {}
impl Orders for RelaxedLoad {
    const LOAD: Ordering = Ordering::Relaxed;
}

/// `store_release` does not release.
#[derive(Debug)]
pub enum RelaxedStore {}
impl Orders for RelaxedStore {
    const STORE: Ordering = Ordering::Relaxed;
}
