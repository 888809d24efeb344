"""What may differ between two brokers that behave the same: ids, times, sizes, addresses."""

import re

# In this order: what an earlier one has replaced, a later one does not see.
MASKS = [
    (r"127\.0\.0\.1[:/]\d+", "ADDRESS"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"(TopicId: |topicId=|ClusterId: +|topicId\":\"|Cluster ID: |clusterId=|directoryId\"?: *\"?|DirectoryId\"?: *\"?)[\w-]{22}", r"\1ID"),
    (r"\b1[6-9]\d{11}\b", "TIME"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,:]\d{3}", "TIME"),
    (r'"(partition|size|offsetLag|producerId|time_ms|avg_throughput|target_throughput)": ?-?[\d.]+', r'"\1":N'),
    (r"console-consumer-\d+", "console-consumer-N"),
    (r"127\.0\.0\.1 +\d+", "ADDRESS"),
    (r"/\S*/ottla-tests-\w+-\w+", "FOLDER"),
    (r"(HighWatermark|LeaderEpoch): +\d+", r"\1: N"),
    (r'"logDir":"[^"]*"', '"logDir":"FOLDER"'),
    (r"\[\d{4}-[^\]]*\]", "[TIME]"),
]


def masked(text):
    """A tool's text without what may differ, and without stack traces, as a list of lines."""
    for pattern, replacement in MASKS:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    lines = (re.sub(r"[ \t]+", " ", line).strip() for line in text.splitlines())
    return [line for line in lines if line and not re.match(r"(at [\w.$]+[(/]|\.\.\. \d+ more|at java\.)", line)]
