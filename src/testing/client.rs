//! A client's connection: real frames, one broker, and a new connection after each failure.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes};
use env::{Chunk, Env, Link, timeout};
use model::{ErrorCode, Instant};
use protocol::{Decodable, Encodable, Request, RequestHeader, decode_response, encode_request, tables};

use crate::broker::ADDRESS;
use crate::simulation::Shared;

const FRAME_BYTES_MAX: usize = 100 << 20;
/// As clients have it: longer than any wait that they ask the broker for.
const PATIENCE: Duration = Duration::from_secs(20);

/// The connection was lost, or nothing came in time. What was asked for may have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost;

/// One client.
pub(crate) struct Client {
    pub(crate) env: Env,
    link: Option<Link>,
    frames: VecDeque<Bytes>,
    correlation_id: i32,
    address: String,
}

impl Client {
    pub(crate) fn new(shared: &Shared) -> Self {
        Self::at(shared.env.clone(), ADDRESS)
    }

    /// A client of the broker there.
    pub(crate) fn at(env: Env, address: &str) -> Self {
        Self { env, link: None, frames: VecDeque::new(), correlation_id: 0, address: address.to_owned() }
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn call<R>(&mut self, version: i16, request: &R) -> Result<R::Response, Lost>
    where
        R: Request + Encodable,
        R::Response: Decodable,
    {
        let sent = self.send(version, request).await?;
        let (correlation_id, answer) = self.receive::<R>(version).await?;
        assert_eq!(correlation_id, sent, "an answer to another request");
        Ok(answer)
    }

    /// Sends a request; gives its correlation id.
    pub(crate) async fn send<R: Request + Encodable>(
        &mut self,
        version: i16,
        request: &R,
    ) -> Result<i32, Lost> {
        self.correlation_id += 1;
        let header = RequestHeader {
            api_key: R::KEY,
            api_version: version,
            correlation_id: self.correlation_id,
            client_id: Some("simulated".into()),
        };
        let frame = encode_request(&header, request).expect("requests that can be encoded");
        let deadline = self.deadline();
        self.connect(deadline).await?;
        let Some(link) = &mut self.link else { return Err(Lost) };
        let sent = timeout(&*self.env.clock, deadline, link.writer.send(vec![Chunk::Bytes(frame)])).await;
        match sent {
            Some(Ok(())) => Ok(self.correlation_id),
            Some(Err(_)) | None => Err(self.disconnect()),
        }
    }

    /// The next answer, to a request of that kind, and its correlation id.
    pub(crate) async fn receive<R>(&mut self, version: i16) -> Result<(i32, R::Response), Lost>
    where
        R: Request,
        R::Response: Decodable,
    {
        let mut frame = self.frame().await?;
        let correlation_id = frame.get_i32();
        let api = tables::api(R::KEY).expect("an API of Kafka");
        if api.response_header_version(version) == 1 {
            assert_eq!(frame.get_u8(), 0, "tags in the header");
        }
        let answer = decode_response::<R>(version, frame).expect("answers are what their tables say");
        Ok((correlation_id, answer))
    }

    /// Closes the connection; what was not answered is lost.
    pub(crate) fn disconnect(&mut self) -> Lost {
        self.link = None;
        self.frames.clear();
        Lost
    }

    async fn frame(&mut self) -> Result<Bytes, Lost> {
        let deadline = self.deadline();
        while self.frames.is_empty() {
            let Some(link) = &mut self.link else { return Err(Lost) };
            let mut frames = Vec::new();
            match timeout(&*self.env.clock, deadline, link.reader.recv(&mut frames)).await {
                Some(Ok(())) => self.frames.extend(frames),
                Some(Err(_)) | None => return Err(self.disconnect()),
            }
        }
        self.frames.pop_front().ok_or(Lost)
    }

    async fn connect(&mut self, deadline: Instant) -> Result<(), Lost> {
        if self.link.is_none() {
            let connected =
                timeout(&*self.env.clock, deadline, self.env.net.connect(&self.address, FRAME_BYTES_MAX));
            self.link = connected.await.and_then(Result::ok);
        }
        self.link.as_ref().map(drop).ok_or(Lost)
    }

    fn deadline(&self) -> Instant {
        self.env.clock.now().plus(PATIENCE)
    }
}

/// Whether an error says only that it should be tried again.
pub(crate) fn is_retriable(code: i16) -> bool {
    [
        ErrorCode::UnknownTopicOrPartition,
        ErrorCode::LeaderNotAvailable,
        ErrorCode::NotLeaderOrFollower,
        ErrorCode::RequestTimedOut,
        ErrorCode::CoordinatorNotAvailable,
        ErrorCode::CoordinatorLoadInProgress,
        ErrorCode::NotCoordinator,
        ErrorCode::NotEnoughReplicas,
        ErrorCode::NotEnoughReplicasAfterAppend,
        ErrorCode::KafkaStorageError,
        ErrorCode::NotController,
    ]
    .iter()
    .any(|retriable| retriable.code() == code)
}
