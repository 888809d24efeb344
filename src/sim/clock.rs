//! A node's clock: it may run fast or slow, and its wall clock may jump.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use env::{BoxFuture, Clock};
use model::{Instant, Timestamp};

use crate::executor::{Executor, NodeKey, Time, lock};

/// A rate that is exact.
const PER_MILLION: u64 = 1_000_000;
/// 2026-01-01 00:00 UTC, when every world begins.
const WALL_START_MS: i64 = 1_767_225_600_000;
const NANOS_PER_MS: u64 = 1_000_000;

#[derive(Clone)]
pub(crate) struct SimClock {
    executor: Arc<Executor>,
    node: NodeKey,
    state: Arc<Mutex<State>>,
}

/// Local time runs in a line from a point, until the rate changes.
struct State {
    world: Time,
    local: u64,
    local_per_million: u64,
    wall_offset_ms: i64,
}

impl SimClock {
    pub(crate) fn new(executor: &Arc<Executor>, node: NodeKey) -> Self {
        let state =
            State { world: executor.now(), local: 0, local_per_million: PER_MILLION, wall_offset_ms: 0 };
        Self { executor: Arc::clone(executor), node, state: Arc::new(Mutex::new(state)) }
    }

    /// The machine starts: its monotonic time begins anew, anywhere.
    pub(crate) fn restart(&self) {
        let local = self.executor.rng().u64(..1_000_000_000_000);
        let now = self.executor.now();
        let mut state = lock(&self.state);
        // The wall clock goes on.
        state.wall_offset_ms += (state.local(now) / NANOS_PER_MS) as i64 - (local / NANOS_PER_MS) as i64;
        (state.world, state.local) = (now, local);
    }

    pub(crate) fn set_rate(&self, local_per_million: u64) {
        assert!(local_per_million > 0, "monotonic time goes on");
        let now = self.executor.now();
        let mut state = lock(&self.state);
        (state.world, state.local) = (now, state.local(now));
        state.local_per_million = local_per_million;
        drop(state);
        self.executor.fire_timers(self.node);
    }

    pub(crate) fn jump_wall(&self, by_ms: i64) {
        lock(&self.state).wall_offset_ms += by_ms;
    }
}

impl State {
    fn local(&self, now: Time) -> u64 {
        self.local + scale(now - self.world, self.local_per_million, PER_MILLION)
    }

    /// When local time will have reached `local`, not before.
    fn world_at(&self, local: u64) -> Time {
        self.world + scale(local.saturating_sub(self.local), PER_MILLION, self.local_per_million) + 1
    }
}

fn scale(time: u64, by: u64, per: u64) -> u64 {
    u64::try_from(u128::from(time) * u128::from(by) / u128::from(per)).unwrap_or(u64::MAX / 2)
}

impl Clock for SimClock {
    fn now(&self) -> Instant {
        Instant(lock(&self.state).local(self.executor.now()))
    }

    fn wall(&self) -> Timestamp {
        let state = lock(&self.state);
        let local_ms = (state.local(self.executor.now()) / NANOS_PER_MS) as i64;
        Timestamp(WALL_START_MS + local_ms + state.wall_offset_ms)
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        // As a real timer: whole milliseconds.
        let at = Instant(at.0.div_ceil(NANOS_PER_MS).saturating_mul(NANOS_PER_MS));
        Box::pin(LocalSleep { clock: self.clone(), at, timer: None })
    }
}

/// Ends when the node's time is `at`.
struct LocalSleep {
    clock: SimClock,
    at: Instant,
    timer: Option<(Time, u64)>,
}

impl Future for LocalSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let executor = Arc::clone(&self.clock.executor);
        if let Some(timer) = self.timer.take() {
            executor.cancel_timer(timer);
        }
        if self.clock.now() >= self.at {
            return Poll::Ready(());
        }
        let at = lock(&self.clock.state).world_at(self.at.0);
        self.timer = Some(executor.set_timer(self.clock.node, at, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for LocalSleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.clock.executor.cancel_timer(timer);
        }
    }
}
