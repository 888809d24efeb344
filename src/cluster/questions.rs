//! Peers' questions that wait for the core's answer.
//!
//! Kafka: `KafkaRaftClient.handleInboundMessage`.

use std::collections::BTreeMap;

use quorum::Token;
use tokio::sync::oneshot;

use crate::wire::Answer;

/// Who asked, under the token that the core knows.
#[derive(Default)]
pub(crate) struct Questions {
    waiting: BTreeMap<Token, Waiting>,
    last: u64,
}

struct Waiting {
    bytes_max: usize,
    give: oneshot::Sender<Answer>,
}

impl Questions {
    /// A question came; its answer may bring so many bytes.
    pub(crate) fn ask(&mut self, bytes_max: usize, give: oneshot::Sender<Answer>) -> Token {
        self.last += 1;
        let token = Token(self.last);
        self.waiting.insert(token, Waiting { bytes_max, give });
        token
    }

    /// How many bytes the answer may bring.
    pub(crate) fn bytes_max(&self, token: Token) -> usize {
        self.waiting.get(&token).map_or(0, |waiting| waiting.bytes_max)
    }

    /// The answer is there. Who asked may have gone away.
    pub(crate) fn answer(&mut self, token: Token, answer: Answer) {
        if let Some(waiting) = self.waiting.remove(&token) {
            let _ = waiting.give.send(answer);
        }
    }
}
