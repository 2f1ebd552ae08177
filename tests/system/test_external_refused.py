"""What a configuration of external workloads may not say, to the service and to an agent."""
import json
import subprocess

import pytest

from service import BUILD, LIMIT

GOOD_WORKLOAD = {"name": "own", "command": ["true"], "subject": "framework", "subject_name": "own",
                 "variants": [{"name": "a", "control": True}, {"name": "b"}]}


def changed(**members):
    return {**GOOD_WORKLOAD, **members}


def variant(**members):
    return changed(variants=[{"name": "a", "control": True}, {"name": "b", **members}])


@pytest.mark.parametrize("workload, pointer, words", [
    (changed(name="Own"), "/name", "[a-z][a-z0-9_]*"),
    (changed(subject="frame work"), "/subject", "library or framework"),
    (changed(subject=None), "/subject", "library or framework"),
    ({"name": "own", "command": ["true"], "variants": [{"name": "a", "control": True}]}, "/subject", "is missing"),
    (changed(subject="model"), "/subject", "library or framework"),
    (changed(subject_name=None), "/subject_name", "must be a text"),
    (changed(subject="library", subject_name=""), "/subject_name", "of 1 to 63"),
    (changed(name="1own"), "/name", "[a-z][a-z0-9_]*"),
    (changed(comand=["x"]), "/comand", "did you mean 'command'?"),
    (changed(command=[]), "/command", "[program, argument"),
    (changed(command="train.py"), "/command", "array"),
    (changed(command=["a", 1]), "/command/1", "must be a text"),
    ({"name": "own", "variants": []}, "/command", "is missing"),
    (changed(variants=[]), "/variants", "array of 1 to 64"),
    (changed(variants=[{"name": "a"}]), "/no_control", "must say why"),
    (changed(no_control="none"), "/no_control", "but a variant is one"),
    (changed(variants=[{"name": "a", "control": True}] * 2), "/variants/1", "'a' is listed twice"),
    (variant(recipe="TD0"), "/variants/1/recipe", "there is no recipe 'TD0'; did you mean 'TD"),
    (variant(kind="luck"), "/variants/1/kind", "race, entropy, choice or poison"),
    (variant(arguments="x"), "/variants/1/arguments", "array"),
    (variant(enviroment={}), "/variants/1/enviroment", "did you mean 'environment'?"),
    (variant(environment={"A": 1}), "/variants/1/environment/A", "must be a text, or null"),
    (variant(environment={"A=B": "1"}), "/variants/1/environment/A=B", "is not the name"),
    (variant(environment={"REPROD_SEED": "1"}), "/variants/1/environment/REPROD_SEED", "agent sets"),
    (changed(environment={"REPROD_PROBES": None}), "/environment/REPROD_PROBES", "agent sets"),
    (variant(environment={"TF_DETERMINISTIC_OPS": "yes"}),
     "/variants/1/environment/TF_DETERMINISTIC_OPS", "neither 1 nor true"),
    (variant(environment={"PYTHONHASHSEED": "4294967296"}),
     "/variants/1/environment/PYTHONHASHSEED", "Python does not start"),
    (variant(environment={"CUBLAS_WORKSPACE_CONFIG": "4096:8"}),
     "/variants/1/environment/CUBLAS_WORKSPACE_CONFIG", "cuBLAS ignores"),
    (variant(recipe="TDO", environment={"TF_DETERMINISTIC_OPS": None}),
     "/variants/1/environment", "recipe TDO sets it"),
    (variant(recipe="TCD", environment={"TF_CUDNN_USE_AUTOTUNE": "0"}),
     "/variants/1/environment", "must not be set, to any value"),
    ({**variant(recipe="TCD"), "environment": {"TF_USE_CUDNN_AUTOTUNE": "1"}},
     "/variants/1/environment", "must not be set, to any value"),
    (changed(sizes={}), "/sizes", "1 to 64 sizes"),
    (changed(sizes={"Big": []}), "/sizes/Big", "must be a name"),
    (changed(sizes={"small": ["a", None]}), "/sizes/small/1", "must be a text"),
    (changed(backend="cudda"), "/backend", "did you mean 'cuda'?"),
    (changed(timeout_seconds=0), "/timeout_seconds", "from 1 to 86400"),
    (changed(threads=0), "/threads", "from 1 to 256"),
    (changed(survey="no"), "/survey", "true or false"),
    (changed(circumstances=["contention", "heat"]), "/circumstances/1",
     "allocation_jitter, contention or memory_poison"),
    (changed(circumstances=["contention", "contention"]), "/circumstances/1", "listed twice"),
    (changed(version="1"), "/version", "whole number"),
    (changed(summary="x" * 20000), "", "longer than 16384 bytes"),
    (3, "", "must be an object"),
])
def test_a_wrong_configuration(tmp_path, workload, pointer, words):
    refused(tmp_path, {"workloads": [changed(name="before"), workload]},
            f": /workloads/1{pointer}: ", words)


@pytest.mark.parametrize("config, pointer, words", [
    ({"workloads": {}}, ": /workloads: ", "array"),
    ({"workloads": [GOOD_WORKLOAD] * 2}, ": /workloads/1/name: ", "'own' is listed twice"),
    ({"stacks": [{"name": "external"}]}, ": /stacks/0/name: ", "external workloads"),
    ({"workloads": [changed(name="conv_wgrad")]}, ": /workloads/0/name: ",
     "'conv_wgrad' is a workload of reprod"),
    ({"workloads": [changed(name="conv_wgrad", backend="cuda")]}, ": /workloads/0/name: ",
     "'conv_wgrad' is a workload of reprod"),
])
def test_a_configuration_that_clashes(tmp_path, config, pointer, words):
    refused(tmp_path, config, pointer, words)


def refused(folder, config, pointer, words):
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    done = subprocess.run([BUILD / "reprod", "serve", "--config", path, "--no-survey", "--listen",
                           "127.0.0.1:0", "--data", folder / "data"],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert pointer in done.stderr and words in done.stderr, done.stderr


def test_an_agent_refuses_a_wrong_configuration(tmp_path):
    for options, words in (
            (["--stack", "external=/bin/true"], "the stack of external workloads"),
            (["--workload-json", "{"], "--workload-json: "),
            (["--workload-json", json.dumps({**GOOD_WORKLOAD, "name": "X"})],
             "--workload-json: /name: must be a name"),
            (["--workload-json", json.dumps(GOOD_WORKLOAD)], "/directory: must be an absolute"),
            (["--config", str(tmp_path / "none")], "none")):
        done = subprocess.run([BUILD / "reprod", "agent", *options], capture_output=True,
                              text=True, timeout=LIMIT)
        assert done.returncode == 2 and words in done.stderr, done.stderr
