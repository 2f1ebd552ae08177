#!/usr/bin/env python3
"""How long GET /v1/compare takes for two traces of 1,000 steps of 60 places that part half way,
end to end through HTTP.  Usage: REPROD_BUILD=build tests/bench/compare.py [REQUESTS]"""
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from traces import run_pair, trace_service  # noqa: E402


def main(requests=50):
    with tempfile.TemporaryDirectory() as folder:
        service = trace_service(pathlib.Path(folder)).start()
        a, b = run_pair(service, "trace_large")
        for suffix in ("", ".txt"):
            times = []
            for _ in range(requests):
                began = time.perf_counter()
                service.get(f"/v1/compare{suffix}?a={a['id']}&b={b['id']}")
                times.append((time.perf_counter() - began) * 1000)
            times.sort()
            print(f"{'text' if suffix else 'JSON'}: {requests} requests, "
                  f"{a['trace']['records']} records each: min {times[0]:.1f} ms, "
                  f"median {times[requests // 2]:.1f} ms, max {times[-1]:.1f} ms")
        service.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
