"""Processes of a world, which have its token in their environment: the services, and what they start."""
import contextlib
import os
import pathlib
import signal

from test_processes import children_of, stat_of

MARK, HOST = "REPROD_OUTAGES", "REPROD_OUTAGES_HOST"


def read(pid, name):
    try:
        return pathlib.Path("/proc", str(pid), name).read_bytes().decode(errors="replace")
    except OSError:
        return ""


def marked(token):
    """{pid: words}"""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and f"{MARK}={token}\0" in read(name, "environ"):
            words = read(name, "cmdline").split("\0")[:-1]
            if words:  # else it has ended
                found[int(name)] = words
    return found


def agents(token):
    """{host: pids}"""
    found = {}
    for pid, words in marked(token).items():
        if words[1:3] == ["agent", "--config"]:
            for word in read(pid, "environ").split("\0"):
                if word.startswith(f"{HOST}="):
                    found.setdefault(word.partition("=")[2], []).append(pid)
    return found


def orphans(token):
    """[words] of those whose parent has ended."""
    found = []
    for pid, words in marked(token).items():
        with contextlib.suppress(OSError):  # it has ended itself
            if stat_of(pid)[1] == "1":
                found.append(words)
    return found


def descendants(pid):
    found = []
    for child in children_of(pid):
        found += [child, *descendants(child)]
    return found


def kill(pid):
    """Whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
