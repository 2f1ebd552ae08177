"""deploy/kubernetes: its files are what Kubernetes' schemas ask for and fit together, and `publish` says in the condition
of a node what reprod preflight found.  No cluster runs here."""
import copy
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from service import BUILD, ROOT
from test_preflight import fleet

yaml = pytest.importorskip("yaml")

FOLDER = ROOT / "deploy" / "kubernetes"
SCHEMAS = json.loads((ROOT / "tests" / "fixtures" / "kubernetes" / "schemas.json").read_text())
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list}
NEVER = "registry.example/"


def faults(value, schema, where):
    """What of VALUE is not as SCHEMA has it."""
    if "$ref" in schema:
        return faults(value, SCHEMAS["definitions"][schema["$ref"]], where)
    if "oneOf" in schema:
        every = [faults(value, each, where) for each in schema["oneOf"]]
        return [] if any(not each for each in every) else every[0]
    wanted = TYPES.get(schema.get("type"), object)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool and wanted is not object):
        return [f"{where}: {value!r} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is none of {schema['enum']}"]
    found = []
    if isinstance(value, dict):
        known, more = schema.get("properties", {}), schema.get("additionalProperties", {})
        found += [f"{where}: {name} is missing" for name in schema.get("required", []) if name not in value]
        for name, each in value.items():
            if name in known:
                found += faults(each, known[name], f"{where}.{name}")
            elif more is False:
                found.append(f"{where}: there is no {name}")
            else:
                found += faults(each, more, f"{where}.{name}")
    if isinstance(value, list):
        for index, each in enumerate(value):
            found += faults(each, schema.get("items", {}), f"{where}[{index}]")
    return found


def objects(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


MANIFESTS = {path.name: objects(path.name) for path in sorted(FOLDER.glob("*.yaml")) if path.name != "kustomization.yaml"}
ALL = [each for every in MANIFESTS.values() for each in every]


def validate(each):
    kind = f"{each.get('apiVersion')} {each.get('kind')}"
    return faults(each, {"$ref": SCHEMAS["kinds"][kind]}, kind) if kind in SCHEMAS["kinds"] else [f"{kind}: no kind in use"]


def pod_of(each):
    """The specification of its pods, or None."""
    return each["spec"] if each["kind"] == "Pod" else each.get("spec", {}).get("template", {}).get("spec")


PODS = {each["metadata"]["name"]: pod_of(each) for each in ALL if pod_of(each)}


def test_every_file_is_as_the_schemas_have_it():
    assert {each["kind"] for each in ALL} >= {"DaemonSet", "Job", "Pod", "StatefulSet", "ClusterRole", "ClusterRoleBinding"}
    for name, every in MANIFESTS.items():
        for each in every:
            assert validate(each) == [], name


@pytest.mark.parametrize("path, value, said", [
    (("spec", "template", "spec", "tolerations", 0, "efect"), "NoSchedule", "there is no efect"),
    (("spec", "template", "spec", "containers", 0, "resources", "limits"), [], "is no object"),
    (("spec", "template", "spec", "containers", 0, "env", 0, "value"), 5, "5 is no string"),
    (("spec", "template", "spec", "hostPID"), "yes", "'yes' is no boolean"),
    (("spec", "selector"), None, "is no object"),
    (("apiVersion",), "apps/v1beta2", "no kind in use"),
])
def test_what_is_wrong_is_found(path, value, said):
    [daemonset] = copy.deepcopy(MANIFESTS["daemonset.yaml"])
    place = daemonset
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    assert any(said in fault for fault in validate(daemonset))


def test_they_fit_together():
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    namespace = kustomization["namespace"]
    assert all((FOLDER / name).is_file() for name in kustomization["resources"])
    assert [each["files"] for each in kustomization["configMapGenerator"]] == [["publish"]]
    accounts = {each["metadata"]["name"] for each in ALL if each["kind"] == "ServiceAccount"}
    for each in ALL:
        assert each["metadata"].get("namespace", namespace) == namespace
        if each["kind"] in ("DaemonSet", "StatefulSet"):
            assert each["spec"]["selector"]["matchLabels"] == each["spec"]["template"]["metadata"]["labels"]
    [binding] = [each for each in ALL if each["kind"] == "ClusterRoleBinding"]
    [role] = [each for each in ALL if each["kind"] == "ClusterRole"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert {subject["name"] for subject in binding["subjects"]} == accounts
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}], "nothing else is asked for"
    maps = {each["name"] for each in kustomization["configMapGenerator"]}
    for name, pod in PODS.items():
        assert pod.get("serviceAccountName") in accounts or name == "training" or pod["automountServiceAccountToken"] is False, name
        volumes = {volume["name"] for volume in pod["volumes"]} | ({"data"} if name == "reprod-reference" else set())
        for volume in pod["volumes"]:
            assert volume.get("configMap", {}).get("optional") or volume.get("configMap", {}).get("name", next(iter(maps))) in maps
        for container in pod["containers"] + pod.get("initContainers", []):
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes, name


