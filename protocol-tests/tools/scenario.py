"""What is asked of a broker by Kafka's tools: one run of a tool after the other, the same for every broker."""

TOPICS = "TopicCommand"
CONFIGS = "ConfigCommand"
PRODUCER = "ConsoleProducer"
CONSUMER = "consumer.ConsoleConsumer"
GROUPS = "consumer.group.ConsumerGroupCommand"
OFFSETS = "GetOffsetShell"

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def play(run):
    """All steps. `run(name, tool, *arguments, …)` runs a tool with the broker's address and keeps what it said."""
    topics(run)
    configs(run)
    console(run)
    offsets(run)
    groups(run)
    node(run)
    load(run)
    delete_topics(run)


def topics(run):
    create = [TOPICS, "--create", "--topic"]
    run("topics-create", *create, "t1", "--partitions", 3, "--config", "retention.ms=86400000")
    run("topics-create-defaults", *create, "t2")
    run("topics-create-assigned", *create, "t3", "--replica-assignment", "1,1")
    run("topics-create-with-a-point", *create, "t.4", "--partitions", 1, "--replication-factor", 1)
    run("topics-create-collision", *create, "t_4")
    run("topics-create-existing", *create, "t1")
    run("topics-create-if-not-exists", *create, "t1", "--if-not-exists")
    run("topics-create-too-many-replicas", *create, "bad", "--replication-factor", 3)
    run("topics-create-no-partitions", *create, "bad", "--partitions", 0)
    run("topics-create-bad-name", *create, "a b")
    run("topics-create-long-name", *create, "n" * 250)
    run("topics-create-bad-config", *create, "bad", "--config", "retention.ms=soon")
    run("topics-create-unknown-config", *create, "bad", "--config", "nosuch=1")
    run("topics-create-unknown-replica", *create, "bad", "--replica-assignment", "7")
    run("topics-create-double-replica", *create, "bad", "--replica-assignment", "1:1")
    run("topics-list", TOPICS, "--list")
    run("topics-list-one", TOPICS, "--list", "--topic", "t1")
    run("topics-list-pattern", TOPICS, "--list", "--topic", "t[12]")
    run("topics-describe", TOPICS, "--describe", "--topic", "t1")
    run("topics-describe-all", TOPICS, "--describe", "--exclude-internal", sort=True)
    run("topics-describe-unknown", TOPICS, "--describe", "--topic", "nosuch")
    run("topics-describe-if-exists", TOPICS, "--describe", "--topic", "nosuch", "--if-exists")
    run("topics-describe-unknown-id", TOPICS, "--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAEQ")
    for which in ["topics-with-overrides", "under-replicated-partitions", "unavailable-partitions", "at-min-isr-partitions"]:
        run(f"topics-describe-{which}", TOPICS, "--describe", f"--{which}", sort=True)
    alter = [TOPICS, "--alter", "--topic"]
    run("topics-alter", *alter, "t2", "--partitions", 4)
    run("topics-alter-fewer", *alter, "t2", "--partitions", 2)
    run("topics-alter-same", *alter, "t2", "--partitions", 4)
    run("topics-alter-assigned", *alter, "t3", "--partitions", 3, "--replica-assignment", "1,1,1")
    run("topics-alter-unknown", *alter, "nosuch", "--partitions", 4)
    run("topics-alter-unknown-replica", *alter, "t3", "--partitions", 4, "--replica-assignment", "1,1,1,7")
    run("topics-altered", TOPICS, "--describe", "--topic", "t2")


