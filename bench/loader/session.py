"""The Python side of the loader bench: the protocol of ours.mjs, one JSON object per line. A module
that is named on the command line makes the loader:

    about()              -> versions; raises ImportError when a package is not there
    open_loader(job)     -> (iterator of batches, function that closes it)
    image_of(batch)      -> the photos, a NumPy array [batch, 3, height, width]
"""

import importlib
import os
import platform
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "backends"))
from protocol import serve, summary  # noqa: E402


def anonymous_mib():
    """Memory of this process that is of no file."""
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return sum(int(fields[name].split()[0]) for name in ("RssAnon", "RssShmem")) / 1024


BARE_MIB = anonymous_mib()  # before any package is loaded


class Job:
    def __init__(self, request):
        self.folder = request["workload"]
        self.store = os.path.join(request["target"], "store")
        self.target = request["target"]
        self.variant = request["variant"]
        self.mode = request["mode"]
        self.batch = request["batch"]
        self.seed = request["seed"]


def run_for(turn, seconds, turns_min):
    """Seconds of each turn: from asking for a batch until the consumer is done with it."""
    clock = time.perf_counter
    times = []
    start = last = clock()
    while last - start < seconds or len(times) < turns_min:
        turn()
        now = clock()
        times.append(now - last)
        last = now
    return times


def times_of(times):
    facts = summary(times)
    batches = facts.pop("calls")
    return {"batches": batches, "batchesPerS": batches / facts["seconds"], **facts}


class Session:
    def __init__(self, module):
        self.module = module
        self.batches = self.close_loader = None

    def about(self, request):
        return {"python": platform.python_version(), **self.module.about()}

    def check(self, request):
        from photos import Photos

        photos = Photos(request["workload"], getattr(self.module, "corrects", lambda _: False)(request["mode"]))
        batches, close = self.module.open_loader(Job(request))
        for _ in range(request["batches"]):
            photos.check(self.module.image_of(next(batches)), request["batch"])
        close()
        return {"hash": photos.hash()}

    def turn(self):
        consume(self.module.image_of(next(self.batches)))

    def start(self, request):
        base = anonymous_mib()
        self.batches, self.close_loader = self.module.open_loader(Job(request))
        run_for(self.turn, request["seconds"], request["batches"])
        return {"bareMib": BARE_MIB, "baseMib": base}

    def time(self, request):
        return times_of(run_for(self.turn, request["seconds"], request["batches"]))

    hold = time

    def close(self, request):
        self.batches = None
        self.close_loader()
        return {}


def consume(image):
    """Reads one byte of each page."""
    return int(image.reshape(-1)[::4096].sum())


if __name__ == "__main__":
    # By name, from this folder: processes that the loader spawns must be able to import it as well.
    serve(lambda: importlib.import_module(sys.argv[1]), Session)