def test_no_container_gets_more_than_it_needs():
    image = {f"{each['newName']}:{each['newTag']}" for each in yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["images"]}
    for name, pod in PODS.items():
        assert pod["runtimeClassName"] == "nvidia" and any(t["key"] == "nvidia.com/gpu" for t in pod["tolerations"]), name
        for container in pod["containers"] + pod.get("initContainers", []):
            assert {"requests", "limits"} <= set(container["resources"]), name
            if container["name"] == "training":
                continue
            assert container["image"] in image | {"reprod"}, "one image"
            own = container["securityContext"]
            assert own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"] and own["capabilities"] == {"drop": ["ALL"]}
            assert "privileged" not in own and not any("hostPath" in volume for volume in pod["volumes"])
    assert [name for name, pod in PODS.items() if pod.get("hostPID")] == ["reprod-preflight"]
    assert (ROOT / "VERSION").read_text().strip() in next(iter(image)), "the tag is this version"


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
def test_kustomize_makes_them():
    done = subprocess.run(["kubectl", "kustomize", str(FOLDER)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    [config] = [each for each in made if each["kind"] == "ConfigMap"]
    [daemonset] = [each for each in made if each["kind"] == "DaemonSet"]
    assert all(validate(each) == [] for each in made if each is not config)
    assert config["data"]["publish"] == (FOLDER / "publish").read_text()
    pod = daemonset["spec"]["template"]["spec"]
    assert config["metadata"]["name"] in {volume.get("configMap", {}).get("name") for volume in pod["volumes"]}
    assert pod["containers"][0]["image"].startswith(NEVER)


def on_path(folder, config, **more):
    """An environment in which `reprod preflight` measures CONFIG's devices, with "imagined" as its list."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "reprod.json").write_text(json.dumps(config))
    (folder / "bin" / "reprod").write_text(
        f'#!/bin/sh\ncommand=$1; shift\nexec {BUILD}/reprod "$command" --config {folder}/reprod.json --workload imagined "$@"\n')
    (folder / "bin" / "reprod").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "TMPDIR": str(folder / "tmp"), **more}


@pytest.mark.parametrize("wrong, begins", [pytest.param({}, True, marks=pytest.mark.long), ({"GPU-03": {}}, False)])
def test_a_training_begins_unless_a_device_dissents(tmp_path, wrong, begins):
    """The command of its init container, and that of the job."""
    environment = on_path(tmp_path, fleet(tmp_path, devices=8, wrong=wrong))
    done = subprocess.run(PODS["training"]["initContainers"][0]["command"], env=environment, capture_output=True, text=True)
    assert (done.returncode == 0) == begins and json.loads(done.stdout)["gpus"] == 8, done.stderr
    done = subprocess.run(["reprod", *PODS["reprod-preflight-node"]["containers"][0]["args"]], env=environment,
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0 if begins else 1, "")


class Api(http.server.BaseHTTPRequestHandler):
    """A node's status, as far as a strategic merge patch of a condition has it."""
    def do_PATCH(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        node = self.server.node
        self.server.seen.append((self.path, self.headers["Authorization"], self.headers["Content-Type"], body))
        for condition in body.get("status", {}).get("conditions", []) if self.server.works else []:
            assert faults(condition, {"$ref": SCHEMAS["kinds"]["NodeCondition"]}, "condition") == []
            node["status"]["conditions"] = [each for each in node["status"]["conditions"] if each["type"] != condition["type"]] + [condition]
        text = json.dumps(node).encode()
        self.send_response(200 if self.server.works else 403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture
def api(tmp_path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    server.seen, server.works = [], True
    server.node = {"kind": "Node", "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "token").write_text("secret")
    (tmp_path / "ca.crt").write_text("")
    yield server
    server.shutdown()
    server.server_close()


def stand_in(folder, text):
    """A reprod that does TEXT; $condition is the file of the condition."""
    (folder / "bin" / "reprod").write_text(
        '#!/bin/sh\nwhile [ "$1" != --node-condition ]; do shift; done; condition=$2\n' + text)


def publish(folder, api, config, stub=None, naps=False, **more):
    """STUB: of stand_in.  NAPS: its pauses are short."""
    environment = {**on_path(folder, config, NODE_NAME="node-7", API=f"http://127.0.0.1:{api.server_port}", SECRETS=str(folder),
                             BASELINE=str(folder / "baseline.json")), **more}
    if stub:
        stand_in(folder, stub)
    if naps:
        (folder / "bin" / "sleep").write_text("#!/bin/sh\nexec /bin/sleep 0.2\n")
        (folder / "bin" / "sleep").chmod(0o755)
    return subprocess.Popen(["sh", str(FOLDER / "publish")], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def condition_of(api):
    [one] = [each for each in api.node["status"]["conditions"] if each["type"] == "GpuNumericsOK"]
    return one


def test_the_condition_is_published(tmp_path, api):
    process = publish(tmp_path, api, fleet(tmp_path), EVENTS=str(tmp_path / "events"))
    said, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, ""), said
    assert json.loads(said)["node"] == "node-7"
    assert {seen[:3] for seen in api.seen} == {("/api/v1/nodes/node-7/status", "Bearer secret", "application/strategic-merge-patch+json")}
    assert condition_of(api)["status"] == "True" and len(json.loads((tmp_path / "events").read_text())["events"]) == 3
    # Again, and it has been so since then; then a device becomes wrong.
    condition_of(api)["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    assert publish(tmp_path, api, fleet(tmp_path)).wait(300) == 0
    assert condition_of(api)["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert publish(tmp_path, api, fleet(tmp_path, wrong={"GPU-01": {}})).wait(300) == 1
    assert condition_of(api)["status"] == "False" and condition_of(api)["lastTransitionTime"] != "2026-01-01T00:00:00Z"
    assert {each["type"] for each in api.node["status"]["conditions"]} == {"Ready", "GpuNumericsOK"}
    assert not list((tmp_path / "tmp").iterdir())


def test_what_did_not_run_is_not_known(tmp_path, api):
    (tmp_path / "baseline.json").write_text("{}")
    process = publish(tmp_path, api, fleet(tmp_path))
    said, errors = process.communicate(timeout=300)
    assert (process.returncode, said) == (2, "") and "is no baseline" in errors
    assert (condition_of(api)["status"], condition_of(api)["reason"]) == ("Unknown", "NotRun")


@pytest.mark.long
def test_a_condition_that_cannot_be_written_is_no_success(tmp_path, api):
    api.works = False
    process = publish(tmp_path, api, fleet(tmp_path))
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 3 and json.loads(said)["verdict"] == "passed" and "403" in errors


TRUE = """echo '{"status":{"conditions":[{"type":"GpuNumericsOK","status":"True"}]}}' >"$condition"; """


@pytest.mark.parametrize("text, code", [
    ("kill -9 $$", 137),
    (TRUE + "kill -9 $$", 137),
    (TRUE + "echo '{}'; exit 2", 2),
    ("echo '{}'; exit 1", 1),
])
def test_what_was_known_is_over_where_nothing_came_of_it(tmp_path, api, text, code):
    """The preflight was killed, before or after it wrote; it passed nothing; it could not write."""
    api.node["status"]["conditions"].append({"type": "GpuNumericsOK", "status": "True"})
    process = publish(tmp_path, api, {}, stub=text)
    process.communicate(timeout=300)
    assert (process.returncode, condition_of(api)["status"], condition_of(api)["reason"]) == (code, "Unknown", "NotRun")


def test_what_others_use_stays_as_it_was_known(tmp_path, api):
    api.node["status"]["conditions"].append({"type": "GpuNumericsOK", "status": "True"})
    process = publish(tmp_path, api, {}, stub="rm \"$condition\"; echo '{}'; exit 2")
    process.communicate(timeout=300)
    assert process.returncode == 2 and [seen[3] for seen in api.seen] == [{}]


def test_without_a_place_for_files_nothing_is_known(tmp_path, api):
    process = publish(tmp_path, api, fleet(tmp_path), TMPDIR="/nowhere")
    process.communicate(timeout=300)
    assert process.returncode == 3 and condition_of(api)["reason"] == "NotRun"


@pytest.mark.long
def test_a_condition_that_was_refused_is_said_again(tmp_path, api):
    api.works = False
    process = publish(tmp_path, api, fleet(tmp_path), EVERY="21600", naps=True)
    deadline = time.monotonic() + 300
    while len(api.seen) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    api.works = True
    while len(api.node["status"]["conditions"]) == 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    assert process.returncode == 143 and condition_of(api)["status"] == "True"
    first = next(i for i, seen in enumerate(api.seen) if seen[3])
    assert all(seen[3] == api.seen[first][3] for seen in api.seen[first:first + 3]), "it was not measured anew for that"


def test_every_is_a_number(tmp_path, api):
    process = publish(tmp_path, api, fleet(tmp_path), EVERY="6h")
    assert "EVERY=6h" in process.communicate(timeout=300)[1] and process.returncode == 2 and not api.seen


@pytest.mark.long
def test_it_goes_on_and_can_be_ended(tmp_path, api):
    process = publish(tmp_path, api, fleet(tmp_path), EVERY="1")
    deadline = time.monotonic() + 300
    while len(api.seen) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    assert process.returncode == 143 and not list((tmp_path / "tmp").iterdir())


def test_the_containerfile_takes_what_the_bundle_has():
    text = (FOLDER / "Containerfile").read_text()
    words = [line.split()[0] for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    assert words == ["FROM", "RUN", "ADD", "RUN", "ENV", "USER", "ENTRYPOINT"]
    version = (ROOT / "VERSION").read_text().strip()
    [pattern] = re.findall(r"^ADD (\S+)", text, re.M)
    name = f"reprod-{version}-linux-x86_64.tar.gz"
    assert re.fullmatch(pattern.replace(".", r"\.").replace("*", ".*"), name)
    assert f"reprod:{version}" in text and "check-host" in (ROOT / "deploy" / "make-bundle").read_text()
    [pod] = [pod for name, pod in PODS.items() if name == "reprod-preflight-node"]
    assert f"USER {pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" in text
