"""What both benches' Python sides share: the line protocol (../README.md), and the summary of times."""

import json
import sys
import traceback


def serve(module_loader, session):
    """Answers the requests of stdin, one JSON object per line, until it ends. `module_loader()` gives
    the backend module; when it fails, the first request gets the reason."""
    try:
        operations = session(module_loader())
    except Exception:
        print(json.dumps({"error": traceback.format_exc()}), flush=True)
        sys.exit(1)
    for line in sys.stdin:
        try:
            request = json.loads(line)
            answer = {"result": getattr(operations, request["op"])(request)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


def summary(times):
    """Of seconds."""
    ordered = sorted(times)
    total = sum(ordered)

    def at(share):
        return ordered[int((len(ordered) - 1) * share)] * 1000

    return {
        "calls": len(times),
        "seconds": total,
        "minMs": at(0),
        "p50Ms": at(0.5),
        "p95Ms": at(0.95),
        "meanMs": total / len(times) * 1000,
    }
