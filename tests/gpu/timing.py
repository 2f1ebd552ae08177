"""How long things take: nothing here passes or fails, and nothing else runs meanwhile."""
import statistics
import time

import judge

PAIRS, ITERATIONS = 3, 6  # the first iteration of a process is left out


def spread(values):
    """Median, least and most; None of nothing."""
    if not values:
        return None
    return {"median": statistics.median(values), "least": min(values), "most": max(values),
            "count": len(values)}


def milliseconds(run):
    """The median iteration of one process, without its first."""
    return statistics.median([event["ms"] for event in run.of_kind("iteration")[1:]])


def gap(before, after):
    """From the last result of one process to the first of the next, in milliseconds."""
    return (after.first_iteration - before.ended) * 1000


def pairs(records):
    """[(baseline, record)]: each workload's first control that completed, and `ordered` or
    else its first other variant that did."""
    found = []
    for workload in dict.fromkeys(record["workload"] for record in records):
        good = [record for record in records if record["workload"] == workload
                and record["survey"] and record["survey"]["completed"]]
        controls = [record for record in good if record["control"]]
        others = sorted((record for record in good if not record["control"]),
                        key=lambda record: record["variant"] != "ordered")
        if controls and others and not others[0]["timing"]:
            found.append((controls[0], others[0]))
    return found


def library_pairs(records):
    """[(baseline, record)]: each workload's `ordered`, and what its library claims to be deterministic:
    the first such variant that completed at the same size."""
    def claim(record):
        return record["survey"].get("claim") or record["claim"]

    good = [record for record in records if record["survey"] and record["survey"]["completed"]]
    found = []
    for record in good:
        libraries = [other for other in good if other["workload"] == record["workload"]
                     and other["subject"] == "library" and not other["control"] and claim(other) == "deterministic"
                     and other["survey"]["size"] == record["survey"]["size"]]
        if (record["variant"], record["subject"]) == ("ordered", "model") and libraries \
                and not record.get("library_timing"):
            found.append((libraries[0], record))
    return found


class Series:
    """Runs one after another, back to back."""

    def __init__(self):
        self.last, self.starts, self.gaps = None, [], []

    def add(self, run):
        if judge.outcome(run)[0] != "completed":
            self.last = None
            return None
        self.starts.append((run.first_iteration - run.spawned) * 1000)
        if self.last:
            self.gaps.append(gap(self.last, run))
        self.last = run
        return milliseconds(run)


def measure_pair(session, series, baseline, record, until, name):
    """The ratio of each alternation, as NAME of the record; fewer where time ends."""
    size, ratios, both = record["survey"]["size"], [], ([], [])
    for _ in range(PAIRS):
        if time.monotonic() >= until:
            break
        slow, fast = (series.add(session.run(one, size, ITERATIONS)) for one in (record, baseline))
        if slow and fast:
            ratios.append(slow / fast)
            both[0].append(slow)
            both[1].append(fast)
    record[name] = {"size": size, "baseline": baseline["variant"], "ratio": spread(ratios),
                    "ms": spread(both[0]), "baseline_ms": spread(both[1])}
    return bool(ratios)


def measure(session, records, until):
    series, late = Series(), []
    for name, found in (("timing", pairs(records)), ("library_timing", library_pairs(records))):
        for baseline, record in found:
            if time.monotonic() >= until or not measure_pair(session, series, baseline, record, until, name):
                late.append((baseline, record))
    session.timings["process_start_to_first_iteration_ms"] = spread(series.starts)
    session.timings["gap_between_runs_ms"] = spread(series.gaps)
    if late:
        session.skip("timing: " + ", ".join(f"{record['workload']} {record['variant']} ÷ {baseline['variant']}"
                                            for baseline, record in late),
                     "deadline, or its runs did not complete")


def bandwidth(session, program, *arguments):
    """Digest and exact sum, compared with a copy on the device."""
    answer = session.ask([program, *arguments])
    said = answer.json()
    if answer.exit_code != 0 or not all(name in said for name in ("digest", "exact_sum", "copy")):
        session.skip("bandwidth of the digest", judge.last_line(answer.errors))
        return
    copy = said["copy"]["median"]
    session.timings["bandwidth_gb_per_s"] = {
        **{name: said[name] for name in ("digest", "exact_sum", "copy")}, "bytes": said["bytes"],
        "digest_to_copy": said["digest"]["median"] / copy,
        "exact_sum_to_copy": said["exact_sum"]["median"] / copy}
