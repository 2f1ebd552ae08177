"""A command whose runs take a while, so that they can be cut off: `ordered` gives the bits of its seed, `unordered` others
each time."""
import hashlib
import json
import os
import time


def digest(text):
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


get = os.environ.__getitem__
seed, iterations, variant, device = get("REPROD_SEED"), int(get("REPROD_ITERATIONS")), get("REPROD_VARIANT"), get("REPROD_DEVICE")
inputs = digest("inputs of " + seed)
out = os.fdopen(3, "w")


def say(event, **members):
    print(json.dumps({"event": event, **members}), file=out, flush=True)


say("start", v=1, pid=os.getpid(), nonce=get("REPROD_NONCE"), workload=get("REPROD_WORKLOAD"), version=int(get("REPROD_VERSION")),
    variant=variant, size=get("REPROD_SIZE"), dtype=get("REPROD_DTYPE"), seed=seed, iterations=iterations, threads=1,
    backend="cpu", device=device, algorithm="paced", claim=None, input_digest=inputs, environment={"paced": 1}, libraries=[])
for i in range(iterations):
    time.sleep(0.2)
    result = os.urandom(16).hex() if variant == "unordered" else "result of " + seed
    say("iteration", i=i, digest=digest(result), weight_sum="3ff0000000000000", loss=None, ms=200.0, algorithm="paced")
say("end", outcome="completed", cause=None, iterations=iterations, elements=1, bytes_hashed=16 * iterations, device=device,
    input_digest=inputs)
