//! Runs the tasks of all nodes on one thread and one virtual time.
//!
//! Of the tasks that can go on, the seed chooses the next; when none can, time goes on to the next timer. Tasks that
//! were woken together are kept in the order of their numbers, so that who wakes them need not have an order.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use env::BoxFuture;
use fastrand::Rng;

use crate::History;

/// A machine of the world; 0 is outside of all.
pub(crate) type NodeKey = u32;
/// Nanoseconds of virtual time since the world began.
pub(crate) type Time = u64;
type TaskId = u64;

/// What drives the test itself.
const SCENARIO: TaskId = 0;
/// So many polls without time going on are a loop that never ends.
const POLLS_MAX: u64 = 5_000_000;

pub(crate) struct Executor {
    pub(crate) seed: u64,
    pub(crate) history: History,
    rng: Mutex<Rng>,
    woken: Arc<Mutex<BTreeSet<TaskId>>>,
    schedule: Mutex<Schedule>,
}

#[derive(Default)]
struct Schedule {
    now: Time,
    tasks: BTreeMap<TaskId, Task>,
    next_task: TaskId,
    ready: BTreeSet<TaskId>,
    timers: BTreeMap<(Time, u64), Timer>,
    next_timer: u64,
    paused: BTreeSet<NodeKey>,
    polls: u64,
}

/// How a task came to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is the process: what starts the others and waits for them in the end.
    Process,
    /// By the node itself.
    Started,
}

struct Task {
    node: NodeKey,
    kind: Kind,
    /// Taken out while it is polled.
    future: Option<BoxFuture<'static, ()>>,
}

struct Timer {
    node: NodeKey,
    waker: Waker,
}

struct TaskWaker {
    task: TaskId,
    woken: Arc<Mutex<BTreeSet<TaskId>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        lock(&self.woken).insert(self.task);
    }
}

/// Says the seed where a test fails.
struct SayOnPanic<'a>(&'a Executor);

impl Drop for SayOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SEED={} EVENTS={}", self.0.seed, self.0.history.events());
        }
    }
}

