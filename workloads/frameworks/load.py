"""One load process: computes with as many threads as it is told, all over its memory, until its standard
input ends.  It dies with the thread that started it."""
import ctypes
import os
import signal
import sys
import threading
import zlib

PR_SET_PDEATHSIG = 1
MEMORY = 16 << 20  # more than most caches of a core


def compute(memory, all_started):
    all_started.wait()
    while True:
        zlib.crc32(memory)  # which lets other threads run meanwhile


def main():
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    memory = b"\x5a" * MEMORY  # zeros would be one page of the kernel's, and in every cache
    all_started = threading.Event()  # beside threads that compute, each further one would take long to start
    for _ in range(int(sys.argv[1])):
        threading.Thread(target=compute, args=(memory, all_started), daemon=True).start()
    all_started.set()
    print("computing", flush=True)
    if os.getppid() == parent:
        sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
