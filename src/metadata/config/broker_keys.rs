//! The keys of brokers: what Ottla acts on, and what it describes because Kafka's tools and users look for it.
//!
//! A row: name, type, default, bounds, who may change it at run time, whether Ottla acts on it, what it does.

use super::Validator::{
    Addresses, Any, AtLeast, Between, Distinct, GzipLevel, ListOf, NotEmpty, OneOf, OneOfAnyCase, SomeOf,
    Voters,
};
use super::table::{Standing, broker_keys, default_value};
use super::{ConfigKey, ConfigType, UpdateMode};

/// All keys that a broker may set.
pub static BROKER_KEYS: &[ConfigKey] = broker_keys! {
// Who this node is
"node.id" Int "1" AtLeast(0), ReadOnly, Used =>
    "This node's number in the cluster, from 0; no other node has it.";
"broker.id" Int "1" Any, ReadOnly, Used =>
    "An older name for node.id.";
"process.roles" List "broker,controller" SomeOf(&["broker", "controller"]), ReadOnly, Used =>
    "What this node does: `broker` keeps partitions and serves clients, `controller` votes on the metadata. A single node does both.";
"broker.rack" String null Any, ReadOnly, Used =>
    "The rack or zone this node stands in, for clients that read from the nearest replica.";

// Listeners
"listeners" List "PLAINTEXT://:9092" NotEmpty, PerBroker, Used =>
    "Where this node listens: NAME://HOST:PORT, separated by commas. An empty host is every address.";
"advertised.listeners" List null NotEmpty, ReadOnly, Used =>
    "The addresses that clients are told to connect to, where they are not those of listeners.";
"listener.security.protocol.map" String "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT" Any, PerBroker, Used =>
    "The security protocol of each listener name, as NAME:PROTOCOL pairs.";
"inter.broker.listener.name" String null Any, ReadOnly, Used =>
    "The listener that brokers use among themselves; by default the one of security.inter.broker.protocol.";
"security.inter.broker.protocol" String "PLAINTEXT" OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]), ReadOnly, Later =>
    "The security protocol between brokers where inter.broker.listener.name names no listener.";
"controller.listener.names" List null NotEmpty, ReadOnly, Used =>
    "The listeners of the controllers; the first one is used to reach them.";
"socket.request.max.bytes" Int "104857600" AtLeast(1), ReadOnly, Used =>
    "The largest request that is read, in bytes; a larger one closes its connection.";
"socket.receive.buffer.bytes" Int "102400" Any, ReadOnly, Later =>
    "The socket's receive buffer (SO_RCVBUF), in bytes; -1 leaves it to the system.";
"socket.send.buffer.bytes" Int "102400" Any, ReadOnly, Later =>
    "The socket's send buffer (SO_SNDBUF), in bytes; -1 leaves it to the system.";
"socket.listen.backlog.size" Int "50" AtLeast(1), ReadOnly, Later =>
    "How many connections may wait to be accepted.";
"connections.max.idle.ms" Long "600000" Any, ReadOnly, Used =>
    "A connection without a request for this long is closed, in milliseconds.";
"max.connections" Int "2147483647" AtLeast(0), ClusterWide, Used =>
    "How many connections this node holds at once.";
"max.connections.per.ip" Int "2147483647" AtLeast(0), ClusterWide, Used =>
    "How many connections one address may hold at once.";
"max.connections.per.ip.overrides" String "" Any, ClusterWide, Used =>
    "Other bounds for some addresses, as address:count pairs, separated by commas.";
"max.connection.creation.rate" Int "2147483647" AtLeast(0), ClusterWide, Later =>
    "How many connections are accepted in a second.";
"queued.max.requests" Int "500" AtLeast(1), ReadOnly, Later =>
    "How many requests may wait for a thread. Ottla bounds each connection instead.";
"queued.max.request.bytes" Long "-1" Any, ReadOnly, Later =>
    "How many bytes of requests may wait for a thread; -1 sets no bound. Ottla bounds each connection instead.";

// The log folders
"log.dirs" List null NotEmpty, ReadOnly, Used =>
    "The folders that hold the partitions, separated by commas; where it is not set, log.dir counts.";
"log.dir" List "data" NotEmpty, ReadOnly, Used =>
    "The folder that holds the partitions.";
