"""reprod-launch by itself: what it sets before it executes a worker, and its statuses."""
import os
import signal
import subprocess

import pytest

from agent import BUILD, LIBC_SIGNALS, LIMIT

pytestmark = pytest.mark.flavour

LAUNCH = BUILD / "reprod-launch"


def launch(*arguments, **options):
    return subprocess.run([LAUNCH, *arguments], capture_output=True, timeout=LIMIT,
                          check=False, text=True, **options)


@pytest.mark.parametrize("arguments, status", [
    ([], 125), (["--"], 125), (["--core", "x", "--", "/bin/true"], 125),
    (["--core"], 125), (["--core", "-1", "--", "/bin/true"], 125),
    (["--colour", "1", "--", "/bin/true"], 125), (["--parent", "1", "--", "/bin/true"], 125),
    (["--", "/etc/passwd"], 126), (["--", "/nowhere/true"], 127), (["--", "/bin/true"], 0),
    (["--core", "0", "--", "/bin/sh", "-c", "exit 9"], 9),
])
def test_launch_statuses(arguments, status):
    done = launch(*arguments)
    assert done.returncode == status
    assert done.stderr.count("\n") == (1 if status in (125, 126, 127) else 0)


def test_what_a_killed_process_of_its_number_left_is_gone():
    """LLVM's OpenMP would end the program: "found unknown library already initialized"."""
    def leave():
        with open(f"/dev/shm/__KMP_REGISTERED_LIB_{os.getpid()}_{os.getuid()}", "wb") as file:
            file.write(bytes(1024))
    done = launch("--", "/bin/sh", "-c", "ls /dev/shm/ | grep __KMP_REGISTERED_LIB_$$_; exit 0", preexec_fn=leave)
    assert (done.returncode, done.stdout) == (0, "")


def test_launch_limits():
    done = launch("--core", "0", "--files", "64", "--file-size", "1024", "--nproc", "1000",
                  "--address-space", str(1 << 30), "--", "/bin/cat", "/proc/self/limits")
    limits = {line[:26].strip(): line[26:].split()[:2] for line in done.stdout.split("\n")}
    assert limits["Max core file size"] == ["0", "0"]
    assert limits["Max open files"] == ["64", "64"]
    assert limits["Max file size"] == ["1024", "1024"]
    assert limits["Max processes"] == ["1000", "1000"]
    assert limits["Max address space"] == [str(1 << 30)] * 2


def test_launch_resets_signals_and_descriptors():
    with open("/dev/null", encoding="ascii") as extra:
        number = os.dup2(extra.fileno(), 99)
        done = launch("--", "/bin/cat", "/proc/self/status", pass_fds=[number],
                      preexec_fn=lambda: (
                          signal.signal(signal.SIGHUP, signal.SIG_IGN),
                          signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])))
        listed = launch("--", "/bin/ls", "/proc/self/fd", pass_fds=[number])
        os.close(number)
    status = dict(line.split(":\t", 1) for line in done.stdout.split("\n") if ":\t" in line)
    assert int(status["SigIgn"], 16) & ~LIBC_SIGNALS == 0
    assert int(status["SigBlk"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert set(listed.stdout.split()) <= {"0", "1", "2", "3"}
