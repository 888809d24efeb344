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
const KEY: &str = "`write.caching` is Ottla's own key";
const NO_TRANSACTIONS: &str = "transactions are not served yet";
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
        "FinalizedFeatures.M",
        "the metadata version is 30, the last that today's consoles know by name",
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
    row("Produce/", "Records=null", ": Silence | ", "Kafka never answers, for an exception is lost"),
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
    row("Metadata/v0", "unknown", "", "the topic is created before it is answered; Kafka answers first"),
    row("Metadata/v1", "unknown", "", "the topic is created before it is answered; Kafka answers first"),
    row("Metadata/", "Name=null", "ErrorCode: -1 | ", NOT_AN_ERROR),
    row("CreateTopics/", "imeoutMs=", "Topics.Error", DONE),
    row("CreateTopics/", "", "only here: {Name='write.caching'", KEY),
    row("DeleteTopics/", "imeoutMs=", "Responses.Error", DONE),
    row("CreatePartitions/", "imeoutMs=", "Results.Error", DONE),
    row("DescribeConfigs/", "", "only here: {Name='write.caching'", KEY),
    row("DescribeConfigs/", "IncludeDocumentation", ".Documentation: ", "the documentation is Ottla's own"),
    row("DescribeConfigs/", "ResourceType=", ".ErrorMessage: ", MESSAGE),
    row("AlterConfigs/", "=twice", ": Silence | ", "Kafka never answers, for an exception is lost"),
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
