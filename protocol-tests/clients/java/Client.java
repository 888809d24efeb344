import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

/** The Java client, of every version from 2.8 on: everyday use of producer, consumer and admin client. */
public final class Client {
    static final Duration WAIT = Duration.ofSeconds(30);
    static String bootstrap;
    static Admin admin;

    interface Case { void run() throws Exception; }

    public static void main(String[] arguments) {
        bootstrap = arguments[0];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        int failures = 0;
        for (Map.Entry<String, Case> each : cases().entrySet()) failures += attempt(each.getKey(), each.getValue());
        admin.close();
        System.exit(failures);
    }

    static Map<String, Case> cases() {
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put("every_codec_comes_back_as_it_was", Client::everyCodec);
        cases.put("keys_headers_and_nulls_come_back_as_they_were", Client::shapes);
        cases.put("a_large_record_passes_and_a_too_large_one_is_refused", Client::large);
        cases.put("offsets_and_timestamps_are_told", Client::offsetsAndTimestamps);
        cases.put("log_append_time_replaces_the_client's", Client::logAppendTime);
        cases.put("a_consumer_starts_at_start_end_offset_and_time", Client::positions);
        cases.put("an_idempotent_producer_writes_each_record_once", Client::idempotent);
        cases.put("a_committed_offset_is_where_the_group_goes_on", Client::commit);
        cases.put("a_group_rebalances_eagerly", () -> rebalance(RangeAssignor.class));
        cases.put("a_group_rebalances_cooperatively", () -> rebalance(CooperativeStickyAssignor.class));
        cases.put("a_static_member_comes_back_without_a_rebalance", Client::staticMember);
        cases.put("topics_are_created_described_grown_and_deleted", Client::topics);
        cases.put("a_bad_replication_factor_is_refused", Client::badReplicationFactor);
        cases.put("configs_are_described_and_altered", Client::configs);
        cases.put("the_cluster_and_its_log_folders_are_described", Client::cluster);
        cases.put("offsets_are_listed_by_the_admin_client", Client::listOffsets);
        cases.put("groups_are_listed_described_altered_and_deleted", Client::groups);
        return cases;
    }

    static int attempt(String name, Case body) {
        try {
            body.run();
            System.out.println("ok " + name);
            return 0;
        } catch (Throwable why) {
            why.printStackTrace();
            System.out.println("FAIL " + name + " " + why.toString().replaceAll("\\s+", " "));
            return 1;
        }
    }