"metadata.log.dir" String null Any, ReadOnly, Used =>
    "The folder that holds the metadata log; by default the first of log.dirs.";
"cordoned.log.dirs" List "" Distinct, PerBroker, Later =>
    "Log folders that get no new partitions.";
"num.recovery.threads.per.data.dir" Int "2" AtLeast(1), ClusterWide, Used =>
    "How many partitions of each folder are opened and recovered at the same time at start.";
"log.dir.failure.timeout.ms" Long "30000" AtLeast(1), ReadOnly, Later =>
    "How long a node may be unable to tell the controller of a failed folder before it stops, in milliseconds.";
"log.flush.offset.checkpoint.interval.ms" Int "60000" AtLeast(0), ReadOnly, Later =>
    "How often the recovery points are written down, in milliseconds.";
"log.flush.start.offset.checkpoint.interval.ms" Int "60000" AtLeast(0), ReadOnly, Later =>
    "How often the log start offsets are written down, in milliseconds.";
"replica.high.watermark.checkpoint.interval.ms" Long "5000" Any, ReadOnly, Used =>
    "How often the high watermarks are written down, in milliseconds.";

// Topics as they are made
"num.partitions" Int "1" AtLeast(1), ReadOnly, Used =>
    "How many partitions a topic gets where its creator does not say.";
"default.replication.factor" Int "1" Any, ReadOnly, Used =>
    "How many replicas a partition gets where its creator does not say.";
"auto.create.topics.enable" Boolean "true" Any, ReadOnly, Used =>
    "Whether a topic that a client asks for by name is created.";
"delete.topic.enable" Boolean "true" Any, ReadOnly, Used =>
    "Whether topics may be deleted.";
"min.insync.replicas" Int "1" AtLeast(1), ClusterWide, Used =>
    "How many replicas must be in sync for a write with acks=all to be accepted, the leader counted; a topic may say otherwise.";
"unclean.leader.election.enable" Boolean "false" Any, ClusterWide, Used =>
    "Whether a replica that is not in sync may lead when no other is left; a topic may say otherwise.";
"write.caching.default" Boolean "false" Any, ReadOnly, Used =>
    "Whether topics that do not say otherwise count a record as written once the operating system has it, as Kafka does, and not once it is on disk.";

// What topics keep by default
"log.cleanup.policy" List "delete" ListOf(&["compact", "delete"]), ClusterWide, Used =>
    "What becomes of old segments: `delete`, `compact` or both; a topic's cleanup.policy goes before it.";
"log.retention.ms" Long null Any, ClusterWide, Used =>
    "How long records are kept, in milliseconds; -1 is for ever. Goes before log.retention.minutes.";
"log.retention.minutes" Int null Any, ReadOnly, Used =>
    "How long records are kept, in minutes. Goes before log.retention.hours.";
"log.retention.hours" Int "168" Any, ReadOnly, Used =>
    "How long records are kept, in hours.";
"log.retention.bytes" Long "-1" Any, ClusterWide, Used =>
    "How large one partition may grow before its oldest segments are deleted, in bytes; -1 sets no bound.";
"log.retention.check.interval.ms" Long "300000" AtLeast(1), ReadOnly, Used =>
    "How often it is looked for segments that may be deleted, in milliseconds.";
"compression.type" String "producer" OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]), ClusterWide, Used =>
    "The codec that batches are stored with: `producer` keeps what the producer chose.";
"compression.gzip.level" Int "-1" GzipLevel, ClusterWide, Used =>
    "The level of gzip where compression.type asks for it; -1 is the codec's own default.";
"compression.lz4.level" Int "9" Between(1, 17), ClusterWide, Used =>
    "The level of lz4 where compression.type asks for it.";
"compression.zstd.level" Int "3" Between(-131_072, 22), ClusterWide, Used =>
    "The level of zstd where compression.type asks for it.";
"message.max.bytes" Int "1048588" AtLeast(0), ClusterWide, Used =>
    "The largest record batch that is accepted, compressed as it is, in bytes; a topic's max.message.bytes goes before it.";
"max.decompressed.message.bytes" Int "2147483639" Between(1, 2_147_483_639), ClusterWide, Used =>
    "The largest record that is accepted once decompressed, in bytes.";
