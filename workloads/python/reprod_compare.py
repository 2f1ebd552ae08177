"""Compares traces that programs with reprod_probe.py wrote by hand (REPROD_TRACE=FILE).

    python3 reprod_compare.py TRACE TRACE [TRACE ...] [--json]

Names the first place, in program order and over all pairs, whose output differs although it
read the same: there the difference comes in.  GET /v1/compare does this for runs of reprod.
Exit status: 0 the traces are equal; 1 they differ; 2 they cannot be compared.
"""
import argparse
import itertools
import json
import sys

NOTHING = "0" * 32
HEX = frozenset("0123456789abcdef")
CASE = ("workload", "version", "size", "dtype", "seed", "iterations", "input_digest")
SHOWN = 8


class Refused(Exception):
    """Why traces are not compared."""


class Trace:
    """One run: its start, its records (iteration, step, place, in, out), its results."""

    def __init__(self, path):
        self.path, self.start, self.end, self.records, self.results = path, None, None, [], []
        try:
            with open(path, encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    try:
                        self.take(json.loads(line))
                    except (ValueError, KeyError, TypeError, RecursionError) as error:
                        raise Refused("%s: line %d is not an event of the run protocol: %s"
                                      % (path, number, error)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise Refused("%s: %s" % (path, error)) from None
        if self.start is None:
            raise Refused("%s: it has no start event" % path)
        if not self.records:
            raise Refused("%s: it has no records" % path)

    def take(self, event):
        kind = event["event"]
        if kind == "start":
            if self.start is not None or not isinstance(event.get("environment", {}), dict):
                raise ValueError("it is the second start, or its environment is no object")
            self.start = event
        elif kind == "probes":
            for place, reads, writes in event["records"]:
                if not all(len(d) == 32 and HEX.issuperset(d) for d in (reads, writes)):
                    raise ValueError("a digest is not 32 hex digits")
                if not isinstance(place, str):
                    raise ValueError("a place is not a text")
                self.records.append((event["i"], event["step"], place, reads, writes))
        elif kind == "iteration":
            self.results.append(tuple(event[k] for k in ("digest", "weight_sum", "loss")))
        elif kind == "end":
            self.end = {**event, "outcome": event["outcome"], "cause": event["cause"]}

    def incomplete(self):
        """Why this trace may lack what would differ, or None."""
        if self.end is None:
            return "%s has no end" % self.path
        if self.end["outcome"] != "completed":
            return "%s ended %s: %s" % (self.path, self.end["outcome"], self.end["cause"])
        if len(self.results) != self.start.get("iterations"):
            return "%s has %d of %s iterations" % (self.path, len(self.results),
                                                   self.start.get("iterations"))
        if self.end.get("probes_dropped"):
            return "%s lacks %d records" % (self.path, self.end["probes_dropped"])
        return None


def is_root(a, position, first, seen):
    """Of a record with equal inputs and another output.  One that reads nothing, or of which
    that is not known, is a cause only where nothing differed before it, or where by its name
    nothing in the program writes it and it differs for the first time."""
    place, reads = a.records[position][2:4]
    if reads != NOTHING or position == first:
        return True
    outside = place.split("/")[0] in ("data", "rng") or (
        place.startswith("variable/") and place.endswith("/before")
        and all(record[2] != place for record in a.records[:position]))
    return outside and place not in seen


def compare(a, b):
    """The report of one pair."""
    found = {"a": a.path, "b": b.path, "compared": 0, "first": None, "roots": [],
             "infected": 0, "absorbed": 0, "equal": 0, "structure": None}
    seen = set()
    for position, (x, y) in enumerate(itertools.zip_longest(a.records, b.records)):
        if x is None or y is None or x[:3] != y[:3]:
            found["structure"] = {"position": position, "a": x and list(x[:3]),
                                  "b": y and list(y[:3])}
            break
        found["compared"] += 1
        if x[3:] == y[3:]:
            found["equal"] += 1
            continue
        if found["first"] is None:
            found["first"] = position
        if x[4] == y[4]:
            found["absorbed"] += 1
        elif x[3] == y[3] and is_root(a, position, found["first"], seen):
            found["roots"].append(position)
        else:
            found["infected"] += 1
        seen.add(x[2])
    found["results_equal"] = a.results == b.results
    found["environment"] = facts_that_differ(a, b)
    return found


def facts_that_differ(a, b):
    x, y = (trace.start.get("environment", {}) for trace in (a, b))
    return {key: [x.get(key), y.get(key)] for key in sorted(set(x) | set(y))
            if x.get(key) != y.get(key)}


def check_case(traces):
    first = traces[0]
    for other in traces[1:]:
        for key in CASE:
            if other.start.get(key) != first.start.get(key):
                raise Refused("%s is %s in %s and %s in %s" % (
                    key, first.start.get(key), first.path, other.start.get(key), other.path))


def order_of(pair):
    """The earliest place to look at comes first; a pair without any difference last."""
    positions = pair["roots"][:1] or [pair["first"]]
    parts = pair["structure"]["position"] if pair["structure"] else None
    known = [p for p in positions + [parts] if p is not None]
    return min(known) if known else float("inf")


def differs(pair):
    return pair["first"] is not None or pair["structure"] is not None or not pair["results_equal"]


def report(paths):
    """{"verdict": …, "cause": …, "pairs": …, "parted": …, "pair": the earliest}"""
    try:
        traces = [Trace(path) for path in paths]
        check_case(traces)
        pairs = [(compare(a, b), a, b) for a, b in itertools.combinations(traces, 2)]
        parted = [found for found in pairs if differs(found[0])]
        whole = {"verdict": "different" if parted else "equal", "cause": None,
                 "traces": len(traces), "pairs": len(pairs), "pairs_parted": len(parted)}
        if not parted:
            lacking = [text for text in (trace.incomplete() for trace in traces) if text]
            if lacking:
                raise Refused("what is there agrees, but " + "; ".join(lacking))
            whole["records"] = len(traces[0].records)
            return whole
        pair, a, b = min(parted, key=lambda found: order_of(found[0]))
        root = pair["roots"][0] if pair["roots"] else None
        whole["pair"] = pair
        whole["root_cause"] = None if root is None else describe(a, b, root)
        whole["first_difference"] = (None if pair["first"] is None
                                     else describe(a, b, pair["first"]))
        whole["other_roots"] = [describe(a, b, position) for position in pair["roots"][1:SHOWN]]
        return whole
    except Refused as error:
        return {"verdict": "not_comparable", "cause": str(error), "traces": len(paths)}


def describe(a, b, position):
    iteration, step, place, reads, writes = a.records[position]
    return {"place": place, "step": step, "iteration": iteration, "position": position,
            "in_a": reads, "in_b": b.records[position][3], "out_a": writes,
            "out_b": b.records[position][4]}


def print_record(word, record):
    print("%-15s%s, step %d of iteration %d (record %d)" % (
        word, record["place"], record["step"], record["iteration"], record["position"] + 1))
    for key, name in (("in", "inputs"), ("out", "output")):
        x, y = record[key + "_a"], record[key + "_b"]
        if x == y:
            print("%15s%-8s A, B  %s" % ("", name, "none recorded" if x == NOTHING else x))
        else:
            print("%15s%-8s A     %s\n%15s%-8s B     %s" % ("", name, x, "", "", y))


def print_text(found):
    if found["verdict"] == "not_comparable":
        print("NOT COMPARABLE " + found["cause"])
        return
    if found["verdict"] == "equal":
        print("EQUAL          %d traces, %d records each" % (found["traces"], found["records"]))
        return
    print("DIFFERENT      %d of %d pairs of %d traces" % (
        found["pairs_parted"], found["pairs"], found["traces"]))
    pair = found["pair"]
    print("%15sA  %s\n%15sB  %s" % ("", pair["a"], "", pair["b"]))
    if found["root_cause"]:
        print_record("Root cause", found["root_cause"])
    if found["first_difference"] and found["first_difference"] != found["root_cause"]:
        print_record("Differs first", found["first_difference"])
        print("%15sWhat it reads differs already: the cause is before it and has no probe." % "")
    if pair["first"] is None and not pair["structure"]:
        print("%15sAll records agree, the results do not: the cause has no probe." % "")
    print("%-15s%d equal, %d infected, %d absorbed, %d with equal inputs and another output" % (
        "Records", pair["equal"], pair["infected"], pair["absorbed"], len(pair["roots"])))
    for record in found["other_roots"]:
        print("%-15s%s, step %d of iteration %d" % ("Other root", record["place"],
                                                    record["step"], record["iteration"]))
    if pair["structure"]:
        print("%-15sdiverges at record %d: A has %s, B has %s; nothing after that is compared" % (
            "Structure", pair["structure"]["position"] + 1,
            *("%s, step %d of iteration %d" % (s[2], s[1], s[0]) if s else "no more records"
              for s in (pair["structure"]["a"], pair["structure"]["b"]))))
    for key, values in pair["environment"].items():
        print("%-15s%s: A %s, B %s" % ("Environment", key, *values))


def main():
    parser = argparse.ArgumentParser(
        description="Where traces part: the first place that read the same and wrote another.",
        epilog="exit status: 0 equal, 1 different, 2 not comparable")
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    arguments = parser.parse_args()
    if len(arguments.traces) < 2:
        parser.error("at least two traces")
    found = report(arguments.traces)
    if arguments.json:
        print(json.dumps(found, indent=1))
    else:
        print_text(found)
    return {"equal": 0, "different": 1}.get(found["verdict"], 2)


if __name__ == "__main__":
    sys.exit(main())
