import java.io.IOException;
import java.util.Map;
import java.util.concurrent.Semaphore;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** The Java client as an idempotent producer that never gives up: what produce.py is for librdkafka. */
public final class Produce {
    static final int WAITING_MAX = 2000;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1], name = arguments[3];
        int partitions = Integer.parseInt(arguments[2]);
        Thread stop = new Thread(Produce::readToEnd);
        stop.setDaemon(true);
        stop.start();
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "enable.idempotence", true, "acks", "all", "linger.ms", 2,
            "delivery.timeout.ms", 600_000, "request.timeout.ms", 10_000, "max.block.ms", 600_000,
            "reconnect.backoff.ms", 20L, "reconnect.backoff.max.ms", 100L, "retry.backoff.max.ms", 100L);
        Semaphore room = new Semaphore(WAITING_MAX);
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (long sequence = 0; stop.isAlive(); sequence++) {
                for (int partition = 0; partition < partitions; partition++) {
                    room.acquire();
                    send(producer, room, new ProducerRecord<>(topic, partition, null, name + " " + sequence), sequence);
                }
                Thread.sleep(2);
            }
            producer.flush();
        }
    }

    /** One record, and its line of the ledger when it is acknowledged. */
    static void send(KafkaProducer<String, String> producer, Semaphore room, ProducerRecord<String, String> record,
            long sequence) {
        producer.send(record, (metadata, error) -> {
            room.release();
            tell(error == null ? record.partition() + " " + sequence + " " + metadata.offset() : "error " + error);
        });
    }

    static synchronized void tell(String line) {
        System.out.println(line);
    }

    static void readToEnd() {
        try {
            while (System.in.read() >= 0) { }
        } catch (IOException closed) {
            // That is the end, too.
        }
    }
}
