/* librdkafka's C interface, as Debian ships it (2.0.2): a producer that waits for every delivery, a consumer, a group of
 * two members and the admin calls. Prints `ok NAME` or `FAIL NAME why` for each case. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS 1000

static const char *bootstrap;
static char why[512];
static int failures;

#define CHECK(holds, ...)                            \
    do {                                             \
        if (!(holds)) {                              \
            snprintf(why, sizeof(why), __VA_ARGS__); \
            return 0;                                \
        }                                            \
    } while (0)

/* A name that no earlier run used; the buffer is static, one for each place. */
static const char *unique(const char *name) {
    static char names[16][64];
    static int next;
    char *place = names[next++ % 16];
    snprintf(place, 64, "librdkafka-%s-%d-%d", name, (int)getpid(), next);
    return place;
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *const *settings) {
    char error[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, error, sizeof(error));
    for (; settings && settings[0]; settings += 2) {
        if (rd_kafka_conf_set(conf, settings[0], settings[1], error, sizeof(error)) != RD_KAFKA_CONF_OK) {
            fprintf(stderr, "%s\n", error);
            exit(2);
        }
    }
    rd_kafka_t *handle = rd_kafka_new(type, conf, error, sizeof(error));
    if (!handle) {
        fprintf(stderr, "%s\n", error);
        exit(2);
    }
    return handle;
}

/* Waits for the one result of an admin call; returns its error. */
static rd_kafka_resp_err_t admin_error(rd_kafka_queue_t *queue) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 20000);
    if (!event) return RD_KAFKA_RESP_ERR__TIMED_OUT;
    rd_kafka_resp_err_t error = rd_kafka_event_error(event);
    size_t count = 0;
    const rd_kafka_topic_result_t **results = NULL;
    if (rd_kafka_event_CreateTopics_result(event))
        results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    else if (rd_kafka_event_DeleteTopics_result(event))
        results = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
    if (!error && count == 1) error = rd_kafka_topic_result_error(results[0]);
    rd_kafka_event_destroy(event);
    return error;
}

static rd_kafka_resp_err_t create_topic(const char *name, int partitions) {
    rd_kafka_t *handle = client(RD_KAFKA_PRODUCER, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, -1, NULL, 0);
    rd_kafka_CreateTopics(handle, &topic, 1, NULL, queue);
    rd_kafka_resp_err_t error = admin_error(queue);
    rd_kafka_NewTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(handle);
    return error;
}

