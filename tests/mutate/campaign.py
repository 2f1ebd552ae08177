"""One mutant after another: compiled, linked with the objects of the build, tried by the tests.

A mutant is none if its object is the unchanged one.  Else the tests that watch its file run, each
until its first failure; if all pass, once more with UBSan.
"""
import collections
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
import time

PLAIN = ["-O1", "-g0"]
UNDEFINED = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
MEMORY_KIB = 4 << 20
Result = collections.namedtuple("Result", "mutant outcome by")  # none, noticed, survived


class Campaign:
    """TEXTS: the sources by path; TESTS: the tests of each, as names below tests/unit/; FIRST: the
    test that is tried first, by mutant."""

    def __init__(self, build, texts, tests, first):
        self.build, self.texts, self.tests, self.first = build, texts, tests, first
        self.compiler, self.linker, self.objects, self.libraries = (
            shlex.split(os.environ["MUTATE_" + name]) for name in ("CC", "LINK", "OBJECTS", "LIBS"))
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.scratch = tempfile.mkdtemp(prefix="mutate-", dir=memory)
        self.unchanged = {}  # path: content of the object
        self.checked = {}  # path: the object with UBSan
        self.seconds = {}  # test: how long it takes
        self.noticed = collections.Counter()  # (path, test): how many mutants
        self.lock = threading.Lock()

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def compile(self, path, text, folder, flags):
        """The object of PATH with TEXT, in FOLDER; None if it does not compile."""
        out, source = os.path.join(folder, "mutant.o"), os.path.join(folder, path)
        os.makedirs(os.path.dirname(source), exist_ok=True)
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        if path.endswith(".c"):
            command = self.compiler + PLAIN + flags + ["-w", "-fmacro-prefix-map=%s=" % folder,
                                                       source]
        else:  # embedded as in the Makefile, from FOLDER
            command = self.linker + ['-DEMBEDDED_FILE="%s"' % path,
                                     os.path.abspath("daemon/base/embed.S")]
        done = subprocess.run(command + ["-c", "-o", out], stderr=subprocess.DEVNULL,
                              cwd=folder if path.endswith(".sql") else None)
        return out if done.returncode == 0 else None

    def passes(self, test, made, folder, flags):
        """Whether TEST passes in time with the objects of MADE, by path, in place of the build's."""
        program, list_file = os.path.join(folder, "test"), os.path.join(folder, "objects")
        replaced = {"%s/obj/%s.o" % (self.build, path) for path in made}
        with open(list_file, "w", encoding="utf-8") as file:
            file.write("\n".join(o for o in dict.fromkeys(self.objects) if o not in replaced))
        subprocess.run(self.linker + flags +
                       ["-o", program, "%s/obj/tests/unit/%s.c.o" % (self.build, test)] +
                       list(made.values()) + ["@" + list_file] + self.libraries, check=True)
        usual = self.seconds.get(test, 60)
        limits = "ulimit -c 0 -v %d -t %d; exec " % (MEMORY_KIB, 3 + 10 * usual)
        try:
            return subprocess.run(["bash", "-c", limits + program], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=60 + 10 * usual,
                                  env=dict(os.environ, TMPDIR=self.scratch, CMOCKA_TEST_ABORT="1",
                                           OMP_WAIT_POLICY="passive")).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def in_folder(self, work, *arguments):
        folder = tempfile.mkdtemp(dir=self.scratch)
        try:
            return work(folder, *arguments)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def compile_unchanged(self, folder, path):
        """Keeps the object that a mutant must differ from, and the one with UBSan."""
        made = self.compile(path, self.texts[path], folder, [])
        self.unchanged[path] = made and self.content(made)
        with_undefined = made and self.compile(path, self.texts[path], folder, UNDEFINED)
        if with_undefined:
            self.checked[path] = os.path.join(self.scratch, path.replace("/", "-") + ".o")
            os.rename(with_undefined, self.checked[path])
        return None if with_undefined else "%s does not compile" % path

    def check_unchanged(self, folder, test):
        """A mutant is noticed by a test that passes without it."""
        started = time.monotonic()
        passed = self.passes(test, self.checked, folder, UNDEFINED)
        self.seconds[test] = time.monotonic() - started
        return None if passed else "%s fails although nothing was changed" % test

    @staticmethod
    def content(made):
        with open(made, "rb") as file:
            return file.read()

    def likeliest_first(self, mutant):
        """The tests of MUTANT's file by what each noticed so far in its time; at first as listed."""
        def value(test):
            return (test == self.first.get(mutant),
                    (1 + self.noticed[mutant.path, test]) / (0.2 + self.seconds[test]))
        return sorted(self.tests[mutant.path], key=value, reverse=True)

    def noticed_by(self, mutant, text, folder, flags):
        """The test that notices TEXT in place of MUTANT's file; None if none does."""
        path, made = mutant.path, self.compile(mutant.path, text, folder, flags)
        for test in self.likeliest_first(mutant):
            if not self.passes(test, {path: made}, folder, flags):
                with self.lock:
                    self.noticed[path, test] += 1
                return test
        return None

    def try_one(self, folder, mutant):
        path, text = mutant.path, self.texts[mutant.path]
        changed = text[:mutant.start] + mutant.replacement + text[mutant.end:]
        made = self.compile(path, changed, folder, [])
        if not made or self.content(made) == self.unchanged[path]:
            return Result(mutant, "none", None)
        # The store's C does no arithmetic, and SQL is not for UBSan.
        for flags in [[]] if path.startswith("db/") else [[], UNDEFINED]:
            by = self.noticed_by(mutant, changed, folder, flags)
            if by:
                return Result(mutant, "noticed", by)
        return Result(mutant, "survived", None)
