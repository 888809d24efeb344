//! Asking one leader for what comes behind the logs of several partitions.
//!
//! ```text
//!  questions of partitions --> open --> one Fetch --> answers to the partitions --> appended, flushed --> questions
//! ```
//!
//! The next Fetch waits until all that the last one brought is flushed, for that is a group commit, and the Fetch
//! acknowledges it. A leader holds a Fetch back that has nothing to bring. What is asked in that time, as by partitions that
//! have a new leader, goes by a second lane, whose connection is another one, and which asks for answers sooner.
//!
//! Invariants: a question is in flight at most once; a lane waits for flushes of its own answers only, and not for long; it
//! does not wait for an answer that concerns nobody any more; questions are bounded by the partitions.
//!
//! Kafka: `AbstractFetcherThread`, `ReplicaFetcherThread`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use env::Env;
use model::{ErrorCode, LeaderEpoch, Limits, NodeId, TopicIdPartition};
use protocol::messages::{FetchRequest, ListOffsetsRequest};
use replica::{FetchState, LeaderOffsets};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use transport::{CallError, Peer, PeerConfig, RECONNECT_BACKOFF, RECONNECT_BACKOFF_MAX};

use crate::Partition;
use crate::asked::{Asked, Lane, Listing, Next};
use crate::fetch_session::FetchSession;
use crate::fetchers::Fetchers;
use crate::partition::Fetched;
use crate::wire::{self, FetchConfig, LogEndpoint};

/// Answers of no more bytes are appended where they come in, as a producer's records are.
const INLINE_BYTES_MAX: usize = 256 << 10;
/// `socket.connection.setup.timeout.ms`.
const SETUP_TIMEOUT: Duration = Duration::from_secs(10);

/// The aside lane asks the leader to wait so many times shorter.
const ASIDE_SOONER: u32 = 10;

/// The questions to one leader.
#[derive(Default)]
pub(crate) struct Fetcher {
    asked: Mutex<Asked>,
    news: [Notify; 2],
}

impl Fetcher {
    /// A partition asks for records.
    pub(crate) fn ask(&self, partition: &Arc<Partition>, state: FetchState) {
        self.change(|asked| asked.ask(partition, state));
    }

    /// A partition asks where the leader's log starts and ends.
    pub(crate) fn ask_offsets(&self, listing: Listing) {
        self.change(|asked| asked.ask_offsets(listing));
    }

    /// A partition has nothing more to ask here.
    pub(crate) fn leave(&self, id: TopicIdPartition) {
        self.change(|asked| asked.leave(id));
    }

    fn change(&self, change: impl FnOnce(&mut Asked)) {
        change(&mut self.lock());
        self.tell();
    }

    /// Wakes who may have something to do, or wait for nothing.
    pub(crate) fn tell(&self) {
        self.news.iter().for_each(Notify::notify_one);
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `look` finds something.
    async fn until<T>(&self, lane: Lane, look: impl Fn(&mut Asked) -> Option<T>) -> T {
        loop {
            let found = look(&mut self.lock());
            if let Some(found) = found {
                return found;
            }
            self.news[lane as usize].notified().await;
        }
    }

    // Each a call of its own: the lock is given back with the answer.
    fn answered(&self, id: TopicIdPartition, lane: Lane) -> Option<(Arc<Partition>, FetchState)> {
        self.lock().answered(id, lane)
    }

    fn settled(&self, id: TopicIdPartition) {
        self.lock().settled(id);
    }

    async fn deserted(&self, lane: Lane) {
        self.until(lane, |asked| asked.is_deserted(lane).then_some(())).await;
    }

    async fn flushed(&self, lane: Lane) {
        self.until(lane, |asked| asked.is_flushed(lane).then_some(())).await;
    }
}

/// Starts both lanes to `leader`.
pub(crate) fn start(
    fetchers: &Arc<Fetchers>,
    leader: NodeId,
    fetcher: &Arc<Fetcher>,
    closing: &CancellationToken,
) {
    for lane in [Lane::Main, Lane::Aside] {
        let (fetchers, fetcher, closing) = (fetchers.clone(), fetcher.clone(), closing.clone());
        let (exec, mut config) = (fetchers.env.exec.clone(), fetchers.config.fetch.clone());
        if lane == Lane::Aside {
            config.wait_max /= ASIDE_SOONER;
        }
        let (peer, session) = (None, FetchSession::default());
        let asking = Asking { fetchers, fetcher, leader, lane, config, peer, session };
        let run = async move {
            closing.run_until_cancelled(asking.run()).await;
        };
        exec.spawn("replica fetcher", Box::pin(run));
    }
}

/// One lane's task.
struct Asking {
    fetchers: Arc<Fetchers>,
    fetcher: Arc<Fetcher>,
    leader: NodeId,
    lane: Lane,
    config: FetchConfig,
    /// Where the leader was reached last.
    peer: Option<(String, Peer)>,
    session: FetchSession,
}

impl Asking {
    async fn run(mut self) {
        loop {
            let take = |asked: &mut Asked| if self.fetchers.is_held() { None } else { asked.take(self.lane) };
            match self.fetcher.until(self.lane, take).await {
                Next::Offsets(listing) => {
                    self.list(listing).await;
                    self.fetcher.change(|asked| asked.returned(self.lane));
                }
                Next::Records(wanted) => {
                    self.fetch(wanted).await;
                    self.await_flushes().await;
                }
            }
        }
    }

    fn env(&self) -> &Env {
        &self.fetchers.env
    }

