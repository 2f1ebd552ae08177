#!/usr/bin/env python3
"""The layer rules of ARCHITECTURE.md: who may include what.  Prints each violation.

Includes run one way: a room may include only itself and what ROOMS lists for it.  No files
include each other in a circle.  A library's header is included in one place.  No folder
holds more files than a reader takes in at once.
"""
import collections
import os
import re
import sys

PURE = ["daemon/base", "daemon/evidence", "daemon/trace", "daemon/jobs", "daemon/webhooks",
        "workloads/instruments"]
DAEMON = PURE + ["daemon/process", "daemon/config", "db", "db/integrity", "db/recurring",
                 "db/upkeep", "db/views", "db/dissent", "db/screening", "db/peers"]
WORKER = ["workloads", "workloads/shared", "workloads/instruments", "daemon/base"]
# Each room, and the other rooms that it may include.
ROOMS = {
    "daemon/base": [],
    "daemon/evidence": PURE,
    "daemon/trace": PURE,
    "daemon/jobs": PURE,
    "daemon/operations": PURE,
    "daemon/webhooks": PURE,
    "daemon/delivery": PURE + ["db", "db/webhooks"],
    "db": PURE + ["db/cases", "db/dissent", "db/integrity", "db/queue", "db/upkeep"],
    "db/webhooks": PURE + ["db"],
    "db/cases": PURE + ["db"],
    "db/integrity": PURE + ["db", "db/upkeep"],
    "db/queue": ["daemon/base", "db", "db/dissent", "db/integrity"],
    "db/recurring": PURE + ["db", "db/integrity"],
    "db/upkeep": PURE + ["db", "db/cases", "db/dissent", "db/integrity"],
    "db/views": PURE + ["db", "db/dissent", "db/upkeep"],
    "db/dissent": PURE + ["db", "db/cases"],
    "db/screening": PURE + ["db", "db/dissent"],
    "db/peers": PURE + ["db", "db/dissent", "db/integrity", "db/upkeep"],
    "api/http": PURE + ["db", "api", "api/render"],
    "api/render": PURE + ["db", "db/views", "db/dissent", "db/screening", "db/webhooks", "api"],
    "api": PURE + ["db", "db/recurring", "db/upkeep", "db/views", "db/dissent",
                   "db/screening", "db/peers", "db/webhooks", "daemon/operations", "api/http",
                   "api/render"],
    "daemon/process": PURE,
    "daemon/config": PURE,
    "daemon/client": PURE,
    "daemon/link": PURE + ["daemon/process"],
    "daemon/run": PURE + ["daemon/process", "daemon/link", "db"],
    "daemon/fleet": DAEMON + ["daemon/link", "daemon/run"],
    "daemon/engine": PURE + ["daemon/process"],
    "daemon/localise": PURE + ["db"],
    "daemon/peers": PURE + ["daemon/process", "daemon/config", "daemon/link",
                            "daemon/run", "db", "db/peers"],
    "daemon/agent": PURE + ["daemon/process", "daemon/config"],
    "daemon": DAEMON + ["api", "api/render", "daemon/run", "daemon/fleet",
                        "daemon/localise", "daemon/agent", "daemon/client", "daemon/delivery",
                        "daemon/engine", "daemon/peers", "db/webhooks"],
    "workloads/instruments": ["workloads", "daemon/base"],
    "workloads/shared": WORKER,
    "workloads/worker": WORKER,
    "workloads/tuning": WORKER + ["workloads/worker"],
    "workloads": WORKER + ["workloads/" + room for room in
                           ("checkpoint", "onednn", "ranks", "train", "tuning")],
    "workloads/*": WORKER,
    "cuda": ["workloads/*", "cuda/*", "workloads", "daemon/base"],
    "cuda/*": ["workloads/*", "cuda/*", "workloads", "daemon/base"],
}
# Headers of libraries, and the folders that include them.
LIBRARIES = [
    (r"uv\.h", ["daemon"]),
    (r"microhttpd\.h", ["api"]),
    (r"sqlite3\.h", ["db"]),
    (r"(cuda|cudnn|cublas)[a-zA-Z_0-9]*\.h|nccl\.h|nvml\.h", ["cuda"]),
    (r"zlib\.h", ["daemon/trace"]),
    (r"gnutls/.*\.h", ["daemon/webhooks", "daemon/delivery"]),
    (r"jansson\.h", ["api", "daemon"]),
]
FOLDER_MAX = 45
# One file a workload, however many there are.
LARGE_FOLDERS = ["workloads", "cuda"]


def sources():
    for top in ("daemon", "workloads", "cuda", "api", "db"):
        for folder, _, names in os.walk(top):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cu")):
                    yield f"{folder}/{name}"


def includes(path):
    with open(path, encoding="utf-8") as file:
        return re.findall(r'^ *# *include *(["<])([^">]+)[">]', file.read(), re.M)


def room_of(path):
    return os.path.dirname(path)


def allows(room, other):
    rules = ROOMS.get(room, ROOMS.get(f"{os.path.dirname(room)}/*", []))
    return other == room or any(
        rule == other or rule.endswith("/*") and os.path.dirname(other) == rule[:-2]
        for rule in rules)


def circles(graph):
    """Strongly connected sets of more than one module (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    sys.setrecursionlimit(10000)
    paths = list(sources())
    known = set(paths)
    graph = {os.path.splitext(path)[0]: set() for path in paths}
    bad = []
    for path in paths:
        for mark, name in includes(path):
            if mark == '"' and name in known:
                if not allows(room_of(path), room_of(name)):
                    bad.append(f"{path} must not include {name}")
                if os.path.splitext(name)[0] != os.path.splitext(path)[0]:
                    graph[os.path.splitext(path)[0]].add(os.path.splitext(name)[0])
            for pattern, folders in LIBRARIES:
                if mark == "<" and re.fullmatch(pattern, name) and \
                        not any(path.startswith(folder + "/") for folder in folders):
                    bad.append(f"{path}: <{name}> belongs to {' and '.join(folders)}")
    bad += ["a circle: " + ", ".join(circle) for circle in circles(graph)]
    for folder, count in collections.Counter(map(room_of, paths)).items():
        if count > FOLDER_MAX and folder not in LARGE_FOLDERS:
            bad.append(f"{folder} holds {count} files; {FOLDER_MAX} is the most")
    print("\n".join(bad) or "  ok   layers")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
