"""What the daemons are asked: every path of their description, for every id, in all formats, with
every documented parameter, right and wrong."""
import itertools
import json
import re
import sqlite3
import urllib.parse

import record
import refused
from daemons import JSON, Question

NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
SUFFIXES = {"application/json": ".json", "text/plain": ".txt", "text/csv": ".csv"}
ACCEPTS = ("text/plain", "text/csv", "application/json", "text/html", "*/*", "image/png", "text/*",
           "application/*", "text/html,application/xhtml+xml,*/*;q=0.8", "text/event-stream",
           "text/csv;q=0.9, application/json;q=0.5", "application/json;q=0, */*", "*/*;q=0",
           "text/plain; charset=utf-8", "", "nonsense", "text/csv;q=x, text/plain;q=0.1",
           "application/problem+json")
METHODS = ("OPTIONS", "PUT", "PATCH", "POST", "DELETE", "GET", "BREW")
STRANGE_IDS = (NOBODY, NOBODY.lower(), "x", "0", "-1", "1e3", "999999", "9" * 20, "%2e%2e", "%20",
               "none", "a" * 300, "%C3%BC", "x.json", "x.txt", "x.csv", "x.png", "0" * 32)
STRANGE_VALUES = ("", "x", "0", "-1", "1x", "1.5", "9" * 20, "1001", "10001", "a" * 300, "%C3%BC",
                  "%00", "yesterday", "2999-01-01T00:00:00Z", "3-2", NOBODY, "0" * 32,
                  # cursors: of another list, without an id, without a number
                  "!!", "cjowMQ", "ajowMQ", "cjp-fg", "cjo", "aDp4", "Zjp4", "ajp4", "ZTd4")
STRANGE_PATHS = ("/v1", "/v2/jobs", "/v1/jobs/", "//v1/jobs", "/v1/worklods", "/nothing.js",
                 "/%2e%2e/VERSION", "/../VERSION", "/v1/job", "/index.htm", "/.txt", "/.csv",
                 "/v1/jobs.xml", "/v1/jobs.txt.csv", "/healthz.csv", "/metrics.json", "/?nothing=1",
                 "/v1/jobs?limit", "/v1/jobs?=1", "/v1/jobs?&&", "/v1/jobs?limit=1&limit=2")
LISTS = ("/v1/jobs?limit=7", "/v1/runs?limit=90&outcome=completed", "/v1/environments?limit=3",
         "/v1/findings?limit=2", "/v1/runs.txt?limit=300")
UNREADY = [Question("GET", path + suffix) for suffix in ("", ".txt", ".csv") for path in (
    "/readyz", "/healthz", "/metrics", "/v1/workloads", "/v1/workloads/conv_wgrad", "/v1/stacks",
    "/v1/devices", "/v1/hosts", "/v1/matrix", "/v1/profiles", "/v1/jobs", "/v1/runs",
    "/v1/findings", "/v1/environments")] + [
    Question("POST", "/v1/jobs", JSON, json.dumps(job))
    for job in ({}, {"workloads": ["conv_wgrad"]}, {"runs": 0})]