impl Executor {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let schedule = Schedule { next_task: SCENARIO + 1, ..Schedule::default() };
        Arc::new(Self {
            seed,
            history: History::default(),
            rng: Mutex::new(Rng::with_seed(seed)),
            woken: Arc::default(),
            schedule: Mutex::new(schedule),
        })
    }

    pub(crate) fn now(&self) -> Time {
        self.schedule().now
    }

    /// The world's chance.
    pub(crate) fn rng(&self) -> MutexGuard<'_, Rng> {
        lock(&self.rng)
    }

    /// A length of time of this range.
    pub(crate) fn some_time(&self, range: &std::ops::Range<Duration>) -> Time {
        let (from, to) = (range.start.as_nanos() as u64, range.end.as_nanos() as u64);
        if from < to { self.rng().u64(from..to) } else { from }
    }

    /// Runs the world until `scenario` has ended.
    pub(crate) fn run<T>(&self, scenario: impl Future<Output = T>) -> T {
        let _say = SayOnPanic(self);
        let mut scenario = pin!(scenario);
        let waker = self.waker(SCENARIO);
        waker.wake_by_ref();
        loop {
            match self.next() {
                Some(SCENARIO) => {
                    if let Poll::Ready(value) = scenario.as_mut().poll(&mut Context::from_waker(&waker)) {
                        return value;
                    }
                }
                Some(task) => self.poll(task),
                None => assert!(self.advance(), "the scenario waits for what will never happen"),
            }
        }
    }

    pub(crate) fn spawn(&self, node: NodeKey, kind: Kind, future: BoxFuture<'static, ()>) {
        let mut schedule = self.schedule();
        let task = schedule.next_task;
        schedule.next_task += 1;
        schedule.tasks.insert(task, Task { node, kind, future: Some(future) });
        schedule.ready.insert(task);
    }

    /// Wakes at `at`; gives what cancels it.
    pub(crate) fn set_timer(&self, node: NodeKey, at: Time, waker: Waker) -> (Time, u64) {
        let mut schedule = self.schedule();
        let key = (at, schedule.next_timer);
        schedule.next_timer += 1;
        schedule.timers.insert(key, Timer { node, waker });
        key
    }

    pub(crate) fn cancel_timer(&self, key: (Time, u64)) {
        self.schedule().timers.remove(&key);
    }

    /// Fires all timers of a node, for its clock has changed.
    pub(crate) fn fire_timers(&self, node: NodeKey) {
        let mut schedule = self.schedule();
        let (fired, kept) =
            std::mem::take(&mut schedule.timers).into_iter().partition(|(_, timer)| timer.node == node);
        schedule.timers = kept;
        fire(fired);
    }

    /// While a node is paused, none of its tasks goes on.
    pub(crate) fn set_paused(&self, node: NodeKey, paused: bool) {
        let mut schedule = self.schedule();
        if paused {
            schedule.paused.insert(node);
        } else {
            schedule.paused.remove(&node);
        }
    }

    /// The tasks that a node has started and that have not ended.
    pub(crate) fn tasks_started(&self, node: NodeKey) -> usize {
        let is_one = |task: &&Task| task.node == node && task.kind == Kind::Started;
        self.schedule().tasks.values().filter(is_one).count()
    }

    /// Drops tasks of a node; says how many there were.
    pub(crate) fn drop_tasks(&self, node: NodeKey, which: impl Fn(Kind) -> bool) -> usize {
        let mut schedule = self.schedule();
        let (dropped, kept): (BTreeMap<_, _>, _) = std::mem::take(&mut schedule.tasks)
            .into_iter()
            .partition(|(_, task)| task.node == node && which(task.kind));
        schedule.tasks = kept;
        drop(schedule);
        let count = dropped.len();
        // One after the other, in order; what they hold may call back.
        dropped.into_values().for_each(drop);
        count
    }

    /// Drops everything: tasks hold the executor that holds them.
    pub(crate) fn end(&self) {
        let tasks = std::mem::take(&mut self.schedule().tasks);
        tasks.into_values().for_each(drop);
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        lock(&self.schedule)
    }

    fn waker(&self, task: TaskId) -> Waker {
        Waker::from(Arc::new(TaskWaker { task, woken: Arc::clone(&self.woken) }))
    }

    /// One of the tasks that can go on.
    fn next(&self) -> Option<TaskId> {
        let mut schedule = self.schedule();
        schedule.ready.append(&mut lock(&self.woken));
        let Schedule { ready, tasks, paused, .. } = &mut *schedule;
        ready.retain(|task| *task == SCENARIO || tasks.contains_key(task));
        let can_go_on = |task: &&TaskId| tasks.get(task).is_none_or(|task| !paused.contains(&task.node));
        let count = ready.iter().filter(can_go_on).count();
        if count == 0 {
            return None;
        }
        let chosen = if count == 1 { 0 } else { self.rng().usize(..count) };
        let task = *ready.iter().filter(can_go_on).nth(chosen)?;
        ready.remove(&task);
        schedule.polls += 1;
        assert!(schedule.polls < POLLS_MAX, "tasks wake each other for ever");
        Some(task)
    }

    fn poll(&self, task: TaskId) {
        let Some(mut future) = self.schedule().tasks.get_mut(&task).and_then(|task| task.future.take())
        else {
            return;
        };
        self.history.add("poll", &[task], &[]);
        let waker = self.waker(task);
        let ended = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let mut schedule = self.schedule();
        if ended {
            schedule.tasks.remove(&task);
        } else if let Some(task) = schedule.tasks.get_mut(&task) {
            // Else it was dropped meanwhile, by its own doing.
            task.future = Some(future);
            return;
        }
        drop(schedule);
        drop(future);
    }

    /// Goes on to the next timer; false where there is none.
    fn advance(&self) -> bool {
        let mut schedule = self.schedule();
        let Some(((at, _), _)) = schedule.timers.first_key_value() else { return false };
        let now = schedule.now.max(*at);
        if now > schedule.now {
            (schedule.now, schedule.polls) = (now, 0);
        }
        let later = schedule.timers.split_off(&(now + 1, 0));
        let fired = std::mem::replace(&mut schedule.timers, later);
        self.history.add("time", &[now], &[]);
        drop(schedule);
        fire(fired);
        true
    }
}

fn fire(timers: BTreeMap<(Time, u64), Timer>) {
    for timer in timers.into_values() {
        timer.waker.wake();
    }
}

/// The value behind a lock. A panic elsewhere is that test's failure, not this one's.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends when the world's time is `at`.
pub(crate) struct Sleep {
    executor: Arc<Executor>,
    node: NodeKey,
    at: Time,
    timer: Option<(Time, u64)>,
}

impl Sleep {
    pub(crate) fn new(executor: &Arc<Executor>, node: NodeKey, after: Time) -> Self {
        let at = executor.now() + after;
        Self { executor: Arc::clone(executor), node, at, timer: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(timer) = self.timer.take() {
            self.executor.cancel_timer(timer);
        }
        if self.executor.now() >= self.at {
            return Poll::Ready(());
        }
        self.timer = Some(self.executor.set_timer(self.node, self.at, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.executor.cancel_timer(timer);
        }
    }
}
