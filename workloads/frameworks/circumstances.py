"""Circumstances of a run of a framework (workloads/PROTOCOL.md): load beside it on the CPU, memory that is
filled, allocations that lie elsewhere.  They perturb what a difference depends on, never what is computed."""
import contextlib
import ctypes
import os
import random
import re
import subprocess
import sys

NAMES = ("contention", "memory-poison", "allocation-jitter")
LISTED = {"memory-poison": "memory_poison_bytes"}  # as the catalogue has it, where not by its name
LOAD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "load.py")
PROCESSES_MAX = 64
M_PERTURB = -6  # malloc.h
JITTER_BLOCKS, JITTER_STEP, JITTER_STEPS = 16, 64, 1024


class Circumstances:
    """Those that OPTIONS ask for, of BACKEND.  Refused: they cannot be what is asked.  `said` is what the
    run says of them."""

    def __init__(self, options, backend):
        from pack import Refused
        self.load, self.kept, self.said = [], [], {}
        asked = {name: getattr(options, name.replace("-", "_")) for name in NAMES}
        for name in (name for name in NAMES if asked[name]):
            if name not in offered(backend):
                raise Refused("--%s: frameworks do not compute under it on %s" % (name, backend))
        self.processes, self.threads = asked["contention"] or 0, options.threads
        self.fill = fill_of(asked["memory-poison"])
        self.random = random_of(asked["allocation-jitter"])
        if not 0 <= self.processes <= PROCESSES_MAX:
            raise Refused("--contention is 1 to %d" % PROCESSES_MAX)
        if options.fork:
            self.said["shared_import"] = 1

    def begin(self):
        """From here on the process is under them; where load could not start, `broken` says so."""
        if self.fill is not None:
            # What malloc gives gets the complement of what is set, what free takes gets that itself: of the
            # lowest byte of a number that is not 0, which would switch it off.
            ctypes.CDLL(None).mallopt(M_PERTURB, (self.fill ^ 0xff) | 0x100)
            self.said["memory_poison"] = "%02x" % self.fill * 4
        if self.random is not None:
            seed, self.random = self.random, random.Random(self.random)
            self.said["allocation_jitter"] = str(seed)
            self.move()
        if self.processes:
            self.said["contention"] = self.processes
            self.start_load()

    def start_load(self):
        with contextlib.suppress(OSError):  # no more can be started: see broken
            while len(self.load) < self.processes:
                self.load.append(subprocess.Popen([sys.executable, "-I", "-S", "-B", LOAD, str(self.threads)],
                                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        for process in self.load:
            process.stdout.readline()  # it computes, or is gone: see broken

    def move(self):
        """Before each iteration: what is allocated next lies elsewhere than it did."""
        if self.random is None:
            return
        allocate = ctypes.CDLL(None).malloc
        allocate.argtypes, allocate.restype = [ctypes.c_size_t], ctypes.c_void_p
        release = ctypes.CDLL(None).free
        release.argtypes, release.restype = [ctypes.c_void_p], None
        for _ in range(JITTER_BLOCKS):
            self.kept.append(allocate(JITTER_STEP * self.random.randint(1, JITTER_STEPS)))
        for _ in range(len(self.kept) // 2):
            release(self.kept.pop(self.random.randrange(len(self.kept))))

    def broken(self):
        """Why the run did not have them until now; None: it did."""
        missing = self.processes - len(self.load)
        if missing:
            return "%d of %d load processes could not be started" % (missing, self.processes)
        gone = sum(process.poll() is not None for process in self.load)
        return "%d of %d load processes ended before the run did" % (gone, self.processes) if gone else None

    def end(self):
        for process in self.load:
            process.stdin.close()
            process.kill()
            process.wait()
        self.load = []


def offered(backend):
    """On a GPU load would have to compute there, and what is filled and moved is of the host."""
    return NAMES if backend == "cpu" else ()


def fill_of(text):
    """The byte that memory is filled with; None: none is wanted."""
    from pack import Refused
    if not text:
        return None
    if text == "random":
        return random.SystemRandom().randint(0x01, 0xfe)
    if not re.fullmatch("([0-9a-f]{2})\\1{3}", text):
        raise Refused("--memory-poison is 'random' or four equal bytes, as 8 hex digits: the memory of a"
                      " framework is filled byte by byte")
    return int(text[:2], 16)


def random_of(text):
    """The seed; None: none is wanted."""
    from pack import Refused
    if not text:
        return None
    if text == "random":
        return random.SystemRandom().getrandbits(63)
    if not re.fullmatch("[0-9]{1,19}", text):
        raise Refused("--allocation-jitter is 'random' or a seed, a decimal number")
    return int(text)