    static void everyCodec() throws Exception {
        String topic = newTopic("codecs", 1);
        List<String> values = numbered(200, "a value that can be compressed ");
        List<String> wanted = new ArrayList<>();
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            produce(topic, values, "compression.type", codec, "linger.ms", "5");
            wanted.addAll(values);
        }
        equal(valuesOf(readFrom(topic, 0, 1000)), wanted);
    }

    static void shapes() throws Exception {
        String topic = newTopic("shapes", 1);
        ProducerRecord<byte[], byte[]> first = new ProducerRecord<>(topic, 0, bytes("k"), bytes("v"));
        first.headers().add("a", bytes("1")).add("a", bytes("2")).add("empty", new byte[0]).add("null", null);
        try (Producer<byte[], byte[]> producer = producer()) {
            producer.send(first).get();
            producer.send(new ProducerRecord<>(topic, bytes("tombstone"), null)).get();
            producer.send(new ProducerRecord<>(topic, null, bytes("no key"))).get();
        }
        List<ConsumerRecord<byte[], byte[]>> got = readFrom(topic, 0, 3);
        List<String> headers = new ArrayList<>();
        for (Header each : got.get(0).headers()) headers.add(each.key() + "=" + text(each.value()));
        equal(headers, List.of("a=1", "a=2", "empty=", "null=null"));
        equal(got.stream().map(each -> text(each.key()) + ":" + text(each.value())).collect(Collectors.toList()),
            List.of("k:v", "tombstone:null", "null:no key"));
    }

    static void large() throws Exception {
        String topic = newTopic("large", 1);
        byte[] value = new byte[1_000_000];
        Arrays.fill(value, (byte) 7);
        try (Producer<byte[], byte[]> producer = producer("max.request.size", "5000000")) {
            producer.send(new ProducerRecord<>(topic, value)).get();
            refused(RecordTooLargeException.class, producer.send(new ProducerRecord<>(topic, new byte[2_000_000])));
        }
        equal(ByteBuffer.wrap(readFrom(topic, 0, 1).get(0).value()), ByteBuffer.wrap(value));
    }

    static void offsetsAndTimestamps() throws Exception {
        String topic = newTopic("offsets", 1);
        long stamp = System.currentTimeMillis() - 3_600_000;
        try (Producer<byte[], byte[]> producer = producer()) {
            for (int n = 0; n < 3; n++) {
                RecordMetadata told = producer.send(new ProducerRecord<>(topic, 0, stamp + n, null, bytes("x"))).get();
                equal(List.of(told.offset(), told.timestamp()), List.of((long) n, stamp + n));
            }
        }
        equal(readFrom(topic, 2, 1).get(0).timestamp(), stamp + 2);
    }

    static void logAppendTime() throws Exception {
        String topic = unique("appendtime");
        NewTopic wanted = new NewTopic(topic, 1, (short) 1).configs(Map.of("message.timestamp.type", "LogAppendTime"));
        admin.createTopics(List.of(wanted)).all().get();
        long before = System.currentTimeMillis();
        try (Producer<byte[], byte[]> producer = producer()) {
            RecordMetadata told = producer.send(new ProducerRecord<>(topic, 0, 1000L, null, bytes("x"))).get();
            equal(told.timestamp() >= before, true);
            equal(readFrom(topic, 0, 1).get(0).timestamp(), told.timestamp());
        }
    }

    static void positions() throws Exception {
        String topic = newTopic("positions", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        long now = System.currentTimeMillis();
        try (Producer<byte[], byte[]> producer = producer()) {
            for (int n = 0; n < 10; n++)
                producer.send(new ProducerRecord<>(topic, 0, now - 10_000 + n * 1000L, null, bytes("" + n))).get();
        }
        try (Consumer<byte[], byte[]> consumer = consumer(unique("group"))) {
            consumer.assign(List.of(partition));
            equal(consumer.offsetsForTimes(Map.of(partition, now - 4500)).get(partition).offset(), 6L);
            equal(consumer.beginningOffsets(List.of(partition)).get(partition), 0L);
            equal(consumer.endOffsets(List.of(partition)).get(partition), 10L);
            consumer.seek(partition, 4);
            equal(text(read(consumer, 1).get(0).value()), "4");
            consumer.seekToEnd(List.of(partition));
            equal(consumer.position(partition), 10L);
        }
    }

    static void idempotent() throws Exception {
        String topic = newTopic("idempotent", 1);
        List<String> values = numbered(2000, "");
        produce(topic, values, "enable.idempotence", "true", "acks", "all", "linger.ms", "1");
        equal(valuesOf(readFrom(topic, 0, 2000)), values);
    }

    static void commit() throws Exception {
        String topic = newTopic("commit", 1), group = unique("group");
        TopicPartition partition = new TopicPartition(topic, 0);
        produce(topic, numbered(10, ""));
        try (Consumer<byte[], byte[]> first = consumer(group)) {
            first.subscribe(List.of(topic));
            read(first, 1);
            first.commitSync(Map.of(partition, new OffsetAndMetadata(4, "a note")));
        }
        try (Consumer<byte[], byte[]> second = consumer(group)) {
            second.subscribe(List.of(topic));
            equal(text(read(second, 1).get(0).value()), "4");
            equal(second.committed(Collections.singleton(partition)).get(partition).metadata(), "a note");
        }
    }

    static void rebalance(Class<?> assignor) throws Exception {
        String topic = newTopic("rebalance", 4), group = unique("group");
        String strategy = assignor.getName();
        try (Consumer<byte[], byte[]> second = consumer(group, "partition.assignment.strategy", strategy)) {
            try (Consumer<byte[], byte[]> first = consumer(group, "partition.assignment.strategy", strategy)) {
                first.subscribe(List.of(topic));
                eventually("assignment to one member", () -> sizes(first).equals(List.of(4)));
                second.subscribe(List.of(topic));
                Thread other = keepPolling(first, second);
                other.join(WAIT.toMillis());
                equal(sizes(first, second), List.of(2, 2));
            }
            eventually("assignment after a member left", () -> sizes(second).equals(List.of(4)));
        }
    }

    /** Joining blocks in old clients' poll: so the second member polls in a thread until both have their share. */
    static Thread keepPolling(Consumer<byte[], byte[]> first, Consumer<byte[], byte[]> second) throws Exception {
        Thread thread = new Thread(() -> {
            for (int n = 0; n < 200 && second.assignment().size() != 2; n++) second.poll(Duration.ofMillis(50));
        });
        thread.start();
        eventually("assignment to two members", () -> sizes(first).equals(List.of(2)) && !thread.isAlive());
        return thread;
    }

    static void staticMember() throws Exception {
        String topic = newTopic("static", 1), group = unique("group");
        int generation;
        try (Consumer<byte[], byte[]> first = consumer(group, "group.instance.id", "a", "session.timeout.ms", "30000")) {
            first.subscribe(List.of(topic));
            eventually("assignment", () -> sizes(first).equals(List.of(1)));
            generation = first.groupMetadata().generationId();
        }
        try (Consumer<byte[], byte[]> again = consumer(group, "group.instance.id", "a", "session.timeout.ms", "30000")) {
            again.subscribe(List.of(topic));
            eventually("assignment after the restart", () -> sizes(again).equals(List.of(1)));
            equal(again.groupMetadata().generationId(), generation);
        }
    }

    static void topics() throws Exception {
        String topic = newTopic("admin", 2);
        refused(TopicExistsException.class, admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1))).all());
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
        eventually("five partitions", () -> describe(topic).partitions().size() == 5);
        equal(describe(topic).partitions().get(4).isr().size(), 1);
        admin.deleteTopics(List.of(topic)).all().get();
        eventually("topic list without it", () -> !admin.listTopics().names().get().contains(topic));
    }

    static void badReplicationFactor() {
        NewTopic wanted = new NewTopic(unique("factor"), 1, (short) 9);
        refused(InvalidReplicationFactorException.class, admin.createTopics(List.of(wanted)).all());
    }

    static void configs() throws Exception {
        String topic = newTopic("configs", 1);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ConfigEntry entry = config(resource).get("retention.ms");
        equal(List.of(entry.value(), entry.isDefault()), List.of("604800000", true));
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry("retention.ms", "1234567"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
        eventually("new value", () -> config(resource).get("retention.ms").value().equals("1234567"));
        equal(config(resource).get("retention.ms").source(), ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG);
        AlterConfigOp bad = new AlterConfigOp(new ConfigEntry("retention.ms", "abc"), AlterConfigOp.OpType.SET);
        refused(InvalidConfigurationException.class, admin.incrementalAlterConfigs(Map.of(resource, List.of(bad))).all());
    }

    static void cluster() throws Exception {
        DescribeClusterResult described = admin.describeCluster();
        equal(described.nodes().get().size(), 1);
        int node = described.nodes().get().iterator().next().id();
        equal(described.clusterId().get().length(), 22);
        equal(admin.describeLogDirs(List.of(node)).descriptions().get(node).get().size(), 1);
    }

    static void listOffsets() throws Exception {
        String topic = newTopic("listoffsets", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        produce(topic, numbered(5, ""), "acks", "all");
        equal(offset(partition, OffsetSpec.earliest()), 0L);
        equal(offset(partition, OffsetSpec.latest()), 5L);
        equal(offset(partition, OffsetSpec.forTimestamp(0)), 0L);
    }

    static void groups() throws Exception {
        String topic = newTopic("groups", 1), group = unique("group");
        TopicPartition partition = new TopicPartition(topic, 0);
        produce(topic, numbered(5, ""));
        try (Consumer<byte[], byte[]> member = consumer(group)) {
            member.subscribe(List.of(topic));
            read(member, 5);
            member.commitSync();
            equal(groupDescription(group).members().size(), 1);
        }
        equal(listed().contains(group), true);
        equal(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition).offset(), 5L);
        admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(1))).all().get();
        equal(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition).offset(), 1L);
        admin.deleteConsumerGroupOffsets(group, Collections.singleton(partition)).all().get();
        admin.deleteConsumerGroups(List.of(group)).all().get();
        equal(listed().contains(group), false);
    }

    // What the cases are made of.

    static String unique(String name) { return "java-" + name + "-" + UUID.randomUUID().toString().substring(0, 8); }

    static byte[] bytes(String text) { return text.getBytes(StandardCharsets.UTF_8); }

    static String text(byte[] bytes) { return bytes == null ? "null" : new String(bytes, StandardCharsets.UTF_8); }

    static List<String> numbered(int count, String prefix) {
        return IntStream.range(0, count).mapToObj(n -> prefix + n).collect(Collectors.toList());
    }

    static String newTopic(String name, int partitions) throws Exception {
        String topic = unique(name);
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        eventually("topic in the list of topics", () -> admin.listTopics().names().get().contains(topic));
        return topic;
    }

    static Properties properties(String... settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        for (int n = 0; n < settings.length; n += 2) properties.put(settings[n], settings[n + 1]);
        return properties;
    }

    static Producer<byte[], byte[]> producer(String... settings) {
        return new KafkaProducer<>(properties(settings), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static Consumer<byte[], byte[]> consumer(String group, String... settings) {
        Properties properties = properties(settings);
        properties.putIfAbsent("session.timeout.ms", "6000");
        properties.putIfAbsent("heartbeat.interval.ms", "500");
        properties.put("group.id", group);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void produce(String topic, List<String> values, String... settings) throws Exception {
        List<Future<RecordMetadata>> answers = new ArrayList<>();
        try (Producer<byte[], byte[]> producer = producer(settings)) {
            for (String value : values) answers.add(producer.send(new ProducerRecord<>(topic, 0, null, bytes(value))));
            for (Future<RecordMetadata> each : answers) each.get();
        }
    }

    static List<ConsumerRecord<byte[], byte[]>> readFrom(String topic, long offset, int count) {
        try (Consumer<byte[], byte[]> consumer = consumer(unique("group"))) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            consumer.seek(new TopicPartition(topic, 0), offset);
            return read(consumer, count);
        }
    }

    static List<ConsumerRecord<byte[], byte[]>> read(Consumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long end = System.nanoTime() + WAIT.toNanos();
        while (records.size() < count && System.nanoTime() < end) consumer.poll(Duration.ofMillis(100)).forEach(records::add);
        if (records.size() < count) throw new AssertionError(records.size() + " of " + count + " records");
        return records;
    }

    static List<String> valuesOf(List<ConsumerRecord<byte[], byte[]>> records) {
        return records.stream().map(each -> text(each.value())).collect(Collectors.toList());
    }

    @SafeVarargs
    static List<Integer> sizes(Consumer<byte[], byte[]>... members) {
        for (Consumer<byte[], byte[]> member : members) member.poll(Duration.ofMillis(50));
        return Arrays.stream(members).map(member -> member.assignment().size()).collect(Collectors.toList());
    }

    /** `all()` was replaced by `allTopicNames()` in 3.1 and is gone in 4.0. */
    @SuppressWarnings("unchecked")
    static TopicDescription describe(String topic) throws Exception {
        DescribeTopicsResult result = admin.describeTopics(List.of(topic));
        boolean old = Arrays.stream(result.getClass().getMethods()).noneMatch(each -> each.getName().equals("allTopicNames"));
        Object future = result.getClass().getMethod(old ? "all" : "allTopicNames").invoke(result);
        return ((Future<Map<String, TopicDescription>>) future).get().get(topic);
    }

    static Map<String, ConfigEntry> config(ConfigResource resource) throws Exception {
        Map<String, ConfigEntry> entries = new HashMap<>();
        Collection<ConfigEntry> described = admin.describeConfigs(List.of(resource)).all().get().get(resource).entries();
        for (ConfigEntry each : described) entries.put(each.name(), each);
        return entries;
    }

    static long offset(TopicPartition partition, OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get().offset();
    }

    static ConsumerGroupDescription groupDescription(String group) throws Exception {
        return admin.describeConsumerGroups(List.of(group)).all().get().get(group);
    }

    static List<String> listed() throws Exception {
        return admin.listConsumerGroups().all().get().stream().map(ConsumerGroupListing::groupId).collect(Collectors.toList());
    }

    static void equal(Object got, Object wanted) {
        if (!got.equals(wanted)) throw new AssertionError("got " + cut(got) + ", wanted " + cut(wanted));
    }

    static String cut(Object value) {
        String text = String.valueOf(value);
        return text.length() <= 200 ? text : text.substring(0, 200) + "…";
    }

    static void refused(Class<? extends Exception> wanted, Future<?> answer) {
        try {
            answer.get();
        } catch (ExecutionException | InterruptedException why) {
            if (wanted.isInstance(why.getCause())) return;
            throw new AssertionError("refused by " + why.getCause());
        }
        throw new AssertionError("was accepted, wanted " + wanted.getSimpleName());
    }

    static void eventually(String what, Callable<Boolean> probe) throws Exception {
        long end = System.nanoTime() + WAIT.toNanos();
        while (!probe.call()) if (System.nanoTime() > end) throw new AssertionError("no " + what);
    }
}