"log.message.timestamp.type" String "CreateTime" OneOf(&["CreateTime", "LogAppendTime"]), ClusterWide, Used =>
    "Whose clock stamps the records: `CreateTime` or `LogAppendTime`.";
"log.message.timestamp.before.max.ms" Long "9223372036854775807" AtLeast(0), ClusterWide, Used =>
    "How far a record's own timestamp may lie behind the broker's clock, in milliseconds.";
"log.message.timestamp.after.max.ms" Long "3600000" AtLeast(0), ClusterWide, Used =>
    "How far a record's own timestamp may lie before the broker's clock, in milliseconds.";
"log.segment.bytes" Int "1073741824" AtLeast(1_048_576), ClusterWide, Used =>
    "The size at which a segment is closed and a new one begun, in bytes.";
"log.segment.delete.delay.ms" Long "60000" AtLeast(0), ClusterWide, Used =>
    "How long files of a deleted segment stay on disk for readers that still have them open, in milliseconds.";
"log.roll.ms" Long null Any, ClusterWide, Used =>
    "The age at which a segment is closed even if it is not full, in milliseconds. Goes before log.roll.hours.";
"log.roll.hours" Int "168" AtLeast(1), ReadOnly, Used =>
    "The age at which a segment is closed even if it is not full, in hours.";
"log.roll.jitter.ms" Long null Any, ClusterWide, Used =>
    "Up to this much is taken from log.roll.ms at random, in milliseconds. Goes before log.roll.jitter.hours.";
"log.roll.jitter.hours" Int "0" AtLeast(0), ReadOnly, Used =>
    "Up to this much is taken from log.roll.hours at random, in hours.";
"log.index.size.max.bytes" Int "10485760" AtLeast(4), ClusterWide, Used =>
    "The size that an index may reach before its segment is closed, in bytes.";
"log.index.interval.bytes" Int "4096" AtLeast(0), ClusterWide, Used =>
    "About every how many bytes of log an index entry is written.";
"log.flush.interval.messages" Long "9223372036854775807" AtLeast(1), ClusterWide, Used =>
    "After how many records a topic with write.caching is flushed to disk.";
"log.flush.interval.ms" Long null Any, ClusterWide, Used =>
    "After how long a topic with write.caching is flushed to disk, in milliseconds; where it is not set, log.flush.scheduler.interval.ms counts.";
"log.flush.scheduler.interval.ms" Long "9223372036854775807" Any, ReadOnly, Used =>
    "How often it is looked for a topic with write.caching that must be flushed, in milliseconds.";
"log.preallocate" Boolean "false" Any, ClusterWide, Used =>
    "Whether a new segment's file is given its full size at once.";

// Compaction
"log.cleaner.enable" Boolean "true" Any, ReadOnly, Later =>
    "Whether compacted topics are cleaned at all.";
"log.cleaner.threads" Int "1" AtLeast(0), ClusterWide, Later =>
    "How many logs are compacted at the same time.";
"log.cleaner.dedupe.buffer.size" Long "134217728" Any, ClusterWide, Later =>
    "The memory for the key tables of all compactions together, in bytes.";
"log.cleaner.io.buffer.size" Int "524288" AtLeast(0), ClusterWide, Later =>
    "The memory for reading and writing of all compactions together, in bytes.";
"log.cleaner.io.buffer.load.factor" Double "0.9" Any, ClusterWide, Later =>
    "How full a key table may get, from 0 to 1.";
"log.cleaner.io.max.bytes.per.second" Double "1.7976931348623157E308" Any, ClusterWide, Later =>
    "How much compaction may read and write in a second, in bytes.";
"log.cleaner.backoff.ms" Long "15000" AtLeast(0), ClusterWide, Later =>
    "How long the cleaner rests when there is nothing to clean, in milliseconds.";
"log.cleaner.min.cleanable.ratio" Double "0.5" Between(0, 1), ClusterWide, Later =>
    "The share of a compacted log that must be uncleaned before the cleaner takes it up, from 0 to 1.";
"log.cleaner.delete.retention.ms" Long "86400000" AtLeast(0), ClusterWide, Later =>
    "How long a tombstone stays readable after the cleaner passed it, in milliseconds.";