def configs(run):
    topic = [CONFIGS, "--entity-type", "topics", "--entity-name", "t1"]
    broker = [CONFIGS, "--entity-type", "brokers", "--entity-name", 1]
    default = [CONFIGS, "--entity-type", "brokers", "--entity-default"]
    run("configs-topic", *topic, "--describe")
    run("configs-topic-all", *topic, "--describe", "--all")
    run("configs-topic-alter", *topic, "--alter", "--add-config", "max.message.bytes=2000000,cleanup.policy=[compact,delete]")
    run("configs-topic-altered", *topic, "--describe")
    run("configs-topic-delete", *topic, "--alter", "--delete-config", "cleanup.policy")
    run("configs-topic-deleted", *topic, "--describe")
    run("configs-topic-delete-absent", *topic, "--alter", "--delete-config", "cleanup.policy")
    run("configs-topic-unknown-key", *topic, "--alter", "--add-config", "nosuch=1")
    run("configs-topic-delete-unknown-key", *topic, "--alter", "--delete-config", "nosuch")
    run("configs-topic-bad-value", *topic, "--alter", "--add-config", "retention.ms=soon")
    run("configs-topic-out-of-range", *topic, "--alter", "--add-config", "min.insync.replicas=0")
    run("configs-topic-bad-list", *topic, "--alter", "--add-config", "cleanup.policy=shred")
    run("configs-topic-bad-choice", *topic, "--alter", "--add-config", "compression.type=rar")
    unknown = [CONFIGS, "--entity-type", "topics", "--entity-name", "nosuch"]
    run("configs-topic-unknown", *unknown, "--describe")
    run("configs-topic-unknown-alter", *unknown, "--alter", "--add-config", "retention.ms=1")
    run("configs-topics", CONFIGS, "--entity-type", "topics", "--describe", sort=True)
    run("configs-broker", *broker, "--describe")
    run("configs-broker-all", *broker, "--describe", "--all", sort=True)
    run("configs-broker-alter", *broker, "--alter", "--add-config", "log.retention.ms=777777")
    run("configs-default-alter", *default, "--alter", "--add-config", "log.retention.ms=888888,message.max.bytes=1500000")
    run("configs-broker-altered", *broker, "--describe")
    run("configs-default-altered", *default, "--describe")
    run("configs-topic-inherits", *[*topic[:-1], "t2"], "--describe", "--all")
    run("configs-broker-read-only", *broker, "--alter", "--add-config", "log.dirs=elsewhere")
    run("configs-broker-unknown-key", *broker, "--alter", "--add-config", "nosuch=1")
    run("configs-broker-bad-value", *broker, "--alter", "--add-config", "log.retention.ms=soon")
    run("configs-default-bad-value", *default, "--alter", "--add-config", "message.max.bytes=-5")
    run("configs-broker-delete", *broker, "--alter", "--delete-config", "log.retention.ms")
    run("configs-default-delete", *default, "--alter", "--delete-config", "log.retention.ms,message.max.bytes")
    run("configs-broker-deleted", *broker, "--describe")
    run("configs-unknown-broker", CONFIGS, "--entity-type", "brokers", "--entity-name", 9, "--describe", seconds=20)
    run("configs-text-for-broker", CONFIGS, "--entity-type", "brokers", "--entity-name", "one", "--describe")


def console(run):
    lines = "".join(f"k{i}:value {i}\n" for i in range(6))
    keys = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    run("topics-create-for-console", TOPICS, "--create", "--topic", "c1", "--partitions", 1)
    for codec in CODECS:
        run(f"producer-{codec}", PRODUCER, "--topic", "c1", "--compression-codec", codec, *keys, stdin=lines)
    run("producer-acks-1", PRODUCER, "--topic", "c1", "--command-property", "acks=1", stdin="one\n")
    run("producer-acks-0", PRODUCER, "--topic", "c1", "--command-property", "acks=0", stdin="two\n")
    headers = ["--reader-property", "parse.headers=true", "--reader-property", "null.marker=NULL"]
    run("producer-headers", PRODUCER, "--topic", "c1", *headers, *keys, stdin="a:1,a:2,b:NULL\tk:NULL\n")
    run("producer-creates", PRODUCER, "--topic", "c2", stdin="born\n")
    run("producer-bad-name", PRODUCER, "--topic", "a b", "--command-property", "max.block.ms=3000", stdin="x\n")
    run("producer-too-large", PRODUCER, "--topic", "c1", "--command-property", "max.request.size=3000000", stdin="y" * 1200000)
    show = [f"--formatter-property=print.{what}=true" for what in ["partition", "offset", "key", "headers", "timestamp"]]
    wait = ["--timeout-ms", 4000]
    read = [CONSUMER, "--topic", "c1", *show, *wait]
    run("consumer-from-beginning", *read, "--from-beginning", "--max-messages", 33)
    run("consumer-offset", *read, "--partition", 0, "--offset", 7, "--max-messages", 3)
    run("consumer-offset-earliest", *read, "--partition", 0, "--offset", "earliest", "--max-messages", 1)
    run("consumer-unknown-partition", *read, "--partition", 9, "--offset", 1)
    run("consumer-latest", *read)
    run("consumer-read-committed", *read, "--from-beginning", "--isolation-level", "read_committed", "--max-messages", 2)
    run("consumer-created-topic", CONSUMER, "--topic", "c2", "--from-beginning", "--max-messages", 1, *show, *wait)
    run("consumer-pattern", CONSUMER, "--include", "c[2]", "--from-beginning", "--max-messages", 1, *wait)
    run("consumer-creates", CONSUMER, "--topic", "c3", *wait)
    run("topics-created", TOPICS, "--describe", "--topic", "c3")


