"""What is refused: requests for jobs, requests that can be read in two ways, configurations and
command lines.  None of them makes anything."""
PASS = {"workloads": ["selftest_pass"]}
LOCALISE = {**PASS, "variants": ["unordered"], "localise": True}
NO_COUNTS = (0, -1, 1.5, "5", None, True, [], {}, 100001, 10 ** 12 + 1)
NO_STEPS = (1, [], [1], [2, 1], [-1, 2], [1, 2, 3], ["1", "2"], None)
NO_NAMES = (None, 7, "selftest_pass", [], [7], [None], [""], ["a" * 300], ["selftest_pass"] * 2,
            ["selftest_pas"], ["x", "y"], {})

JOBS = (
    [], "a text", 7, None, {"workload": ["selftest_pass"]}, {"run": 5}, {"a/b~c": 5}, {"": 1},
    {"workloads": ["selftest_pass", "selftest_pas"]}, {"variants": ["orderd"]},
    {**PASS, "variants": ["counted"]}, {"sizes": ["smal"]}, {"dtypes": ["float33"]},
    {"devices": ["cpu:nowhere-at-all"]}, {"devices": ["cpu:pretent"]}, {"stacks": ["cpus"]},
    {"stacks": ["cpu", "tree"]}, {"stacks": ["missing"]}, {"stacks": "cpu"}, {"stacks": 7},
    {"stacks": []}, {"workloads": ["no_gpu"]}, {"workloads": ["good"]},
    {**PASS, "sizes": ["large"]}, {**PASS, "dtypes": ["float16"]}, {**PASS, "stacks": ["plain"]},
    {**PASS, "stacks": ["traces"]}, {"devices": ["cpu:pretend"], "stacks": ["cpu"]},
    {"workloads": ["x", "y"], "devices": ["z"], "runs": 0, "seed": -1, "more": 1},
    {"workloads": [f"w{i}" for i in range(120)]},
    {**PASS, "runs": 100000, "iterations": 1, "seeds": list(range(900))},
    {**PASS, "seeds": list(range(6000))},
    {"workloads": [{"name": "x", "command": ["true"]}]}, {"command": ["true"]},
    {**PASS, "priority": "urgent"}, {**PASS, "priority": "backgroud"}, {**PASS, "priority": 1},
    {**PASS, "survey": 1}, {**PASS, "stop_when_varies": "yes"}, {**PASS, "note": 7},
    {**PASS, "note": "x" * 3000}, {**PASS, "seed": "18446744073709551616"},
    {**PASS, "seed": "007x"}, {**PASS, "seed": 1, "seeds": [2]}, {**PASS, "seeds": []},
    {**PASS, "seeds": [1, -1, "x", 1.5, None]}, {**PASS, "seeds": 3}, {**PASS, "seed": None},
    {**PASS, "runs_max": 7}, {**PASS, "localise": 1},
    {**PASS, "localise": True}, {"variants": ["ordered"], "localise": True},
    {**LOCALISE, "seeds": [1, 2, 3]}, {**LOCALISE, "runs": 1}, {**LOCALISE, "runs_max": 20000},
    {**LOCALISE, "runs": 9, "runs_max": 8}, {**LOCALISE, "stop_when_varies": True},
    {**LOCALISE, "survey": True}, {**LOCALISE, "probes": False}, {**LOCALISE, "stacks": "all"},
    {**LOCALISE, "workloads": ["selftest_pass", "selftest_claims"]},
    {**PASS, "contentions": 4}, {**PASS, "probe": True}, {**PASS, "memory_poison": "0BADCAFE"},
    {**PASS, "memory_poison": "random"}, {**PASS, "memory_poison": 1},
    {**PASS, "allocation_jitter": 7}, {**PASS, "allocation_jitter": "18446744073709551616"},
    {**PASS, "allocation_jitter": "007"}, {**PASS, "probes": {"names": ""}},
    {**PASS, "probes": {"names": "-x"}}, {**PASS, "probes": {"names": 7}},
    {**PASS, "probes": {"names": "x" * 129}}, {**PASS, "probes": {"name": "x"}},
    *({**PASS, name: value} for name in ("runs", "iterations", "timeout_seconds", "contention",
                                         "probes") for value in NO_COUNTS
      if (name, value) not in (("timeout_seconds", 1.5), ("timeout_seconds", 10 ** 12 + 1),
                               ("probes", True), ("probes", 100001), ("probes", {}))),
    *({**PASS, "probes": {"every": value}} for value in NO_COUNTS if value != 100001),
    *({**PASS, "probes": {"steps": value}} for value in NO_STEPS),
    *({name: value} for name in ("workloads", "variants", "sizes", "dtypes", "devices")
      for value in NO_NAMES if (name, value) != ("variants", {})),
)
# Bodies that are not JSON, or not what JSON may hold here.
MALFORMED = (
    "", "{", '{"runs":1,}', "nonsense", '{"runs":1,"runs":2}', '{"runs":1}{}', "\x00",
    '{"note":"\\ud800"}', '{"note":"a\\u0000b"}', '{"seed":99999999999999999999}',
    '{"seed":9223372036854775808}', '{"seed":1e999}', '{"workloads":' + "[" * 40 + "]" * 40 + "}",
    "[" * 10000, b'{"note":"\xff"}', '{"note":"x"} x', "null", "[1", '{"a" 1}',
)
TYPES = ("text/plain", "multipart/form-data; boundary=x", "application/xml",
         "application/json; charset=utf-8", "application/x-www-form-urlencoded", "")
