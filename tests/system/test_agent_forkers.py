"""What the agent makes of a worker that forks its runs (daemon/agent/forkers.h), whatever that one says."""
import json
import sys

import pytest

from agent import Agent, CATALOGUE, PROBE

# What asks it, and is told that its run ended: BODY does the rest.
FORKER = """#!{python}
import json, os, select, sys, time

def say(text):
    os.write(3, text.encode())

def ended(nonce, exit_code=0):
    return json.dumps({{"event": "forked_exited", "nonce": nonce, "exit_code": exit_code, "signal": None,
                       "max_rss_kb": 1}}, separators=(",", ":")) + "\\n"

if sys.argv[1] == "--probe":
    print({probe!r})
elif sys.argv[1] == "--catalogue":
    print({catalogue!r})
else:
    for number, line in enumerate(sys.stdin, 1):
        nonce = json.loads(line)["nonce"]
{body}
"""


@pytest.fixture
def forker(tmp_path):
    """A function that starts an agent whose worker does BODY for each run that is asked for."""
    agents = []

    def start(body):
        program = tmp_path / "forker"
        program.write_text(FORKER.format(
            python=sys.executable, probe=json.dumps({**PROBE, "forks": True}), catalogue=json.dumps(CATALOGUE),
            body="".join(f"        {line}\n" for line in body.splitlines())))
        program.chmod(0o755)
        agents.append(Agent(("s", program)))
        agents[-1].hello()
        return agents[-1]

    yield start
    for agent in agents:
        with agent:
            assert agent.close() == 0
            agent.wait_gone()


def run(agent, name, seed, **more):
    agent.run(name, **{"variant": "v", "workload": "w", "seed": str(seed), "shared-import": 1, **more})
    return agent.until_exit(name)


def test_a_log_that_comes_last_is_of_the_run_that_wrote_it(forker):
    """While the agent reads many lines, the run writes its last words, and ends."""
    agent = forker("""say('{"event":"x"}\\n' * 4680 + '{"event":"xyz"}\\n')  # all that a pipe holds
while not select.select([], [3], [], 1)[1]:
    pass
os.write(2, b"last words of %d" % number)
say(ended(nonce))
""")
    for seed in range(1, 9):
        _, _, exited = run(agent, f"R{seed}", seed)
        assert (exited["reason"], exited["exit_code"], exited["log"]) == ("exited", 0, f"last words of {seed}")


def test_a_run_that_ends_in_the_middle_of_a_line(forker):
    """It is garbage, and the run has ended all the same."""
    agent = forker("""say('{"event":"x"}\\n{"event":"it' + ended(nonce, 7))""")
    for seed in 1, 2:
        _, events, exited = run(agent, f"R{seed}", seed)
        assert [(event["event"], event.get("cause")) for event in events] \
            == [("worker", None), ("garbage", "line 2: cut off")]
        assert (exited["reason"], exited["exit_code"]) == ("exited", 7)


def test_a_forker_that_is_gone_by_its_next_run(forker):
    """Another one is asked."""
    agent = forker("say(ended(nonce))\nos._exit(0)")
    for seed in range(1, 9):
        _, events, exited = run(agent, f"R{seed}", seed)
        assert events == [] and (exited["reason"], exited["exit_code"]) == ("exited", 0)
        agent.wait_gone()


def test_the_end_of_another_run_is_none_of_this_one(forker):
    agent = forker("""say(ended("0" * 32, 3) + ended(nonce, 4))""")
    _, events, exited = run(agent, "R1", 1)
    assert [event["event"] for event in events] == ["worker"] and exited["exit_code"] == 4
