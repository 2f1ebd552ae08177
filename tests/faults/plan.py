"""One planned fault: the environment that the preloaded library reads (preload/fault.h), and what
it counted."""
import mmap
import os
import pathlib
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from service import BUILD  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = BUILD / "tests" / "faults.so"
ROLES = ("serve", "agent", "maintenance", "worker")
CALLS = tuple(re.findall(r"^ {4}X\((\w+)\)", (HERE / "preload" / "fault.h").read_text(), re.M)) + ("any",)
STRUCK = len(ROLES) * len(CALLS)
WALL_AHEAD = STRUCK + 1


class Faults:
    """The shared counts of the processes of one service, and the plan for its next life."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "faults"
        self.log = pathlib.Path(folder) / "struck"
        self.path.write_bytes(bytes(8 * (STRUCK + 2)))
        with open(self.path, "r+b") as file:
            self.shared = mmap.mmap(file.fileno(), 0)

    def plan(self, role=None, call="any", first=0, times=1, action="before"):
        """The environment under which processes are struck; without ROLE they are only counted."""
        self.shared[:] = bytes(len(self.shared))
        self.log.unlink(missing_ok=True)
        env = {"LD_PRELOAD": str(LIBRARY), "REPROD_FAULT_SHARED": str(self.path),
               "REPROD_FAULT_LOG": str(self.log)}
        if role:
            env["REPROD_FAULT"] = f"{role}:{call}:{first}:{times}:{action}"
        return env

    def value(self, index):
        return struct.unpack_from("q", self.shared, 8 * index)[0]

    @property
    def struck(self):
        return self.value(STRUCK)

    def set_wall_ahead(self, seconds):
        struct.pack_into("q", self.shared, 8 * WALL_AHEAD, int(seconds * 1e9))

    def counts(self):
        """{role: {call: how many}}"""
        return {role: {call: self.value(r * len(CALLS) + c) for c, call in enumerate(CALLS)}
                for r, role in enumerate(ROLES)}

    def strikes(self):
        """(role, call, number, path, frames) of each call that was struck, frames as FILE+OFFSET."""
        found = []
        for line in self.log.read_text().splitlines() if self.log.exists() else []:
            role, call, number, _, path, *frames = line.split(" ")
            found.append((role, call, int(number), os.path.basename(path), frames))
        return found