"log.cleaner.min.compaction.lag.ms" Long "0" AtLeast(0), ClusterWide, Later =>
    "A record younger than this is not compacted away, in milliseconds.";
"log.cleaner.max.compaction.lag.ms" Long "9223372036854775807" AtLeast(1), ClusterWide, Later =>
    "A record older than this is compacted soon, in milliseconds.";

// Tiers
"log.local.retention.ms" Long "-2" AtLeast(-2), ClusterWide, Later =>
    "How long segments that are also in remote storage stay on this disk, in milliseconds; -2 is as long as log.retention.ms.";
"log.local.retention.bytes" Long "-2" AtLeast(-2), ClusterWide, Later =>
    "How much log that is also in remote storage stays on this disk, in bytes; -2 is as much as log.retention.bytes.";
"log.remote.copy.lag.ms" Long "0" AtLeast(-1), ClusterWide, Later =>
    "The age that a closed segment reaches before it is copied to remote storage, in milliseconds.";
"log.remote.copy.lag.bytes" Long "-1" AtLeast(-1), ClusterWide, Later =>
    "How much newer log there is before a closed segment is copied to remote storage, in bytes.";

// Produce and fetch
"producer.id.expiration.ms" Int "86400000" AtLeast(1), ClusterWide, Used =>
    "A producer id that has not written to a partition for this long is forgotten there, in milliseconds.";
"fetch.max.bytes" Int "57671680" AtLeast(1024), ReadOnly, Used =>
    "The most that one fetch is answered with, whatever it asks for, in bytes.";
"max.incremental.fetch.session.cache.slots" Int "1000" AtLeast(0), ReadOnly, Used =>
    "How many incremental fetch sessions are kept.";
"max.request.partition.size.limit" Int "2000" AtLeast(1), ReadOnly, Used =>
    "The most partitions that one request may list where the answer is paged.";
"replica.selector.class" String null Any, ReadOnly, Later =>
    "How a consumer is sent to the replica that is best for it.";

// Replication
"num.replica.fetchers" Int "1" AtLeast(1), ClusterWide, Later =>
    "How many fetchers copy partitions from each other broker.";
"replica.lag.time.max.ms" Long "30000" Any, ReadOnly, Used =>
    "A follower that has not caught up for this long leaves the in-sync replicas, in milliseconds.";
"replica.fetch.max.bytes" Int "1048576" AtLeast(0), ReadOnly, Used =>
    "About how much of one partition a follower fetches at once, in bytes.";
"replica.fetch.min.bytes" Int "1" Any, ReadOnly, Used =>
    "How much must be there before a follower's fetch is answered, in bytes.";
"replica.fetch.response.max.bytes" Int "10485760" AtLeast(0), ReadOnly, Used =>
    "About how much a follower fetches at once in all, in bytes.";
"replica.fetch.wait.max.ms" Int "500" Any, ReadOnly, Used =>
    "How long a follower's fetch waits for data, in milliseconds.";
"replica.fetch.backoff.ms" Int "1000" AtLeast(0), ReadOnly, Used =>
    "How long a follower leaves a partition alone after a failure, in milliseconds.";
"replica.socket.timeout.ms" Int "30000" Any, ReadOnly, Used =>
    "How long a follower waits for an answer, in milliseconds.";
"replica.socket.receive.buffer.bytes" Int "65536" Any, ReadOnly, Later =>
    "The receive buffer of a follower's socket, in bytes.";
"auto.leader.rebalance.enable" Boolean "true" Any, ReadOnly, Used =>
    "Whether leadership goes back to the preferred replicas by itself.";
"leader.imbalance.check.interval.seconds" Long "300" AtLeast(1), ReadOnly, Used =>
    "How often it is looked for leaders that should move back, in seconds.";
"controlled.shutdown.enable" Boolean "true" Any, ReadOnly, Used =>
    "Whether a node that is stopped hands its leaderships over first.";
"request.timeout.ms" Int "30000" Any, ReadOnly, Later =>
    "How long this node waits for an answer of another one, in milliseconds.";

// Brokers and controllers
"broker.heartbeat.interval.ms" Int "2000" Any, ReadOnly, Used =>
    "How often a broker tells the controller that it is alive, in milliseconds.";
"broker.session.timeout.ms" Int "9000" Any, ReadOnly, Used =>
    "A broker that has not been heard of for this long is fenced, in milliseconds.";