static rd_kafka_resp_err_t delete_topic(const char *name) {
    rd_kafka_t *handle = client(RD_KAFKA_PRODUCER, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(name);
    rd_kafka_DeleteTopics(handle, &topic, 1, NULL, queue);
    rd_kafka_resp_err_t error = admin_error(queue);
    rd_kafka_DeleteTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(handle);
    return error;
}

/* Produces `0`, `1`, … to partition 0, with a key and two headers of one name. */
static int produce(const char *topic, const char *const *settings) {
    rd_kafka_t *producer = client(RD_KAFKA_PRODUCER, settings);
    for (int n = 0; n < RECORDS; n++) {
        char value[16];
        snprintf(value, sizeof(value), "%d", n);
        rd_kafka_resp_err_t error = rd_kafka_producev(
            producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY("key", 3),
            RD_KAFKA_V_VALUE(value, strlen(value)), RD_KAFKA_V_HEADER("h", "1", 1), RD_KAFKA_V_HEADER("h", "2", 1),
            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        CHECK(!error, "produce: %s", rd_kafka_err2str(error));
        rd_kafka_poll(producer, 0);
    }
    rd_kafka_resp_err_t error = rd_kafka_flush(producer, 30000);
    CHECK(!error, "flush: %s", rd_kafka_err2str(error));
    rd_kafka_destroy(producer);
    return 1;
}

/* Checks one record of those that `produce` wrote. */
static int is_record(const rd_kafka_message_t *message, int n) {
    char value[16];
    snprintf(value, sizeof(value), "%d", n);
    CHECK(!message->err, "record %d: %s", n, rd_kafka_message_errstr(message));
    CHECK(message->len == strlen(value) && !memcmp(message->payload, value, message->len), "record %d has another value", n);
    CHECK(message->key_len == 3 && !memcmp(message->key, "key", 3), "record %d has another key", n);
    rd_kafka_headers_t *headers;
    CHECK(!rd_kafka_message_headers(message, &headers), "record %d has no headers", n);
    CHECK(rd_kafka_header_cnt(headers) == 2, "record %d has %zu headers", n, rd_kafka_header_cnt(headers));
    return 1;
}

static int consume(const char *topic) {
    rd_kafka_t *consumer = client(RD_KAFKA_CONSUMER, (const char *[]){"group.id", unique("group"), NULL});
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(parts, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(consumer, parts);
    for (int n = 0; n < RECORDS; n++) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 30000);
        CHECK(message, "no record %d within 30 s", n);
        if (!is_record(message, n)) return 0;
        rd_kafka_message_destroy(message);
    }
    rd_kafka_topic_partition_list_destroy(parts);
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    return 1;
}

static int a_topic_is_created_once_and_deleted(void) {
    const char *topic = unique("admin");
    CHECK(create_topic(topic, 2) == RD_KAFKA_RESP_ERR_NO_ERROR, "the creation was refused");
    rd_kafka_resp_err_t error = create_topic(topic, 2);
    CHECK(error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS, "second creation: %s", rd_kafka_err2str(error));
    CHECK(delete_topic(topic) == RD_KAFKA_RESP_ERR_NO_ERROR, "the deletion was refused");
    error = delete_topic(topic);
    CHECK(error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "second deletion: %s", rd_kafka_err2str(error));
    return 1;
}

static int round_trip(const char *name, const char *const *settings) {
    const char *topic = unique(name);
    CHECK(create_topic(topic, 1) == RD_KAFKA_RESP_ERR_NO_ERROR, "the creation was refused");
    return produce(topic, settings) && consume(topic);
}

static int records_come_back_as_they_were(void) { return round_trip("plain", NULL); }

static int idempotent_records_come_back_once(void) {
    return round_trip("idempotent", (const char *[]){"enable.idempotence", "true", NULL});
}

static int compressed_records_come_back_as_they_were(void) {
    static const char *const codecs[] = {"gzip", "snappy", "lz4", "zstd"};
    for (int n = 0; n < 4; n++)
        if (!round_trip(codecs[n], (const char *[]){"compression.codec", codecs[n], "linger.ms", "5", NULL})) return 0;
    return 1;
}

static int watermarks_are_told(void) {
    const char *topic = unique("watermarks");
    CHECK(create_topic(topic, 1) == RD_KAFKA_RESP_ERR_NO_ERROR, "the creation was refused");
    if (!produce(topic, NULL)) return 0;
    rd_kafka_t *consumer = client(RD_KAFKA_CONSUMER, NULL);
    int64_t low = -1, high = -1;
    rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(consumer, topic, 0, &low, &high, 20000);
    CHECK(!error && low == 0 && high == RECORDS, "%s: %d to %d", rd_kafka_err2str(error), (int)low, (int)high);
    rd_kafka_destroy(consumer);
    return 1;
}

static int assigned(rd_kafka_t *member) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(member, 50);
    if (message) rd_kafka_message_destroy(message);
    rd_kafka_topic_partition_list_t *parts;
    if (rd_kafka_assignment(member, &parts)) return -1;
    int count = parts->cnt;
    rd_kafka_topic_partition_list_destroy(parts);
    return count;
}

static rd_kafka_t *member(const char *group, const char *topic) {
    rd_kafka_t *consumer = client(
        RD_KAFKA_CONSUMER, (const char *[]){"group.id", group, "session.timeout.ms", "6000", "heartbeat.interval.ms", "500", NULL});
    rd_kafka_poll_set_consumer(consumer);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    return consumer;
}

static int two_members_share_the_partitions(void) {
    const char *topic = unique("rebalance"), *group = unique("group");
    CHECK(create_topic(topic, 4) == RD_KAFKA_RESP_ERR_NO_ERROR, "the creation was refused");
    rd_kafka_t *first = member(group, topic), *second = member(group, topic);
    int tries = 0, mine = 0, other = 0;
    while ((mine != 2 || other != 2) && tries++ < 300) mine = assigned(first), other = assigned(second);
    CHECK(mine == 2 && other == 2, "the members have %d and %d partitions", mine, other);
    rd_kafka_consumer_close(first);
    rd_kafka_destroy(first);
    for (tries = 0; other != 4 && tries < 300; tries++) other = assigned(second);
    CHECK(other == 4, "the member that stays has %d partitions", other);
    rd_kafka_consumer_close(second);
    rd_kafka_destroy(second);
    return 1;
}

static void attempt(const char *name, int (*body)(void)) {
    if (body()) {
        printf("ok %s\n", name);
    } else {
        printf("FAIL %s %s\n", name, why);
        failures++;
    }
    fflush(stdout);
}

#define CASE(name) attempt(#name, name)

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: %s BOOTSTRAP\n", arguments[0]);
        return 2;
    }
    bootstrap = arguments[1];
    CASE(a_topic_is_created_once_and_deleted);
    CASE(records_come_back_as_they_were);
    CASE(compressed_records_come_back_as_they_were);
    CASE(idempotent_records_come_back_once);
    CASE(watermarks_are_told);
    CASE(two_members_share_the_partitions);
    return failures;
}
