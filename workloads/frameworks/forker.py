"""Forks a process for each run, after one import of the framework: what --fork does.  Who asks for the
runs, and why, is in daemon/agent/forkers.h."""
import atexit
import ctypes
import glob
import json
import os
import signal
import sys
import traceback

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, value)


def children():
    """Process ids of this process's, those that it inherited included."""
    lists = glob.glob("/proc/self/task/*/children")
    if not lists:  # a kernel without CONFIG_PROC_CHILDREN
        return {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if parent_of(pid) == os.getpid()}
    return {int(pid) for text in map(text_of, lists) for pid in text.split()}


def parent_of(pid):
    fields = text_of("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return int(fields[1]) if fields else None


def text_of(path):
    """"" where it is gone."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def take_standard_input():
    """The questions; the framework gets an empty standard input."""
    kept = os.fdopen(os.dup(0), "r", encoding="utf-8")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return kept


def stamps_of(files):
    return {file: stamp_of(file) for file in files}


def stamp_of(file):
    try:
        stat = os.stat(file)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_ctime_ns


class Forker:
    """COMPUTE(arguments, is_stale) is a run, in its own process; events go to the descriptor RESULT.  It
    is stale where FILES, those of the import, are no more what was imported."""

    def __init__(self, result, compute, files):
        self.result, self.compute = result, compute
        self.stamps = stamps_of(files)
        self.child, self.ending = 0, False
        self.own = children()  # that the import started

    def serve(self, questions):
        signal.signal(signal.SIGTERM, self.terminate)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        forker = os.getpid()
        for line in iter(questions.readline, ""):
            question = json.loads(line)
            if stamps_of(self.stamps) != self.stamps:
                self.be_the_run(question, True)  # here: no other run is to be of this import
            self.child = os.fork()
            if self.child == 0:
                questions.close()
                self.be_a_child_of(forker)
                self.be_the_run(question, False)
            self.wait(question["nonce"])

    def terminate(self, *_):
        """The run may end in its own way before this process does."""
        self.ending = True
        if not self.child:
            os._exit(128 + signal.SIGTERM)
        self.signal_child(signal.SIGTERM)

    def signal_child(self, number):
        try:
            os.killpg(self.child, number)
        except OSError:  # nothing is left of it, or it leads no group yet
            pass

    @staticmethod
    def be_a_child_of(forker):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setpgid(0, 0)
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != forker:  # which was gone before it could be told
            os.kill(os.getpid(), signal.SIGKILL)

    def be_the_run(self, question, is_stale):
        os.environ["REPROD_NONCE"] = question["nonce"]
        status = status_of(self.compute, question["arguments"], is_stale)
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)

    def wait(self, nonce):
        """Says how it ended, once it did and nothing that it started can write any more.  Where this
        process was asked to end, both did."""
        os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOWAIT)
        self.signal_child(signal.SIGKILL)  # until it is reaped, its number is nobody else's
        _, status, usage = os.wait4(self.child, 0)
        self.child = 0
        self.end_leftovers()
        if self.ending:
            os._exit(128 + signal.SIGTERM)
        killed = os.WIFSIGNALED(status)
        line = json.dumps({"event": "forked_exited", "nonce": nonce,
                           "exit_code": None if killed else os.WEXITSTATUS(status),
                           "signal": os.WTERMSIG(status) if killed else None,
                           "max_rss_kb": usage.ru_maxrss}, separators=(",", ":"))
        os.write(self.result, line.encode() + b"\n")

    def end_leftovers(self):
        """What the run started and left behind became this process's, in whatever group or session."""
        left = children() - self.own
        while left:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            for pid in left:
                os.waitpid(pid, 0)
            left = children() - self.own


def status_of(function, *arguments):
    """The exit status of a process that ends with it, as Python itself has it."""
    try:
        function(*arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xff
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