"initial.broker.registration.timeout.ms" Int "60000" Any, ReadOnly, Used =>
    "How long a broker tries to register at start before it gives up, in milliseconds.";
"controller.quorum.voters" List "" Voters, ReadOnly, Used =>
    "The controllers that vote, as ID@HOST:PORT, separated by commas. A single node needs none.";
"controller.quorum.bootstrap.servers" List "" Addresses, ReadOnly, Used =>
    "Addresses at which the controllers can be found, as HOST:PORT, separated by commas.";
"controller.quorum.auto.join.enable" Boolean "false" Any, ReadOnly, Later =>
    "Whether a controller that is not a voter adds itself.";
"controller.quorum.election.timeout.ms" Int "1000" AtLeast(0), ReadOnly, Used =>
    "How long a voter waits for votes, and without a leader, before it tries again, in milliseconds.";
"controller.quorum.election.backoff.max.ms" Int "1000" AtLeast(0), ReadOnly, Used =>
    "The longest pause before another election, in milliseconds.";
"controller.quorum.fetch.timeout.ms" Int "2000" AtLeast(0), ReadOnly, Used =>
    "A leader that has not been heard of for this long counts as lost, in milliseconds.";
"controller.quorum.request.timeout.ms" Int "2000" AtLeast(0), ReadOnly, Used =>
    "How long a voter waits for an answer, in milliseconds.";
"controller.quorum.retry.backoff.ms" Int "20" AtLeast(0), ReadOnly, Used =>
    "How long a voter waits before it asks again, in milliseconds.";
"controller.quorum.append.linger.ms" Int "25" AtLeast(0), ReadOnly, Later =>
    "How long the leader gathers records before it flushes them, in milliseconds. Ottla does not wait.";
"controller.quorum.fetch.max.bytes" Int "1048576" AtLeast(1), ReadOnly, Later =>
    "How much of the metadata log one fetch takes, in bytes.";
"controller.quorum.fetch.snapshot.max.bytes" Int "1048576" AtLeast(1), ReadOnly, Later =>
    "How much of a snapshot one fetch takes, in bytes.";
"metadata.log.segment.bytes" Int "1073741824" AtLeast(8_388_608), ReadOnly, Later =>
    "The size at which a segment of the metadata log is closed, in bytes.";
"metadata.log.segment.ms" Long "604800000" Any, ReadOnly, Later =>
    "The age at which a segment of the metadata log is closed, in milliseconds.";
"metadata.log.max.record.bytes.between.snapshots" Long "20971520" AtLeast(1), ReadOnly, Used =>
    "How much metadata log is written before a snapshot of the metadata is made, in bytes.";
"metadata.log.max.snapshot.interval.ms" Long "3600000" AtLeast(0), ReadOnly, Later =>
    "The longest time between two snapshots of the metadata while it changes, in milliseconds; 0 sets no bound.";
"metadata.max.idle.interval.ms" Int "500" AtLeast(0), ReadOnly, Later =>
    "How often the controller writes a no-op record when there is nothing else to write, in milliseconds; 0 never.";
"metadata.max.retention.bytes" Long "104857600" Any, ReadOnly, Later =>
    "How much metadata log and snapshots are kept, in bytes.";
"metadata.max.retention.ms" Long "604800000" Any, ReadOnly, Later =>
    "How long metadata log and snapshots are kept that a newer snapshot covers, in milliseconds.";

// Groups
"group.min.session.timeout.ms" Int "6000" Any, ReadOnly, Used =>
    "The shortest session timeout that a classic member may ask for, in milliseconds.";
"group.max.session.timeout.ms" Int "1800000" Any, ReadOnly, Used =>
    "The longest session timeout that a classic member may ask for, in milliseconds.";
"group.initial.rebalance.delay.ms" Int "3000" Any, ReadOnly, Used =>
    "How long a new classic group waits for more members before its first assignment, in milliseconds.";
"group.max.size" Int "2147483647" AtLeast(1), ReadOnly, Used =>
    "How many members a classic group may have.";
"group.coordinator.rebalance.protocols" List "classic,consumer,streams" SomeOf(&["consumer", "classic", "share", "streams"]), ReadOnly, Later =>
    "The kinds of groups that are served.";
