"""One process of a worker: what it was asked, what it said and when, how it ended.

Standard library only: it runs on machines that have nothing else.
"""
import dataclasses
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time

LINE_MAX = 64 * 1024  # bytes, workloads/PROTOCOL.md
EVENTS_MAX = 16 * 1024 * 1024
LOG_KEPT = 2000  # the last bytes of standard output and standard error
DYING = 20  # seconds that a killed process may take; one that a driver holds may never end
LIVE = set()  # processes that have not ended


@dataclasses.dataclass
class Run:
    """A run that has ended.  Times are seconds of one clock, None where it never happened."""
    asked: dict  # workload, variant, size, iterations, device, dtype, circumstances
    events: list  # JSON objects, in order
    garbage: str = None  # what was no event: one sentence
    exit_code: int = None
    signal: int = None
    timed_out: bool = False
    cut: bool = False  # killed for the deadline of the whole check: it shows nothing
    log: str = ""
    spawned: float = None
    first_iteration: float = None
    ended: float = None  # the end event
    gone: float = None  # the process

    def of_kind(self, kind):
        return [event for event in self.events if event.get("event") == kind]


class Events:
    """Lines to events, as they arrive."""

    def __init__(self):
        self.rest, self.bytes = b"", 0
        self.events, self.times, self.garbage = [], [], None

    def feed(self, data, now):
        self.bytes += len(data)
        if self.bytes > EVENTS_MAX:
            self.garbage = self.garbage or "more events than a run may write"
            return
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.add(line, now)
        if len(self.rest) > LINE_MAX:
            self.garbage, self.rest = self.garbage or "a line is too long", b""

    def add(self, line, now):
        try:
            event = json.loads(line, object_pairs_hook=unique)
            if not isinstance(event, dict) or not isinstance(event.get("event"), str):
                raise ValueError
        except ValueError:
            self.garbage = self.garbage or f"line {len(self.events) + 1} is no event"
            return
        self.events.append(event)
        self.times.append(now)

    def close(self):
        if self.rest:
            self.garbage = self.garbage or "the last line is cut off"

    def time_of(self, kind):
        return next((at for event, at in zip(self.events, self.times)
                     if event["event"] == kind), None)


def unique(pairs):
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)


def read_events(descriptor, deadline):
    """Everything until the other end is closed.  (Events, whether DEADLINE came first)"""
    events = Events()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                return events, True
            data = os.read(descriptor, 1 << 16)
            if not data:
                events.close()
                return events, False
            events.feed(data, time.monotonic())


def environment(extra):
    """This process's, without what changes how a worker computes."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("OMP_", "GOMP_", "KMP_", "REPROD_"))}
    return {**kept, **{name: str(value) for name, value in extra.items()}}


def stop(process):
    """The process and what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def stop_all():
    for process in list(LIVE):
        stop(process)


def end_of(process):
    """Its exit code once it was killed; None if it does not end."""
    try:
        return process.wait(DYING)
    except subprocess.TimeoutExpired:
        return None


def run(worker, asked, timeout, env=None):
    """Runs a case in a fresh process."""
    read_end, write_end = os.pipe()
    arguments = [str(worker), "--run", "--workload", asked["workload"],
                 "--variant", asked["variant"], "--size", asked["size"],
                 "--iterations", str(asked["iterations"])]
    for name in ("device", "threads", "dtype"):
        if asked.get(name):
            arguments += [f"--{name}", str(asked[name])]
    for name, value in (asked.get("circumstances") or {}).items():
        arguments += [f"--{name}", str(value)]
    with tempfile.TemporaryFile() as log:
        spawned = time.monotonic()
        try:
            process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=[write_end], start_new_session=True,
                env=environment({**(env or {}), "REPROD_RESULT_FD": write_end}))
        finally:
            os.close(write_end)
        LIVE.add(process)
        try:
            events, timed_out = read_events(read_end, spawned + timeout)
            if not timed_out:
                try:
                    process.wait(max(0.1, spawned + timeout - time.monotonic()))
                except subprocess.TimeoutExpired:
                    timed_out = True
        finally:
            os.close(read_end)
            stop(process)
            code = end_of(process)
            LIVE.discard(process)
        gone = time.monotonic()
        log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_KEPT))
        text = log.read().decode(errors="replace")
    return Run(asked=asked, events=events.events, garbage=events.garbage,
               exit_code=code if code is not None and code >= 0 else None,
               signal=-code if code is not None and code < 0 else None,
               timed_out=timed_out or code is None, log=text, spawned=spawned,
               first_iteration=events.time_of("iteration"), ended=events.time_of("end"),
               gone=gone)


@dataclasses.dataclass
class Answer:
    """What a process that only prints left behind."""
    exit_code: int  # None where it had to be killed; negative: the signal
    output: str
    errors: str
    cut: bool = False  # killed for a deadline of the check: it shows nothing

    def json(self):
        """The object on the last line, {} where there is none."""
        try:
            found = json.loads(self.output.splitlines()[-1])
        except (ValueError, IndexError):
            return {}
        return found if isinstance(found, dict) else {}


def ask(arguments, timeout, env=None):
    process = subprocess.Popen([str(part) for part in arguments], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True, env=environment(env or {}))
    LIVE.add(process)
    try:
        output, errors = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        stop(process)
        output, errors = rest_of(process)
        code = None
    except BaseException:
        stop(process)
        raise
    finally:
        LIVE.discard(process)
    return Answer(code, output.decode(errors="replace"),
                  errors.decode(errors="replace")[-LOG_KEPT:])


def rest_of(process):
    """What a killed process left in its pipes."""
    try:
        return process.communicate(timeout=DYING)
    except subprocess.TimeoutExpired:
        return b"", b"it was killed, and did not end"