KEYS = (b"k" * 256, "schlüssel".encode(), b"")
FOREIGN = ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "https://localhost"},
           {"Origin": "http://localhost:1"}, {"Host": "evil.example"}, {"Host": "192.168.0.1"},
           {"Host": "localhost.evil.example"}, {"Sec-Fetch-Site": "cross-site"})

LOCAL = b"Host: localhost\r\n"
NEXT = b"GET /healthz HTTP/1.1\r\n" + LOCAL + b"Connection: close\r\n\r\n"
HEADS = tuple(head + NEXT for head in (
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL
    + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Transfer-Encoding: gzip\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n" + LOCAL + LOCAL + b"\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\n", b"GET /healthz HTTP/1.0\r\n\r\n",
    b"GET /healthz%00.txt HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"GET /healthz\0.txt HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"GET /v1/jobs?limit=%00 HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"GET /v1/jobs%zz HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"GET /v1/jobs%0d%0aX:y HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Content-Length: +2\r\n\r\n{}",
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Content-Length: 1048577\r\n\r\n",
    b"GET http://evil.example/v1/jobs HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"GET http://localhost/healthz HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"OPTIONS * HTTP/1.1\r\n" + LOCAL + b"\r\n", b"",
    b"GET /healthz?a=1#b HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"GET /healthz HTTP/1.1\r\n" + LOCAL + b"Content-Length: 5\r\n\r\nhello",
))

# What an agent may not say first.
STACK = {"name": "cpu", "worker": "/w", "library_path": None, "catalogue": [], "cause": None,
         "probe": {"v": 1, "backend": "cpu", "worker_build": "b", "versions": {}, "cause": None,
                   "devices": [{"id": "cpu:x", "model": "m", "attributes": {}}], "problems": {}}}


def _hello(stack=None, **members):
    hello = {"event": "hello", "v": 1, "host": "x", "pid": 1, "boot_id": "b", "build": "1",
             "stacks": [{**STACK, **(stack or {})}], **members}
    return {name: value for name, value in hello.items() if value is not None}


def _device(**members):
    return {"probe": {**STACK["probe"], "devices": [{"id": "d", "model": "m", **members}]}}


def _entry(**members):
    return {"catalogue": [{
        "workload": "w", "version": 1, "backend": "cpu", "title": "t", "summary": "s",
        "variants": [{"name": "v", "summary": "s", "models": "m", "algorithm": "a", "claim": None,
                      "control": True}], "sizes": [{"name": "small", "description": "d"}],
        "dtypes": ["float32"], "weight_sum": "w", "loss": None, "no_control": None, **members}]}


HELLOS = (
    "nonsense", "{", [1], {"event": "started", "run": "x"}, _hello(event="other"), _hello(v=2),
    *({name: value for name, value in _hello().items() if name != gone}
      for gone in ("v", "host", "boot_id", "stacks")),
    _hello(host=7), _hello(host="h" * 300), _hello(boot_id="b" * 70), _hello(stacks={}),
    _hello(stacks=[7]), _hello(stacks=[STACK] * 300), _hello({"name": ""}),
    _hello({"name": "a" * 70}), _hello(_device(id="d" * 300)), _hello(_entry(workload=7)),
    _hello(_entry(workload="w" * 70)), _hello(_entry(title="t" * 40000)),
)

OWN = {"name": "own", "command": ["true"], "subject": "framework", "subject_name": "own", "directory": "/",
       "variants": [{"name": "a", "control": True}, {"name": "b"}]}


def _variant(**members):
    return {**OWN, "variants": [{"name": "a", "control": True}, {"name": "b", **members}]}