    /// A disk that hangs must not keep the others back for good.
    async fn await_flushes(&self) {
        let deadline = self.env().clock.now().plus(self.config.wait_max);
        let flushed = self.fetcher.flushed(self.lane);
        env::timeout(self.env().clock.as_ref(), deadline, flushed).await;
    }

    async fn fetch(&mut self, wanted: BTreeMap<TopicIdPartition, FetchState>) {
        let answers = self.ask(&wanted).await;
        match answers {
            Some(answers) => self.hand_out(answers).await,
            None => self.fail(&wanted),
        }
        self.fetcher.change(|asked| asked.returned(self.lane));
    }

    /// None where there is no answer.
    async fn ask(
        &mut self,
        wanted: &BTreeMap<TopicIdPartition, FetchState>,
    ) -> Option<Vec<(TopicIdPartition, Fetched)>> {
        let peer = self.peer()?;
        let config = self.config.clone();
        let (follower, session) = (self.fetchers.follower(), self.session.ask(wanted));
        let deadline = self.env().clock.now().plus(config.patience);
        let request = move |version| wire::fetch_request(follower, &session, &config, version);
        let answer = tokio::select! {
            biased;
            answer = peer.call::<FetchRequest>(deadline, request) => answer,
            () = self.fetcher.deserted(self.lane) => {
                // The answer that is still to come would hold back the next one.
                self.peer = None;
                self.session.handle_failure();
                return None;
            }
        };
        let response = match answer {
            Ok(answer) => answer.response,
            Err(error) => {
                self.unanswered(&error);
                self.session.handle_failure();
                return None;
            }
        };
        if response.error_code == 0 {
            self.session.handle_answer(response.session_id);
            return Some(wire::fetched(response));
        }
        let error = ErrorCode::told(response.error_code);
        debug!(leader = %self.leader, ?error, "a leader refused a fetch");
        // Nothing was said of any partition: where a new session may help, all are asked again.
        self.session.handle_error(error).then(Vec::new)
    }

    fn unanswered(&self, error: &CallError) {
        if !matches!(error, CallError::BackingOff) {
            debug!(leader = %self.leader, %error, "a leader did not answer");
        }
    }

    /// Each partition gets its answer; where the disk may be waited for, or much is to be written, elsewhere.
    async fn hand_out(&self, answers: Vec<(TopicIdPartition, Fetched)>) {
        let mut answered = Vec::with_capacity(answers.len());
        let (mut bytes, mut may_cut) = (0, false);
        for (id, fetched) in answers {
            if let Some((partition, state)) = self.fetcher.answered(id, self.lane) {
                bytes += fetched.records.len();
                may_cut |= fetched.may_cut(state.offset);
                answered.push((partition, state.id, fetched));
            }
        }
        let fetcher = self.fetcher.clone();
        let hand_out = move || {
            for (partition, id, fetched) in &answered {
                if !partition.take_fetched(*id, fetched) {
                    fetcher.settled(partition.id);
                }
            }
        };
        if may_cut || bytes > INLINE_BYTES_MAX {
            env::blocking(self.env().exec.as_ref(), hand_out).await;
        } else {
            hand_out();
        }
    }

    fn fail(&self, wanted: &BTreeMap<TopicIdPartition, FetchState>) {
        for id in wanted.keys() {
            if let Some((partition, state)) = self.fetcher.answered(*id, self.lane) {
                self.fetcher.settled(*id);
                partition.fetch_failed(state.id);
            }
        }
    }

    async fn list(&mut self, listing: Listing) {
        let Listing { partition, id, leader_epoch } = listing;
        let start = self.offset(&partition, leader_epoch, LogEndpoint::Earliest).await;
        let end = self.offset(&partition, leader_epoch, LogEndpoint::Latest).await;
        let offsets = start.zip(end).map(|(log_start, log_end)| LeaderOffsets { log_start, log_end });
        let take = move || partition.take_leader_offsets(id, offsets);
        env::blocking(self.env().exec.as_ref(), take).await;
    }

    async fn offset(
        &mut self,
        partition: &Partition,
        leader_epoch: LeaderEpoch,
        end: LogEndpoint,
    ) -> Option<model::Offset> {
        let peer = self.peer()?;
        let deadline = self.env().clock.now().plus(self.config.patience);
        let (follower, name) = (self.fetchers.follower(), partition.name.clone());
        let request = move |_| wire::list_offsets_request(follower, &name, leader_epoch, end);
        match peer.call::<ListOffsetsRequest>(deadline, request).await {
            Ok(answer) => wire::listed_offset(&answer.response),
            Err(error) => {
                self.unanswered(&error);
                None
            }
        }
    }

    /// The leader, where the metadata says that it is reached now.
    fn peer(&mut self) -> Option<Peer> {
        let address = self.fetchers.address(self.leader)?;
        if self.peer.as_ref().is_none_or(|(known, _)| *known != address) {
            let config = PeerConfig {
                client_id: format!("broker-{}-fetcher", self.fetchers.follower().id),
                // One batch may be larger than what was asked for.
                frame_bytes_max: 2 * Limits::DECOMPRESSED_BYTES_MAX,
                in_flight_max: 1,
                setup_timeout: SETUP_TIMEOUT,
                reconnect_backoff: RECONNECT_BACKOFF,
                reconnect_backoff_max: RECONNECT_BACKOFF_MAX,
            };
            let peer = Peer::new(self.env(), config, &address, "replica fetch");
            self.session.handle_failure();
            self.peer = Some((address, peer));
        }
        self.peer.as_ref().map(|(_, peer)| peer.clone())
    }
}