"group.consumer.session.timeout.ms" Int "45000" AtLeast(1), ReadOnly, Later =>
    "A consumer group's member that has not been heard of for this long is removed, in milliseconds.";
"group.consumer.min.session.timeout.ms" Int "45000" AtLeast(1), ReadOnly, Later =>
    "The shortest session timeout that a consumer group may be given, in milliseconds.";
"group.consumer.max.session.timeout.ms" Int "60000" AtLeast(1), ReadOnly, Later =>
    "The longest session timeout that a consumer group may be given, in milliseconds.";
"group.consumer.heartbeat.interval.ms" Int "5000" AtLeast(1), ReadOnly, Later =>
    "How often a consumer group's members are told to heartbeat, in milliseconds.";
"group.consumer.min.heartbeat.interval.ms" Int "5000" AtLeast(1), ReadOnly, Later =>
    "The shortest heartbeat interval that a consumer group may be given, in milliseconds.";
"group.consumer.max.heartbeat.interval.ms" Int "15000" AtLeast(1), ReadOnly, Later =>
    "The longest heartbeat interval that a consumer group may be given, in milliseconds.";
"group.consumer.max.size" Int "2147483647" AtLeast(1), ReadOnly, Later =>
    "How many members a consumer group may have.";
"group.consumer.assignors" List "uniform,range" NotEmpty, ReadOnly, Later =>
    "The assignors that consumer groups may choose from; the first one is the default.";
"group.consumer.assignment.interval.ms" Int "1000" AtLeast(0), ClusterWide, Later =>
    "The shortest time between two assignments of a consumer group, in milliseconds.";
"group.consumer.migration.policy" String "bidirectional" OneOfAnyCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"]), ReadOnly, Later =>
    "Whether groups may go between the classic and the consumer protocol: `disabled`, `upgrade`, `downgrade` or `bidirectional`.";
"group.share.session.timeout.ms" Int "45000" AtLeast(1), ReadOnly, Later =>
    "A share group's member that has not been heard of for this long is removed, in milliseconds.";
"group.share.heartbeat.interval.ms" Int "5000" AtLeast(1), ReadOnly, Later =>
    "How often a share group's members are told to heartbeat, in milliseconds.";
"group.share.record.lock.duration.ms" Int "30000" Between(1000, 3_600_000), ReadOnly, Later =>
    "How long a share group's member may hold a record, in milliseconds.";
"group.share.delivery.count.limit" Int "5" Between(2, 10), ReadOnly, Later =>
    "How many times a record is handed out in a share group.";
"group.share.partition.max.record.locks" Int "2000" Between(100, 10000), ReadOnly, Later =>
    "How many records of one partition a share group may hold.";
"group.streams.session.timeout.ms" Int "45000" AtLeast(1), ReadOnly, Later =>
    "A streams group's member that has not been heard of for this long is removed, in milliseconds.";
"group.streams.heartbeat.interval.ms" Int "5000" AtLeast(1), ReadOnly, Later =>
    "How often a streams group's members are told to heartbeat, in milliseconds.";
"group.streams.num.standby.replicas" Int "0" AtLeast(0), ReadOnly, Later =>
    "How many standby copies of each task a streams group keeps.";
"offsets.topic.num.partitions" Int "50" AtLeast(1), ReadOnly, Used =>
    "How many partitions __consumer_offsets is created with.";
"offsets.topic.replication.factor" Short "3" AtLeast(1), ReadOnly, Used =>
    "How many replicas __consumer_offsets is created with; as many as there are brokers, where there are fewer.";
"offsets.topic.segment.bytes" Int "104857600" AtLeast(1), ReadOnly, Used =>
    "The segment size of __consumer_offsets, in bytes.";
"offsets.topic.compression.codec" Int "0" Any, ReadOnly, Later =>
    "The codec of __consumer_offsets by its number; 0 is none.";
"offsets.retention.minutes" Int "10080" AtLeast(1), ReadOnly, Used =>
    "How long offsets are kept after their group is empty, in minutes.";
"offsets.retention.check.interval.ms" Long "600000" AtLeast(1), ReadOnly, Used =>
    "How often it is looked for offsets that have expired, in milliseconds.";