def offsets(run):
    run("offsets", OFFSETS, "--topic", "c1")
    for time in ["earliest", "latest", "max-timestamp", "earliest-local", "-1", "-2", "-3", 0, 1000, 9999999999999]:
        run(f"offsets-time-{time}", OFFSETS, "--topic", "c1", "--time", time)
    run("offsets-bad-time", OFFSETS, "--topic", "c1", "--time", "noon")
    run("offsets-all", OFFSETS, "--exclude-internal-topics")
    run("offsets-partitions", OFFSETS, "--topic-partitions", "t1:0-2,c1:0")
    run("offsets-some", OFFSETS, "--topic", "t1", "--partitions", "1,2")
    run("offsets-unknown-topic", OFFSETS, "--topic", "nosuch")
    run("offsets-unknown-partition", OFFSETS, "--topic", "c1", "--partitions", 9)


def groups(run):
    take = [CONSUMER, "--topic", "c1", "--from-beginning", "--timeout-ms", 8000]
    run("groups-none", GROUPS, "--list")
    run("groups-consume", *take, "--group", "g1", "--max-messages", 5)
    run("groups-consume-more", *take, "--group", "g1", "--max-messages", 4)
    run("groups-consume-other", *take, "--group", "g2", "--max-messages", 1)
    run("groups-list", GROUPS, "--list", sort=True)
    run("groups-list-state", GROUPS, "--list", "--state", sort=True)
    run("groups-list-empty", GROUPS, "--list", "--state", "Empty", sort=True)
    run("groups-list-stable", GROUPS, "--list", "--state", "Stable")
    run("groups-list-type", GROUPS, "--list", "--type", "classic", sort=True)
    run("groups-list-consumer", GROUPS, "--list", "--type", "consumer")
    run("groups-groups", "GroupsCommand", "--list", sort=True)
    for what in ["offsets", "members", "state"]:
        run(f"groups-describe-{what}", GROUPS, "--describe", "--group", "g1", f"--{what}")
        run(f"groups-describe-unknown-{what}", GROUPS, "--describe", "--group", "nosuch", f"--{what}")
    run("groups-describe-all", GROUPS, "--describe", "--all-groups", sort=True)
    reset = [GROUPS, "--reset-offsets", "--group", "g1", "--topic", "c1"]
    run("groups-reset-dry", *reset, "--to-earliest", "--dry-run")
    run("groups-reset-earliest", *reset, "--to-earliest", "--execute")
    run("groups-reset-latest", *reset, "--to-latest", "--execute")
    run("groups-reset-shift", *reset, "--shift-by", "-3", "--execute")
    run("groups-reset-shift-far", *reset, "--shift-by", "1000", "--execute")
    run("groups-reset-offset", *reset, "--to-offset", 3, "--execute")
    run("groups-reset-datetime", *reset, "--to-datetime", "2020-01-01T00:00:00.000", "--execute")
    run("groups-reset-future", *reset, "--to-datetime", "2222-01-01T00:00:00.000", "--execute")
    run("groups-reset-duration", *reset, "--by-duration", "PT1H", "--execute")
    run("groups-reset-current", *reset, "--to-current", "--execute")
    run("groups-reset-export", *reset, "--to-offset", 4, "--export", "--dry-run")
    run("groups-reset-partition", GROUPS, "--reset-offsets", "--group", "g1", "--topic", "c1:0", "--to-offset", 2, "--execute")
    run("groups-reset-unknown-topic", *reset[:-1], "nosuch", "--to-earliest", "--execute")
    run("groups-reset-unknown-partition", *reset[:-1], "c1:9", "--to-earliest", "--execute")
    run("groups-reset-new-group", *[*reset[:3], "g3", *reset[4:]], "--to-earliest", "--execute")
    run("groups-after-reset", GROUPS, "--describe", "--group", "g1")
    delete_offsets = [GROUPS, "--delete-offsets", "--group", "g1", "--topic"]
    run("groups-delete-offsets-unknown-topic", *delete_offsets, "nosuch")
    run("groups-delete-offsets-unknown-partition", *delete_offsets, "c1:9")
    run("groups-delete-offsets", *delete_offsets, "c1")
    run("groups-delete-offsets-unknown-group", GROUPS, "--delete-offsets", "--group", "nosuch", "--topic", "c1")
    run("groups-after-delete-offsets", GROUPS, "--describe", "--group", "g1")
    run("groups-delete", GROUPS, "--delete", "--group", "g2")
    run("groups-delete-unknown", GROUPS, "--delete", "--group", "nosuch")
    run("groups-delete-both", GROUPS, "--delete", "--group", "g3", "--group", "nosuch")
    run("groups-left", GROUPS, "--list", sort=True)
    offsets_topic = [CONSUMER, "--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", 4000, "--formatter"]
    for formatter in ["OffsetsMessageFormatter", "GroupMetadataMessageFormatter"]:
        run(f"groups-records-{formatter}", *offsets_topic, f"org.apache.kafka.tools.consumer.{formatter}", unique=True)