class Known:
    """What there is to ask for, by the database and by the old daemon."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.description = daemon.get("/openapi.json")
        self.db = sqlite3.connect(f"file:{daemon.data}/reprod.db?mode=ro", uri=True)
        names = {item["workload"] for item in daemon.get("/v1/workloads")["items"]}
        page = daemon.ask(Question("GET", "/index.html")).body.decode()
        self.ids = {
            "/v1/jobs": self.column("SELECT id FROM job"),
            "/v1/runs": self.column("SELECT id FROM run"),
            "/v1/cells": self.column("SELECT id FROM cell"),
            "/v1/environments": self.column("SELECT id FROM environment"),
            "/v1/devices": self.column("SELECT id FROM device"),
            "/v1/workloads": sorted(names),
            "/problems": [item["type"].rpartition("/")[2]
                          for item in daemon.get("/problems")["items"]],
            "": sorted({"index.html", *re.findall(r'(?:src|href)="([\w.-]+\.\w+)"', page)})}
        self.traced = self.column("SELECT run FROM run_trace ORDER BY records DESC")
        self.values = {
            "limit": ["1", "7", "1000", "10000"], "view": ["documents"],
            "job": self.ids["/v1/jobs"][::6], "cell": self.ids["/v1/cells"][::40],
            "workload": self.ids["/v1/workloads"][::9] + ["selftest_pass"],
            "variant": ["ordered", "counted"], "device": self.ids["/v1/devices"],
            "table": [item["id"] for item in daemon.get("/v1/profiles")["items"]],
            "environment": self.ids["/v1/environments"],
            "as_of": [self.moment(share) for share in (0, 0.1, 0.5, 0.9, 1)]
            + ["2026-01-01T00:00:00Z", "2026-01-01T02:00:00%2B02:00"],
            "iteration": ["0", "1", "0-1", "5-9"], "step": ["0", "2", "2-3", "40"],
            "place": ["loss", "Loss", "gradient/*", "gradients/*", "*/conv?/*", "mix"]}

    def column(self, sql):
        return [str(row[0]) for row in self.db.execute(sql)]

    def moment(self, share):
        """A time, in the history of cells, before which this SHARE of the changes was."""
        times = self.column("SELECT strftime('%Y-%m-%dT%H:%M:%fZ', at_ms / 1000.0, 'unixepoch')"
                            " FROM cell_history ORDER BY at_ms")
        return times[int(share * (len(times) - 1))]

    def good(self, name, schema):
        return schema.get("enum") or self.values.get(name, [])

    def parameters(self, operation):
        """(name, schema) of what may stand in the query."""
        for parameter in operation.get("parameters", []):
            if parameter.get("in") == "query":
                yield parameter["name"], parameter["schema"]

    def paths(self):
        """(pattern, its operations, concrete paths)"""
        for pattern, operations in self.description["paths"].items():
            if "{" in pattern:
                head, tail = re.fullmatch(r"(.*)/\{\w+\}(.*)", pattern).groups()
                yield pattern, operations, [f"{head}/{urllib.parse.quote(name, safe=':')}{tail}"
                                            for name in self.ids[head]]
            else:
                yield pattern, operations, [pattern]


def formats(operation):
    """The suffixes of what a path is offered as; "" is none."""
    content = operation["responses"]["200"].get("content", {})
    return ["", *(SUFFIXES[kind] for kind in content if kind in SUFFIXES)]


def reads(known):
    for pattern, operations, paths in known.paths():
        if "get" not in operations or pattern == "/v1/events":
            continue
        suffixes = formats(operations["get"]) if pattern not in ("/", "/{asset}") else [""]
        for path, suffix in itertools.product(paths, suffixes):
            yield Question("GET", path + suffix)
        example = paths[0] if "/trace" not in pattern else f"/v1/runs/{known.traced[0]}/trace"
        for suffix in SUFFIXES.values():
            yield Question("GET", example + suffix)
        for accept in ACCEPTS:
            yield Question("GET", example, {"Accept": accept})
        for suffix in suffixes:
            yield Question("HEAD", example + suffix)
        if "{" in pattern:
            for name in STRANGE_IDS:
                yield Question("GET", re.sub(r"\{\w+\}", name, pattern))
        yield from queries(known, operations["get"], example, suffixes)
    for path in STRANGE_PATHS:
        yield Question("GET", path)


def queries(known, operation, example, suffixes):
    """Each parameter alone, then the values that belong together."""
    yield Question("GET", f"{example}?nothing=1")
    for name, schema in known.parameters(operation):
        for value, suffix in itertools.product(known.good(name, schema), suffixes):
            yield Question("GET", f"{example}{suffix}?{name}={value}")
        for value in (*STRANGE_VALUES, *(good[:-1] for good in known.good(name, schema)[:1])):
            yield Question("GET", f"{example}?{name}={value}")
        for value in known.good(name, schema)[:1]:
            yield Question("GET", f"{example}?{name}={value}&{name}={value}")
        yield Question("GET", f"{example}?{name}s=1")


def together(known):
    """Values of several parameters."""
    tables, environments = known.values["table"], known.values["environment"]
    for table, suffix in itertools.product(tables, ("", ".txt", ".csv")):
        for environment in environments:
            yield Question("GET", f"/v1/matrix{suffix}?table={table}&environment={environment}")
        for moment in known.values["as_of"]:
            yield Question("GET", f"/v1/matrix{suffix}?table={table}&as_of={moment}")
        yield Question("GET", f"/?table={table}")
    yield Question("GET", f"/v1/matrix?device=none&environment={environments[0]}&as_of=x&table=y")
    for query in ("workload=selftest_pass&variant=ordered&outcome=completed", "workload=a&device=b",
                  "workload=selftest_pass&variant=orderd", "workload=selftest_pas&variant=orderd",
                  "variant=%C3%BCnordered", "outcome=completd&limit=0&cursor=x", "device=cpux"):
        for suffix in ("", ".csv", ".txt"):
            yield Question("GET", f"/v1/runs{suffix}?{query}")
    for job in known.ids["/v1/jobs"]:
        yield Question("GET", f"/v1/runs.csv?job={job}&limit=1000")
    for run in known.traced[::7]:
        for query in ("limit=30", "step=1-2&place=*forward&limit=5", "place=none",
                      "iteration=0&step=2"):
            yield Question("GET", f"/v1/runs/{run}/trace?{query}")
    for job, outcome in itertools.product(known.values["job"], ("completed", "crashed", "lost")):
        yield Question("GET", f"/v1/runs?job={job}&outcome={outcome}&limit=2")


def comparisons(known):
    """Neighbours of a job, a run with itself, runs of other cases, runs that are not there."""
    rows = known.db.execute("SELECT id, job, case_key FROM run ORDER BY job, case_key, id")
    pairs = [(a[0], b[0]) for a, b in itertools.pairwise(rows) if a[1] == b[1]]
    pairs += [(b, a) for a, b in pairs[::9]] + [(a, a) for a, _ in pairs[::25]]
    pairs += list(zip(known.traced, known.traced[5:])) + [(known.traced[0], NOBODY)]
    for (a, b), suffix in itertools.product(pairs, ("", ".txt")):
        yield Question("GET", f"/v1/compare{suffix}?a={a}&b={b}")
    for query in ("", f"a={known.traced[0]}", f"a={known.traced[0]}&b=7", f"a=x&b={NOBODY}&c=1"):
        yield Question("GET", f"/v1/compare?{query}")


def methods(known):
    """Those that a path does not have, and OPTIONS; those that it has, where nothing is made."""
    for pattern, operations, paths in known.paths():
        for method in METHODS:
            if method.lower() not in operations:
                yield Question(method, paths[0])
                yield Question(method, re.sub(r"\{\w+\}", NOBODY, pattern))
    for name in STRANGE_IDS:
        yield Question("DELETE", f"/v1/jobs/{name}")
        yield Question("POST", f"/v1/jobs/{name}/rerun")
    for job in known.column("SELECT id FROM job WHERE state IN ('finished', 'cancelled')"):
        yield Question("DELETE", f"/v1/jobs/{job}")
    for wrong in ({"Last-Event-ID": "x"}, {"Last-Event-ID": "-1"}, {"Last-Event-ID": "9" * 30},
                  {"Accept": "text/plain"}):
        yield Question("GET", "/v1/events", wrong)


def posts(known):
    """Requests for jobs that are refused, or were answered before."""
    for job in refused.JOBS:
        yield Question("POST", "/v1/jobs", JSON, json.dumps(job))
    for body in refused.MALFORMED:
        yield Question("POST", "/v1/jobs", JSON, body)
    for name in refused.TYPES:
        yield Question("POST", "/v1/jobs", {"Content-Type": name}, '{"runs": 0}')
    for headers in refused.FOREIGN:
        yield Question("POST", "/v1/jobs", {**JSON, **headers}, '{"runs": 0}')
        yield Question("GET", "/v1/jobs", headers)
    for key in refused.KEYS:
        yield Question("POST", "/v1/jobs", {**JSON, "Idempotency-Key": key}, '{"runs": 0}')
    keyed, = known.db.execute("SELECT id, request FROM job WHERE idempotency_key = ?",
                              (record.KEY,))
    other = known.ids["/v1/jobs"][0]
    for path, body in (("/v1/jobs", keyed[1]), ("/v1/jobs", '{"runs": 2}'),
                       (f"/v1/jobs/{keyed[0]}/rerun", ""), (f"/v1/jobs/{other}/rerun", "")):
        yield Question("POST", path, {**JSON, "Idempotency-Key": record.KEY}, body)


def all_of(known):
    return itertools.chain(reads(known), together(known), comparisons(known), methods(known),
                           posts(known))
