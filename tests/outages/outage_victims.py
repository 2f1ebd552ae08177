"""Who is killed, how it is found, and how it comes back.  A victim that is not there now (a run, a command) is nobody."""
import os
import signal

from outage_processes import agents, children_of, descendants, kill, marked, read

# How often each is drawn.  Those of Slurm are left out where there is none.
WEIGHTS = {"service": 5, "agent": 2, "agent and its processes": 2, "worker": 1, "launch command": 2, "receiver": 2, "peer": 2,
           "export": 2, "slurmctld": 2, "slurmd": 1, "node": 2}
OF_SLURM = ("slurmctld", "slurmd", "node")
PULL_S = 2
# These stay away until they are started again.
RETURNING = ("service", "receiver", "peer", *OF_SLURM)


def any_of(found, draw):
    """One of a table, by its key; None: it is empty."""
    return found[sorted(found)[draw % len(found)]] if found else None


class Victims:
    """Each function kills and returns who it was, or None."""

    def __init__(self, world):
        self.world = world
        self.down = []  # who was killed, and is to be started again

    def strike(self, kind, draw):
        if kind in self.down:
            return None
        name = getattr(self, kind.replace(" ", "_"))(draw)
        if name and kind in RETURNING:
            self.down.append(name)
        return name

    def service(self, _):
        self.world.service.kill()
        return "service"

    def peer(self, _):
        self.world.east.kill()
        return "peer"

    def receiver(self, _):
        self.world.receivers["shaky"].kill()
        return "receiver"

    def some_agent(self, draw):
        pids = any_of(agents(self.world.token), draw)
        return pids and pids[0]

    def agent(self, draw):
        pid = self.some_agent(draw)
        return pid and kill(pid) and f"agent {pid}"

    def agent_and_its_processes(self, draw):
        pid = self.some_agent(draw)
        if not pid:
            return None
        os.kill(pid, signal.SIGSTOP)  # so that it starts none and reports none
        for each in [pid, *descendants(pid)]:
            kill(each)
        return f"agent {pid} and its processes"

    def worker(self, draw):
        """The process of a run, alone: its run crashes."""
        pid = any_of(self.world.computing(), draw) if self.world.service.process else None
        return pid and kill(pid) and f"worker {pid}"

    def launch_command(self, draw):
        """srun, or whatever is between the service and an agent."""
        if not self.world.service.process:
            return None
        found = {pid: pid for pid in children_of(self.world.service.process.pid) if "srun" in read(pid, "cmdline")}
        pid = any_of(found, draw)
        return pid and kill(pid) and f"launch command {pid}"

    def export(self, draw):
        """What pulls the peer's runs, in the middle of it; it does so every second."""
        def pulling():
            return {pid: pid for pid, words in marked(self.world.token).items() if words[1:2] == ["export"]}
        if self.world.service.process:
            self.world.wait_up_to(pulling, PULL_S)
        pid = any_of(pulling(), draw)
        return pid and kill(pid) and f"export {pid}"

    def slurmctld(self, _):
        kill(self.world.cluster.pid("slurmctld"))
        return "slurmctld"

    def slurmd(self, draw):
        node = self.alive(draw)
        return node and kill(self.world.cluster.pid(f"slurmd-{node}")) and f"slurmd {node}"

    def node(self, draw):
        """slurmd and the steps that it started."""
        node = self.alive(draw)
        if node:
            self.world.cluster.kill_node(node)
        return node and f"node {node}"

    def alive(self, draw):
        """A node whose slurmd runs."""
        down = {name.rpartition(" ")[2] for name in self.down}
        return any_of({node: node for node in self.world.nodes if node not in down}, draw)

    def revive(self, name):
        """As whoever looks after it would."""
        self.down.remove(name)
        kind, _, which = name.partition(" ")
        if kind == "service":
            self.world.service.start(ready=False)
        elif kind == "peer":
            self.world.start_east()
        elif kind == "receiver":
            self.world.receivers["shaky"].start()
        else:
            self.world.cluster.loopback("slurmctld" if kind == "slurmctld" else "slurmd", *which.split())
            self.world.wait(lambda: self.is_there("-".join(filter(None, ("slurmd" if which else kind, which)))), f"{name} is back")

    def is_there(self, daemon):
        """Whether what its file names is not the one that was killed."""
        try:
            return str(self.world.folder) in read(self.world.cluster.pid(daemon), "cmdline")
        except (OSError, ValueError):  # it is not written yet
            return False