"offset.metadata.max.bytes" Int "4096" Any, ReadOnly, Used =>
    "The longest text that may be committed with an offset, in bytes.";
"offsets.commit.timeout.ms" Int "5000" AtLeast(1), ReadOnly, Used =>
    "How long a commit waits to be durable before it is refused, in milliseconds.";
"offsets.load.buffer.size" Int "5242880" AtLeast(1), ReadOnly, Later =>
    "How much of __consumer_offsets is read at once when a group is loaded, in bytes.";

// Transactions
"transaction.state.log.num.partitions" Int "50" AtLeast(1), ReadOnly, Later =>
    "How many partitions __transaction_state is created with.";
"transaction.state.log.replication.factor" Short "3" AtLeast(1), ReadOnly, Later =>
    "How many replicas __transaction_state is created with; as many as there are brokers, where there are fewer.";
"transaction.state.log.min.isr" Int "2" AtLeast(1), ReadOnly, Later =>
    "How many replicas of __transaction_state must be in sync; never more than it has.";
"transaction.state.log.segment.bytes" Int "104857600" AtLeast(1), ReadOnly, Later =>
    "The segment size of __transaction_state, in bytes.";
"transaction.state.log.load.buffer.size" Int "5242880" AtLeast(1), ReadOnly, Later =>
    "How much of __transaction_state is read at once when a transaction is loaded, in bytes.";
"transaction.max.timeout.ms" Int "900000" AtLeast(1), ReadOnly, Later =>
    "The longest timeout that a transaction may ask for, in milliseconds.";
"transaction.abort.timed.out.transaction.cleanup.interval.ms" Int "10000" AtLeast(1), ReadOnly, Later =>
    "How often it is looked for transactions that have timed out, in milliseconds.";
"transaction.remove.expired.transaction.cleanup.interval.ms" Int "3600000" AtLeast(1), ReadOnly, Later =>
    "How often it is looked for transactional ids that have expired, in milliseconds.";
"transactional.id.expiration.ms" Int "604800000" AtLeast(1), ReadOnly, Later =>
    "A transactional id that has not been used for this long is forgotten, in milliseconds.";
"transaction.partition.verification.enable" Boolean "true" Any, ClusterWide, Later =>
    "Whether a partition is checked to be part of a transaction before it takes its records.";
"transaction.two.phase.commit.enable" Boolean "false" Any, ReadOnly, Later =>
    "Whether a transaction may be left to an outside coordinator (two-phase commit).";
"share.coordinator.state.topic.num.partitions" Int "50" AtLeast(1), ReadOnly, Later =>
    "How many partitions __share_group_state is created with.";
"share.coordinator.state.topic.replication.factor" Short "3" AtLeast(1), ReadOnly, Later =>
    "How many replicas __share_group_state is created with; as many as there are brokers, where there are fewer.";
"share.coordinator.state.topic.min.isr" Short "2" AtLeast(1), ReadOnly, Later =>
    "How many replicas of __share_group_state must be in sync; never more than it has.";
"share.coordinator.state.topic.segment.bytes" Int "104857600" AtLeast(1), ReadOnly, Later =>
    "The segment size of __share_group_state, in bytes.";

// Ottla's own lines
"log.format" String "text" OneOf(&["text", "json"]), ReadOnly, Used =>
    "What a line of Ottla's own log looks like: `text` for people, `json` for machines.";

// Threads, quotas, metrics
"num.network.threads" Int "3" AtLeast(1), ClusterWide, Later =>
    "Kafka's count of threads that read and write sockets. Ottla runs on as many threads as it has cores.";
"num.io.threads" Int "8" AtLeast(1), ClusterWide, Later =>
    "Kafka's count of threads that handle requests. Ottla runs on as many threads as it has cores.";
"background.threads" Int "10" AtLeast(1), ClusterWide, Later =>
    "Kafka's count of threads for chores.";
"quota.window.num" Int "11" AtLeast(1), ReadOnly, Later =>
    "How many windows a quota is measured over.";
"quota.window.size.seconds" Int "1" AtLeast(1), ReadOnly, Later =>
    "The length of a quota's window, in seconds.";
"telemetry.max.bytes" Int "1048576" AtLeast(1), ReadOnly, Later =>
    "The largest report of metrics that a client may push, in bytes.";};
