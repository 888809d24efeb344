import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;

/**
 * The Java client: an idempotent producer goes on while its broker is killed and started again. Says `producing` when it
 * has begun; whoever runs it kills the broker then. Afterwards every record must be there once and in order.
 */
public final class Survive {
    static final String CASE = "records_are_there_once_and_in_order_after_the_broker_was_killed";
    static final long SECONDS = 12;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = "java-survive-" + UUID.randomUUID().toString().substring(0, 8);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        }
        int count = produce(bootstrap, topic);
        List<Integer> values = read(bootstrap, topic);
        List<Integer> sorted = new ArrayList<>(values);
        Collections.sort(sorted);
        int distinct = new HashSet<>(values).size();
        if (distinct == count && values.size() == count && values.equals(sorted)) {
            System.out.println("ok " + CASE);
        } else {
            System.out.printf("FAIL %s %d produced, %d read, %d distinct%n", CASE, count, values.size(), distinct);
            System.exit(1);
        }
    }

    /** Numbers the records from 0; returns how many there were, when all are acknowledged. */
    static int produce(String bootstrap, String topic) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "enable.idempotence", true, "acks", "all", "delivery.timeout.ms", 120_000);
        List<Future<RecordMetadata>> answers = new ArrayList<>();
        try (KafkaProducer<Integer, Integer> producer =
                new KafkaProducer<>(settings, new IntegerSerializer(), new IntegerSerializer())) {
            long end = System.nanoTime() + Duration.ofSeconds(SECONDS).toNanos();
            while (System.nanoTime() < end) {
                answers.add(producer.send(new ProducerRecord<>(topic, 0, null, answers.size())));
                if (answers.size() == 100) System.out.println("producing");
                Thread.sleep(1);
            }
            for (Future<RecordMetadata> each : answers) each.get();
        }
        return answers.size();
    }

    static List<Integer> read(String bootstrap, String topic) {
        TopicPartition partition = new TopicPartition(topic, 0);
        List<Integer> values = new ArrayList<>();
        try (KafkaConsumer<Integer, Integer> consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", bootstrap), new IntegerDeserializer(), new IntegerDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
            while (values.size() < end && System.nanoTime() < deadline)
                consumer.poll(Duration.ofMillis(500)).forEach(record -> values.add(record.value()));
        }
        return values;
    }
}
