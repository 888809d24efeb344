//! The differences between Ottla and Apache Kafka that are meant. The reader's copy of this table is the section
//! "Differences" of README.md.

/// A difference that is no fault.
struct Explained {
    /// What the case's name begins with.
    case: &'static str,
    /// What else its name holds.
    form: &'static str,
    /// What the difference holds, Kafka's value before Ottla's.
    difference: &'static str,
    /// Why it stays.
    #[expect(dead_code, reason = "for the reader")]
    reason: &'static str,
}

const fn row(
    case: &'static str,
    form: &'static str,
    difference: &'static str,
    reason: &'static str,
) -> Explained {
    Explained { case, form, difference, reason }
}

const NOT_AN_ERROR: &str = "Kafka answers UNKNOWN_SERVER_ERROR where an unexpected value threw an exception";
const DONE: &str = "Kafka answers REQUEST_TIMED_OUT before it looks; here the answer says what was done";
const ONCE: &str = "a partition that a request names twice is answered twice; Kafka keeps one of the two";
const EMPTY: &str = "a topic without partitions is answered as such; Kafka leaves it out";
const MESSAGE: &str = "the message says cause and remedy where Kafka's is empty or says less";
const NOT_WALKED: &str =
    "records are not decompressed or walked where the topic does not need it; Kafka always does";
const KEY: &str = "`write.caching` is Ottla's own key";
const NO_TRANSACTIONS: &str = "transactions are not served yet";
const FIRST: &str =
    "a partition that a request reassigns twice is refused the second time; in Kafka the later one counts";
const SHIFTED: &str = "where one broker took a spoiled batch and the other did not, later offsets shift; stories compare offsets";

const EXPLAINED: &[Explained] = &[
    row(
        "ApiVersions/",
        "",
        " | 0 of ",
        "APIs that are not served yet are not advertised; those that are have Kafka's versions",
    ),
    row(
        "ApiVersions/",
        "",
        "only here: {Name='metadata.version'",
        "the metadata version is 30, the last that today's consoles know by name, and kraft.version is 1 from the start",
    ),
    row("Produce/", "", "PartitionResponses.BaseOffset: ", SHIFTED),
    row("Produce/", "", "PartitionResponses.ErrorMessage: null | ", MESSAGE),
    row(
        "Produce/",
        "TimeoutMs=",
        ": 0 | ",
        "a time of nothing is over before the flush that Kafka does not wait for",
    ),
    row("Produce/", "=twice", "[]: ", ONCE),
    row("Produce/", "PartitionData=none", "[]: ", EMPTY),
    row("bad_batch/", "", "PartitionResponses.ErrorMessage: ", MESSAGE),
    row("bad_batch/unknown_codec", "", "ErrorCode: -1 | ", NOT_AN_ERROR),
    row("bad_batch/codec_of_plain_records", "", "", NOT_WALKED),
    row("bad_batch/log_append_time", "", "", "a producer must not say LogAppendTime; Kafka 4.4 takes it"),
    row("bad_batch/transactional", "", "", NO_TRANSACTIONS),
    row("bad_batch/end", "", "Partitions.Offset: ", SHIFTED),
    row("bad_batch/and_a_cut_second", "", "", "Kafka drops a cut batch behind a whole one in silence"),
    row(
        "Fetch/",
        "",
        "AbortedTransactions: [] | null",
        "where nothing was read both say that nothing was aborted",
    ),
    row(
        "session/",
        "",
        "AbortedTransactions: [] | null",
        "where nothing was read both say that nothing was aborted",
    ),
    row("topic/", "", "only here: {Name='write.caching'", KEY),
    row("auto/create", "", "", "the topic is created before it is answered; Kafka answers first"),
    row("DeleteGroups/", "", "ErrorMessage: null | ", MESSAGE),
    row("member/", "delete", "ErrorMessage: null | ", MESSAGE),
    row("OffsetDelete/", "=twice", "[]: ", ONCE),
    row(
        "Metadata/",
        "Topics=null",
        "only here: {ErrorCode=0 Name='nosuch'",
        "Kafka's brokers see a new topic a little later",
    ),
    row("FindCoordinator/", "KeyType=one", "", NO_TRANSACTIONS),
    row("FindCoordinator/", "KeyType=", "ErrorMessage: ", MESSAGE),
    row(
        "OffsetCommit/",
        "=twice",
        "[]: ",
        "a topic that a request names twice is answered once, with all its partitions",
    ),
    row("Fetch/", "=twice", "[]: ", ONCE),
    row("Fetch/", "IsolationLevel=m", "", NOT_AN_ERROR),
    row("Fetch/", "MaxBytes=m", "", NOT_AN_ERROR),
    row("Fetch/", "SessionId=m", "", NOT_AN_ERROR),
    row(
        "Fetch/",
        "LastFetchedEpoch=",
        "",
        "where a follower's log diverges is told when there are followers",
    ),
    row("ListOffsets/", "=twice", "[]: ", ONCE),
    row("ListOffsets/", "Partitions=none", "[]: ", EMPTY),
    row("ListOffsets/", "IsolationLevel=m", "", NOT_AN_ERROR),
    row("Metadata/", "Name=unknown", "", "the topic is created before it is answered; Kafka answers first"),
    row("Metadata/", "Name=null", "ErrorCode: -1 | ", NOT_AN_ERROR),
    row("CreateTopics/", "imeoutMs=", "Topics.Error", DONE),
    row("CreateTopics/", "", "only here: {Name='write.caching'", KEY),
    row("DeleteTopics/", "imeoutMs=", "Responses.Error", DONE),
    row("CreatePartitions/", "imeoutMs=", "Results.Error", DONE),
    row("ElectLeaders/", "imeoutMs=", "Error", DONE),
    row("AlterPartitionReassignments/", "imeoutMs=", "Error", DONE),
    row("AlterPartitionReassignments/", "", "Partitions.ErrorMessage: null | 'No partition", MESSAGE),
    row("AlterPartitionReassignments/", "=twice", "Responses.Partitions.Error", FIRST),
    row("DescribeConfigs/", "", "only here: {Name='write.caching'", KEY),
    row("DescribeConfigs/", "IncludeDocumentation", ".Documentation: ", "the documentation is Ottla's own"),
    row("DescribeConfigs/", "ResourceType=", ".ErrorMessage: ", MESSAGE),
    row("IncrementalAlterConfigs/", "ConfigOperation=", "", NOT_AN_ERROR),
    row("InitProducerId/", "TransactionalId=", "", NO_TRANSACTIONS),
    row(
        "DescribeQuorum/v2",
        "",
        "ReplicaDirectoryId: 0 | 'own'",
        "voters are known by directory id from the start (KIP-853)",
    ),
    row("DescribeQuorum/v2", "", "Nodes.Listeners[]: ", "one node needs no listener for controllers"),
    row("DescribeTopicPartitions/", "Name=empty", "", NOT_AN_ERROR),
];

/// Whether a difference of a case is meant.
pub(crate) fn is_explained(case: &str, difference: &str) -> bool {
    EXPLAINED.iter().any(|row| {
        case.starts_with(row.case) && case.contains(row.form) && difference.contains(row.difference)
    })
}
