"""What must differ between two programs that did the same, and only that: every normalisation
stands in one of these tables."""
import re

TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ULID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")

# Headers that are not compared; the second ones only where the body is not the same.
HEADERS = {"Date"}
OF_THE_BODY = {"ETag", "Content-Length"}
# Parts of an answer's body: what is found, what stands for it, why.
BODIES = (
    (r"(?m)^Date: .*$", "Date: D", "of a second answer, in what came back for bytes"),
    (r"(?m)^reprod_store_generation \d+", "reprod_store_generation N",
     "commits since the start, of which a hello may be one or two"),
    (r"(?m)^reprod_http_connections \d+", "reprod_http_connections N",
     "the asking program's, and who asked before"),
)
# And times after both programs were started, of recorded data: when devices were seen last.
SINCE_THE_START = "<since the start>"

# Columns of the database: when, how long, which process.  0 and NULL stay: they say something.
COLUMNS = {
    "time": {"at_ms", "changed_ms", "created_ms", "ended_ms", "finished_ms", "first_ms",
             "first_seen_ms", "intent_ms", "last_completed_ms", "last_ms", "last_seen_ms",
             "started_ms"},
    "duration": {"max_ns", "median_ns", "median_ns_sum", "milliseconds", "min_ns", "wall_ns"},
    "process": {"max_rss_kb", "pid", "process_start"},
}
# Tables that are read otherwise than whole.
TABLES = {
    # how long a run took decides in how many rows
    "cell_time": "SELECT cell, sum(runs) AS runs FROM cell_time GROUP BY cell ORDER BY cell",
    # which rules there are is compared with the schema
    "judged": "SELECT count(*) AS rows FROM judged",
}
# Parts of any text column.
TEXTS = (
    (TIME.pattern, "<time>", "when something happened"),
)

# Parts of what a program prints.
OUTPUTS = (
    (r'"pid":\d+', '"pid":N', "the process"),
    (r'"ms":[\d.]+', '"ms":N', "how long an iteration took"),
    (r'"(worker_build|build_id|build)":"[0-9a-f]+"', r'"\1":"B"', "the program's own build"),
    (r"\bbuild [0-9a-f]{40}\b", "build B", "likewise"),
    (r'"path":"[^"]*/(reprod-worker[^"/]*)"', r'"path":"\1"', "where the program is"),
)


def masked(text, table):
    for pattern, instead, _ in table:
        text = re.sub(pattern, instead, text)
    return text


def masked_body(text, start):
    """START: the time, as an answer spells it, before both programs were started."""
    return TIME.sub(lambda found: SINCE_THE_START if found[0] >= start else found[0],
                    masked(text, BODIES))
