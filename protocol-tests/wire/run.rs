//! Two brokers side by side: what is asked of one is asked of the other, and the answers are compared.

use std::io;
use std::time::{Duration, Instant};

use protocol::batch::BatchBuilder;
use protocol::tables::api;
use serde_json::{Value as Json, json};

use crate::compare::{differences, short};
use crate::explained::is_explained;
use crate::peer::{Outcome, Peer};
use crate::request::{Names, fill, request};
use crate::spoil::spoil;
use crate::value::Value;
use crate::{corpus, corpus::Good};

const WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// The two brokers and what is known of each.
pub(crate) struct Run {
    /// The reference first.
    pub(crate) peers: [Peer; 2],
    names: [Names; 2],
    last: [Outcome; 2],
    news: u32,
    filter: String,
    /// How many cases were not the same and not explained.
    pub(crate) failures: u32,
}

impl Run {
    /// Nothing asked yet. Only cases whose name holds `filter` are asked later.
    pub(crate) fn new(peers: [Peer; 2], filter: String) -> Self {
        let silence = || Outcome::Silence;
        let names = [Names::default(), Names::default()];
        Self { peers, names, last: [silence(), silence()], news: 0, filter, failures: 0 }
    }

    /// Topics, records and a group for the corpus, the same on both.
    ///
    /// # Errors
    /// Where a broker refuses or is not reached. Without groups the other cases still mean something.
    pub(crate) fn prepare(&mut self) -> io::Result<()> {
        for (topic, partitions) in [(corpus::READ, 2), (corpus::WRITE, 3), (corpus::CONFIG, 1)] {
            let keep = json!([{"Name": "retention.ms", "Value": "-1"}]);
            let create = json!({"TimeoutMs": 9000, "Topics": [{"Name": topic, "NumPartitions": partitions,
                "ReplicationFactor": 1, "Assignments": [], "Configs": keep}]});
            self.until(19, 7, &create, |answer| code(answer, "Topics.0.ErrorCode") == Some(0))?;
            self.learn_topic(topic)?;
        }
        let init = json!({"TransactionalId": null, "TransactionTimeoutMs": 1000});
        self.until(22, 0, &init, |answer| code(answer, "ErrorCode") == Some(0))?;
        self.prepare_records()?;
        if let Err(why) = self.prepare_group() {
            self.failures += 1;
            println!("FAIL wire/groups {why}");
        }
        Ok(())
    }

    /// Waits until the topic has leaders, and keeps its id as `id:TOPIC`.
    ///
    /// # Errors
    /// Where that does not happen in time.
    pub(crate) fn learn_topic(&mut self, topic: &str) -> io::Result<()> {
        let metadata =
            json!({"Topics": [{"Name": topic, "TopicId": "zero"}], "AllowAutoTopicCreation": false});
        self.until(3, 12, &metadata, |answer| {
            code(answer, "Topics.0.ErrorCode") == Some(0)
                && code(answer, "Topics.0.Partitions.0.ErrorCode") == Some(0)
                && code(answer, "Topics.0.Partitions.0.LeaderId") == Some(1)
        })?;
        self.keep(&format!("id:{topic}"), "Topics.0.TopicId");
        Ok(())
    }

    fn prepare_records(&mut self) -> io::Result<()> {
        self.set("batch", |_| Value::Bytes(batch(0, -1, 0)));
        for _ in 0..3 {
            let produce = json!({"Acks": -1, "TimeoutMs": 9000, "TransactionalId": null, "TopicData": [{
                "Name": corpus::READ, "PartitionData": [{"Index": 0, "Records": "$batch"}]}]});
            self.until(0, 9, &produce, |answer| {
                code(answer, "Responses.0.PartitionResponses.0.ErrorCode") == Some(0)
            })?;
        }
        Ok(())
    }