def node(run):
    run("log-dirs", "LogDirsCommand", "--describe", "--topic-list", "c1,t1")
    run("log-dirs-broker", "LogDirsCommand", "--describe", "--broker-list", 1, "--topic-list", "c1")
    run("log-dirs-unknown-broker", "LogDirsCommand", "--describe", "--broker-list", 9)
    run("broker-api-versions", "BrokerApiVersionsCommand", sort=True)
    run("cluster-id", "ClusterTool", "cluster-id")
    run("cluster-endpoints", "ClusterTool", "list-endpoints")
    run("quorum-status", "MetadataQuorumCommand", "describe", "--status", first=True)
    run("quorum-replication", "MetadataQuorumCommand", "describe", "--replication", first=True, numbers=False)


def load(run):
    perf = ["ProducerPerformance", "--topic", "p1", "--num-records", 3000, "--throughput", -1, "--warmup-records", 0]
    run("topics-create-for-perf", TOPICS, "--create", "--topic", "p1", "--partitions", 3)
    for codec in CODECS:
        run(f"producer-perf-{codec}", *perf, "--record-size", 300, "--command-property", f"compression.type={codec}", numbers=False)
    run("consumer-perf", "ConsumerPerformance", "--topic", "p1", "--num-records", 15000, "--timeout", 20000, numbers=False)
    run("consumer-perf-too-few", "ConsumerPerformance", "--topic", "p1", "--num-records", 15001, "--timeout", 2000, numbers=False)
    run("offsets-of-perf", OFFSETS, "--topic", "p1", add=True)
    run("e2e-latency", "EndToEndLatency", "--topic", "e1", "--num-records", 20, "--producer-acks", "all", "--record-size", 50, numbers=False)
    run("verifiable-producer", "VerifiableProducer", "--topic", "v1", "--max-messages", 8, "--acks", -1, own=True, sort=True)
    run("verifiable-producer-repeating", "VerifiableProducer", "--topic", "v1", "--max-messages", 8, "--repeating-keys", 3, "--value-prefix", 5, own=True, sort=True)
    run("verifiable-consumer", "VerifiableConsumer", "--topic", "v1", "--group-id", "vg", "--max-messages", 16, "--reset-policy", "earliest", merge=True)
    run("verifiable-consumer-ended", GROUPS, "--describe", "--group", "vg", "--state")


def delete_topics(run):
    run("topics-delete", TOPICS, "--delete", "--topic", "t3")
    run("topics-delete-unknown", TOPICS, "--delete", "--topic", "nosuch")
    run("topics-delete-if-exists", TOPICS, "--delete", "--topic", "nosuch", "--if-exists")
    run("topics-delete-pattern", TOPICS, "--delete", "--topic", "t[12]")
    run("topics-left", TOPICS, "--list")
    run("topics-deleted-consume", CONSUMER, "--topic", "t1", "--partition", 0, "--timeout-ms", 3000)
