//! One seed: the clients, the broker, the nemesis, and what came of it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use env::Env;
use protocol::StrBytes;
use protocol::messages::create_topics_request::CreatableTopic;
use protocol::messages::{CreateTopicsRequest, TopicName};
use sim::World;

use crate::broker::Broker;
use crate::client::Client;
use crate::committer::Committer;
use crate::consumer::{Consumer, FINAL};
use crate::ledger::{Ledger, Place};
use crate::nemesis::{Fault, Nemesis};
use crate::producer::{Kind, Producer};

/// All partitions that are produced to.
pub(crate) const PLACES: [Place; 4] = [("once", 0), ("once", 1), ("plain", 0), ("plain", 1)];

const CREATE_TOPICS: i16 = 7;
const TOPIC_EXISTS: i16 = 36;
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// How long the clients work on after the last fault.
const CALM: Duration = Duration::from_secs(3);
/// What the clients then need to get the answers that they wait for.
const PATIENCE: Duration = Duration::from_mins(2);

/// What came of one seed.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What may never be; empty where all is well.
    pub violations: Vec<String>,
    /// The hash of all events.
    pub hash: u64,
    /// How many events there were.
    pub events: u64,
    /// How many records were acknowledged.
    pub acknowledged: usize,
    /// What struck when, in virtual time.
    pub faults: Vec<(Duration, Fault)>,
    /// Virtual time.
    pub elapsed: Duration,
}

/// What all clients share.
pub(crate) struct Shared {
    pub(crate) env: Env,
    ledger: Mutex<Ledger>,
    is_over: AtomicBool,
    working: AtomicUsize,
}

impl Shared {
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn violation(&self, what: String) {
        self.ledger().violation(what);
    }

    /// Whether the clients are to come to an end.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn start(self: &Arc<Self>, client: impl Future<Output = ()> + Send + 'static) {
        self.working.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::clone(self);
        let task = async move {
            client.await;
            shared.working.fetch_sub(1, Ordering::Relaxed);
        };
        self.env.exec.spawn("client", Box::pin(task));
    }
}

/// Runs one seed with so many faults.
pub fn simulate(seed: u64, faults: u64) -> Outcome {
    let world = World::new(seed);
    let clients = world.node("clients");
    let env = clients.boot();
    let shared = Arc::new(Shared {
        env: env.clone(),
        ledger: Mutex::default(),
        is_over: AtomicBool::new(false),
        working: AtomicUsize::new(0),
    });
    let mut nemesis = Nemesis {
        world: &world,
        broker: Broker::new(&world),
        clients: &clients,
        clock: &*env.clock,
        faults: Vec::new(),
        violations: Vec::new(),
    };
    world.run(life(&shared, &mut nemesis, faults));
    let (faults, mut violations) = (nemesis.faults, nemesis.violations);
    let ledger = std::mem::take(&mut *shared.ledger());
    let acknowledged = ledger.acknowledged_count();
    violations.extend(ledger.check());
    let history = world.history();
    Outcome {
        violations,
        hash: history.hash(),
        events: history.events(),
        acknowledged,
        faults,
        elapsed: world.elapsed(),
    }
}

async fn life(shared: &Arc<Shared>, nemesis: &mut Nemesis<'_>, faults: u64) {
    nemesis.broker.start();
    create_topics(shared).await;
    start_clients(shared);
    nemesis.run(faults).await;
    nemesis.watch(CALM).await;
    shared.is_over.store(true, Ordering::Relaxed);
    let end = nemesis.clock.now().plus(PATIENCE);
    while shared.working.load(Ordering::Relaxed) > 0 && nemesis.clock.now() < end {
        nemesis.clock.sleep(TRY_AGAIN).await;
    }
    let left = shared.working.load(Ordering::Relaxed);
    if left > 0 {
        shared.violation(format!("{left} clients had no answer {PATIENCE:?} after the last fault"));
    }
    if !Consumer::new(shared, FINAL).read_to_end().await {
        shared.violation("the broker does not answer in the end".to_owned());
    }
}

async fn create_topics(shared: &Arc<Shared>) {
    let topic = |name| {
        CreatableTopic::default()
            .with_name(TopicName(StrBytes::from_static_str(name)))
            .with_num_partitions(2)
            .with_replication_factor(1)
    };
    let request =
        CreateTopicsRequest::default().with_topics(vec![topic("once"), topic("plain")]).with_timeout_ms(5000);
    let mut client = Client::new(shared);
    loop {
        if let Ok(answer) = client.call(CREATE_TOPICS, &request).await
            && answer.topics.iter().all(|topic| [0, TOPIC_EXISTS].contains(&topic.error_code))
        {
            return;
        }
        client.disconnect();
        shared.env.clock.sleep(TRY_AGAIN).await;
    }
}

fn start_clients(shared: &Arc<Shared>) {
    let producers = [
        (Kind::Idempotent, "a", PLACES[0]),
        (Kind::Idempotent, "b", PLACES[0]),
        (Kind::Idempotent, "c", PLACES[1]),
        (Kind::Plain, "d", PLACES[2]),
        (Kind::Plain, "e", PLACES[3]),
        (Kind::Leader, "f", PLACES[3]),
    ];
    for (kind, name, place) in producers {
        shared.start(Producer::new(shared, kind, name, place).run());
    }
    shared.start(Committer::new(shared, "group").run());
    for observer in 1..=2 {
        shared.start(Consumer::new(shared, observer).run());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAULTS: u64 = 2;

    #[test]
    fn one_seed_is_one_history() {
        let first = simulate(1, FAULTS);
        assert_eq!(first, simulate(1, FAULTS));
        assert_ne!(first.hash, simulate(2, FAULTS).hash);
    }

    #[test]
    fn whatever_happens_nothing_acknowledged_is_lost_or_twice() {
        for seed in 100..102 {
            let outcome = simulate(seed, FAULTS);
            assert_eq!(outcome.violations, [""; 0], "SEED={seed}");
            assert!(outcome.acknowledged > 100, "SEED={seed}: {outcome:?}");
        }
    }
}
