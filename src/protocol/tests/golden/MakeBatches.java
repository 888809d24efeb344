// Writes the .batches files beside it with Apache Kafka's own classes, and reads batches that Ottla wrote.
//
//   java -cp 'kafka-libs/*' MakeBatches.java write FOLDER
//   java -cp 'kafka-libs/*' MakeBatches.java read FILE...      prints every record, decompressed, CRC verified
//
// Made with Apache Kafka 4.4.0. What the records are is said once more, in Rust, in ../kafka_batches.rs.

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;

public class MakeBatches {
    public static void main(String[] args) throws Exception {
        List<String> rest = Arrays.asList(args).subList(1, args.length);
        if (args[0].equals("write")) {
            for (CompressionType type : CompressionType.values()) {
                write(Path.of(rest.get(0), type.name + ".batches"), type);
            }
        } else {
            for (String file : rest) {
                read(file);
            }
        }
    }

    // A small batch at offset 100 and, where it is compressed, one of many blocks behind it.
    static void write(Path file, CompressionType type) throws Exception {
        ByteBuffer bytes = ByteBuffer.allocate(1 << 20);
        append(bytes, type, 100, 8);
        if (type != CompressionType.NONE) {
            append(bytes, type, 108, 300);
        }
        bytes.flip();
        Files.write(file, Arrays.copyOf(bytes.array(), bytes.limit()));
    }

    static void append(ByteBuffer bytes, CompressionType type, long base, int count) {
        ByteBuffer batch = bytes.slice();
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(batch, RecordBatch.MAGIC_VALUE_V2,
            Compression.of(type).build(), TimestampType.CREATE_TIME, base, RecordBatch.NO_TIMESTAMP,
            4711L, (short) 2, Integer.MAX_VALUE - 1, false, false, 5, batch.capacity());
        for (int i = 0; i < count; i++) {
            builder.append(record(i));
        }
        MemoryRecords records = builder.build();
        bytes.put(records.buffer().duplicate());
    }

    static SimpleRecord record(int i) {
        byte[] key = i % 5 == 0 ? null : utf8("key-" + i);
        byte[] value = i % 7 == 3 ? null : utf8(("value " + i + " ").repeat(i % 4 * 12));
        return new SimpleRecord(1_700_000_000_000L + 7L * i, key, value, headers(i));
    }

    static Header[] headers(int i) {
        List<Header> headers = new ArrayList<>();
        if (i % 3 == 0) {
            headers.add(new RecordHeader("doubled", utf8("first")));
            headers.add(new RecordHeader("doubled", utf8("second")));
            headers.add(new RecordHeader("null", null));
            headers.add(new RecordHeader("", utf8("")));
        }
        return headers.toArray(new Header[0]);
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static void read(String file) throws Exception {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(Path.of(file))));
        for (RecordBatch batch : records.batches()) {
            batch.ensureValid();
            System.out.println(batch);
            batch.forEach(record -> System.out.println(record + " " + Arrays.toString(record.headers())));
        }
    }
}
