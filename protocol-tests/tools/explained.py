"""Differences between Ottla and Apache Kafka that are meant: step, line, reason. The reader's copy of this table is
the section "Differences" of README.md."""

import re

# Of these APIs none is served yet: transactions, security, quotas, consumer, share and streams groups, more nodes.
NOT_SERVED = (
    "AddOffsetsToTxn|AddPartitionsToTxn|EndTxn|TxnOffsetCommit|WriteTxnMarkers|DescribeTransactions|ListTransactions|"
    "DescribeProducers|DescribeAcls|CreateAcls|DeleteAcls|SaslHandshake|SaslAuthenticate|(Create|Renew|Expire|Describe)"
    "DelegationToken|(Describe|Alter)ClientQuotas|(Describe|Alter)UserScramCredentials|ConsumerGroup(Heartbeat|Describe)|"
    "(Describe|Alter|Delete)ShareGroupOffsets|Share(Fetch|Acknowledge|GroupHeartbeat|GroupDescribe)|"
    "(Initialize|Read|Write|Delete)ShareGroupState(Summary)?|StreamsGroup(Heartbeat|Describe|TopologyDescriptionUpdate)|"
    "(Alter|List)PartitionReassignments|AlterReplicaLogDirs|DeleteRecords|ElectLeaders|UpdateFeatures|"
    "Unregister(Broker|Controller)|(Add|Remove)RaftVoter"
)

EXPLAINED = [
    ("broker-api-versions", rf"^({NOT_SERVED})\(\d+\): ", "not served yet"),
    ("configs-(topic|broker)-(all|inherits)", r"^write\.caching", "Ottla's own key"),
    ("configs-broker-all", r"^log\.format=", "Ottla's own key"),
    ("configs-broker-all", r"^log\.dir=", "the data folder is `data` below the working folder"),
    (
        "configs-broker-all",
        r"^(advertised\.listeners|listeners|inter\.broker\.listener\.name|node\.id|broker\.id|process\.roles|controller\.\S+)=",
        "a node needs none of the settings that Kafka's must have, and no listener for controllers",
    ),
    ("configs-broker-deleted", r"^nosuch=null", "a key that nobody knows is not described"),
    ("producer-too-large", r"^stderr: ERROR Error when sending message", "the message says how large it was and what is allowed"),
    ("quorum-status", r"^CurrentVoters: ", "voters have directory ids, and no listener for controllers (KIP-853)"),
    ("quorum-replication", r"^N \S+ N N TIME TIME Leader", "voters have directory ids (KIP-853)"),
]


def is_explained(step):
    """The judge of the lines of one step, for `record.differences`."""
    rows = [line for pattern, line, _ in EXPLAINED if re.fullmatch(pattern, step)]
    return lambda text: any(re.search(line, text) for line in rows)