CONFIGURATIONS = (
    '{"data": "a", "data": "b"}', '{"data": ', [], {"listn": "127.0.0.1:1"},
    {"listen": "localhost:1"}, {"listen": "127.0.0.1:70000"}, {"listen": 7357}, {"data": ""},
    {"survey": "yes"}, {"stale_after_hours": -1}, {"stale_after_hours": 1.5},
    {"connection_limit": 7}, {"grace_ms": 600001}, {"stacks": {}}, {"stacks": [{"worker": "/x"}]},
    {"stacks": [{"name": "a", "wrker": "/x"}]}, {"stacks": [{"name": "a", "threads": 0}]},
    {"stacks": [{"name": "a", "env": {"X": 1}}]}, {"stacks": [{"name": 64 * "a"}]},
    {"stacks": [{"name": "a", "env": {"TF_DETERMINISTIC_OPS": "yes"}}]},
    {"stacks": [{"name": "external"}]}, {"hosts": [{"name": "a"}]}, {"profiles": [7]},
    {"hosts": [{"name": "a", "launch": [1]}]}, {"hosts": [{"name": 256 * "a", "launch": ["a"]}]},
    {"profiles": ["/no/such/file"]}, {"gpu_reports": ["/no/such/file"]}, {"workloads": {}},
    {"workloads": [OWN] * 2}, *({"workloads": [OWN, workload]} for workload in (
        3, {**OWN, "name": "Own"}, {**OWN, "comand": ["x"]}, {**OWN, "command": []},
        {**OWN, "command": ["a", 1]}, {**OWN, "subject": "libary"}, {**OWN, "subject": "library"},
        {"name": "x", "variants": []}, {**OWN, "variants": []},
        {**OWN, "variants": [{"name": "a"}]}, {**OWN, "no_control": "none"},
        {**OWN, "variants": [{"name": "a", "control": True}] * 2}, _variant(recipe="TD0"),
        _variant(arguments="x"), _variant(enviroment={}), _variant(environment={"A": 1}),
        _variant(environment={"REPROD_SEED": "1"}), _variant(environment={"A=B": "1"}),
        _variant(environment={"TF_DETERMINISTIC_OPS": "yes"}),
        _variant(environment={"PYTHONHASHSEED": "4294967296"}),
        _variant(environment={"CUBLAS_WORKSPACE_CONFIG": "4096:8"}),
        _variant(recipe="TDO", environment={"TF_DETERMINISTIC_OPS": None}), {**OWN, "sizes": {}},
        {**OWN, "sizes": {"Big": []}}, {**OWN, "sizes": {"small": ["a", None]}},
        {**OWN, "backend": "cudda"}, {**OWN, "timeout_seconds": 0}, {**OWN, "threads": 0},
        {**OWN, "survey": "no"}, {**OWN, "version": "1"}, {**OWN, "summary": "x" * 20000})),
)
COMMAND_LINES = (
    (), ("--help",), ("-h",), ("help",), ("version",), ("--version",), ("sreve",),
    ("serve", "--help"), ("agent", "--help"), ("backup", "--help"), ("fsck", "--help"),
    ("serve", "--listen"), ("serve", "--listen", "x"), ("serve", "--listen", "0.0.0.0:0"),
    ("serve", "--datta", "x"), ("serve", "serve"), ("serve", "--config", "nowhere.json"),
    ("serve", "--data", "/no/such/folder"), ("fsck", "--data", "/no/such/folder"), ("fsck", "x"),
    ("backup",), ("backup", "--data", "/no/such/folder", "/no/such/file"), ("agent", "x"),
    ("agent", "--stack", "external=/bin/true"), ("agent", "--stack", "x"),
    ("agent", "--workload-json", "{"), ("agent", "--config", "nowhere.json"),
)
WORKER_LINES = (
    ("--help",), ("--version",), (), ("--nothing",), ("--run",), ("--run", "--workload", "none"),
    ("--run", "--workload", "conv_wgrd"), ("--run", "--workload", "conv_wgrad", "--variant", "x"),
    ("--run", "--workload", "conv_wgrad", "--size", "x"),
    ("--run", "--workload", "conv_wgrad", "--dtype", "x"),
    ("--run", "--workload", "conv_wgrad", "--iterations", "0"),
    ("--run", "--workload", "conv_wgrad", "--iterations", "1001"),
    ("--run", "--workload", "conv_wgrad", "--seed", "x"),
    ("--run", "--workload", "conv_wgrad", "--device", "cpu:elsewhere"),
    ("--run", "--workload", "conv_wgrad", "--probes", "x"),
    ("--run", "--workload", "conv_wgrad", "--capture", "x"),
    ("--run", "--workload", "conv_wgrad", "--memory-poison", "x"),
    ("--run", "--workload", "conv_wgrad", "--allocation-jitter", "x"),
    ("--run", "--workload", "conv_wgrad", "--contention", "65"),
    ("--check", "--workload", "none"), ("--load", "--device", "cpu:elsewhere"),
)