    fn prepare_group(&mut self) -> io::Result<()> {
        let find = json!({"Key": corpus::GROUP, "KeyType": 0});
        self.until(10, 3, &find, |answer| code(answer, "ErrorCode") == Some(0))?;
        let commit = json!({"GroupId": corpus::GROUP, "GenerationIdOrMemberEpoch": -1, "MemberId": "", "Topics": [{
            "Name": corpus::READ, "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 3, "CommittedLeaderEpoch": 0,
            "CommittedMetadata": "three"}]}]});
        self.until(8, 8, &commit, |answer| code(answer, "Topics.0.Partitions.0.ErrorCode") == Some(0))
    }

    fn until(&mut self, key: i16, version: i16, json: &Json, done: fn(&Value) -> bool) -> io::Result<()> {
        let request = request(api(key).expect("an API").request, json);
        for at in 0..self.peers.len() {
            let end = Instant::now() + WITHIN;
            loop {
                let filled = fill(&request, &self.names[at]);
                let outcome = self.peers[at].ask(key, version, &filled, 0)?;
                let is_done = matches!(&outcome, Outcome::Answer(answer) if done(answer));
                if !is_done && Instant::now() > end {
                    let name = self.peers[at].name;
                    return Err(io::Error::other(format!("{name} to {json}: {}", short(&outcome))));
                }
                self.last[at] = outcome;
                if is_done {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// Every version of a good request, and every spoiled form of each.
    ///
    /// # Errors
    /// Where a broker is not reached.
    pub(crate) fn good(&mut self, good: &Good) -> io::Result<()> {
        let api = api(good.key).expect("an API");
        let versions = api.stable_versions();
        let base = request(api.request, &good.request);
        for version in versions.min..=versions.max {
            let name = format!("{}/v{version}/{}", api.name, good.name);
            self.case(&name, good.key, version, &base, 0)?;
            self.case(&format!("{name}/one_byte_short"), good.key, version, &base, 1)?;
            let spoiled = if good.is_spoiled { spoil(api.request, version, &base) } else { Vec::new() };
            for spoiled in spoiled.iter().filter(|spoiled| corpus::is_answered(good.key, &spoiled.how)) {
                self.case(&format!("{name}/{}", spoiled.how), good.key, version, &spoiled.request, 0)?;
            }
        }
        Ok(())
    }

    /// A step of a script.
    ///
    /// # Errors
    /// Where a broker is not reached.
    pub(crate) fn step(&mut self, name: &str, key: i16, version: i16, json: Json) -> io::Result<()> {
        let request = request(api(key).expect("an API").request, &json);
        self.case(name, key, version, &request, 0)
    }

    fn case(&mut self, name: &str, key: i16, version: i16, request: &Value, cut: i32) -> io::Result<()> {
        if !name.contains(&self.filter) {
            return Ok(());
        }
        self.news += 1;
        let new = format!("w-new-{}", self.news);
        self.set("new", |_| Value::Text(new.clone()));
        self.ask_both(key, version, request, cut)?;
        let found = differences(key, &self.last[0], &self.last[1]);
        let found: Vec<_> = found.into_iter().filter(|each| !is_explained(name, each)).collect();
        if found.is_empty() {
            println!("ok {name}");
        } else {
            self.failures += 1;
            println!("FAIL {name} {}", found.join("; "));
        }
        Ok(())
    }

    /// Waits until what was decided is surely seen: Kafka answers an admin request before its own brokers know.
    pub(crate) fn settle() {
        std::thread::sleep(SETTLED_AFTER);
    }

    /// At the same time, or one's waiting would be the other's timeout.
    fn ask_both(&mut self, key: i16, version: i16, request: &Value, cut: i32) -> io::Result<()> {
        let asked = self.peers.iter_mut().zip(&self.names).zip(&mut self.last);
        std::thread::scope(|scope| {
            let threads: Vec<_> = asked
                .map(|((peer, names), last)| {
                    scope.spawn(move || {
                        *last = peer.ask(key, version, &fill(request, names), cut)?;
                        Ok(())
                    })
                })
                .collect();
            let outcomes = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))));
            outcomes.collect()
        })
    }

    /// Gives a name a value for each broker.
    pub(crate) fn set(&mut self, name: &str, value: impl Fn(&Names) -> Value) {
        for names in &mut self.names {
            let value = value(names);
            names.set(name, value);
        }
    }

    /// Keeps a value of each broker's last answer under a name.
    pub(crate) fn keep(&mut self, name: &str, path: &str) {
        for (names, last) in self.names.iter_mut().zip(&self.last) {
            if let Outcome::Answer(answer) = last {
                names.set(name, answer.at(path).cloned().unwrap_or(Value::Null));
            }
        }
    }
}

fn code(answer: &Value, path: &str) -> Option<i64> {
    if let Some(Value::Int(code)) = answer.at(path) { Some(*code) } else { None }
}

/// A batch of two records, from a producer or (`-1`) from none.
pub(crate) fn batch(epoch: i16, producer_id: i64, sequence: i32) -> Vec<u8> {
    use model::{ProducerEpoch, ProducerId, Sequence, Timestamp};
    let none = producer_id < 0;
    let (epoch, sequence) = if none { (-1, -1) } else { (epoch, sequence) };
    let producer = (ProducerId(producer_id), ProducerEpoch(epoch), Sequence(sequence));
    let mut builder = BatchBuilder::new().producer(producer.0, producer.1, producer.2);
    for record in 0..2 {
        builder = builder.timestamp(Timestamp(1_700_000_000_000 + record));
        builder.append(Some(b"key"), Some(b"value"), &[(b"h", Some(b"1")), (b"h", None)]);
    }
    builder.build().to_vec()
}
