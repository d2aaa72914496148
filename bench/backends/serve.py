"""The Python side of the bench's protocol (README.md), as serve.mjs is the Node side.

A backend module defines:

    about()                          -> versions; raises ImportError when a package is not there
    prepare_write(job)               -> the function whose time is the write
    open_store(job)                  -> {mode: gather}, gather(ids) -> array or list of arrays
    IDS                              dtype of the ids it gets (uint32 unless given)
"""

import importlib.util
import json
import os
import platform
import shutil
import sys
import time

import numpy as np
from protocol import serve, summary

CALLS_MIN = 5  # a slow backend is timed this often at least
WARM_SHARE = 0.2  # of the wanted seconds; not recorded


class Workload:
    """A prepared workload; workload.mjs describes the folder."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "workload.json")) as file:
            facts = json.load(file)
        self.name = facts["name"]
        self.is_dense = facts["geometry"] == "dense"
        self.dtype = np.dtype(facts["dtype"])
        self.records = facts["records"]
        self.batch = facts["batch"]
        self.payload_bytes = facts["payload_bytes"]
        self.item_shape = tuple(facts.get("item_shape", ()))
        self.ndim = facts.get("ndim", len(self.item_shape))
        self._items = None
        self._arrays = None
        if self.is_dense:
            record_items = int(np.prod(self.item_shape, dtype=np.int64))
            self.offsets = np.arange(self.records + 1, dtype=np.int64) * record_items
            self.shapes = None
        else:
            self.offsets = self._load("offsets")
            self.shapes = self._load("shapes")
        self.sizes = np.diff(self.offsets) * self.dtype.itemsize

    def _load(self, name, **options):
        return np.load(os.path.join(self.folder, name + ".npy"), **options)

    @property
    def items(self):
        """In memory: dense [records, *item_shape], ragged all items."""
        if self._items is None:
            self._items = self._load("records" if self.is_dense else "values")
        return self._items

    def record(self, id):
        if self.is_dense:
            return self.items[id]
        return self.items[self.offsets[id]:self.offsets[id + 1]].reshape(self.shapes[id])

    def arrays(self):
        """Every record, made once."""
        if self._arrays is None:
            self._arrays = [self.record(id) for id in range(self.records)]
        return self._arrays

    def packed(self, id):
        """What is stored under a key: the items; ragged, the sizes as u32 before them."""
        if self.is_dense:
            return self.items[id].tobytes()
        return self.shapes[id].astype("<u4").tobytes() + self.record(id).tobytes()

    def unpacked(self, stored):
        """A ragged record of its own memory, from its stored bytes."""
        shape = np.frombuffer(stored, "<u4", self.ndim)
        return np.frombuffer(stored, self.dtype, offset=self.ndim * 4).reshape(shape).copy()

    def plan(self, which):
        return self._load("plan_" + which)

    def new_batch(self, count):
        """Dense, untouched memory."""
        return np.empty((count, *self.item_shape), self.dtype)


class Job:
    # Of the last request, with what it has in memory, as in serve.mjs.
    latest = None

    def __init__(self, request):
        folder = request["workload"]
        if Job.latest is None or Job.latest.folder != folder:
            Job.latest = Workload(folder)
        self.workload = Job.latest
        self.target = request["target"]
        self.variant = request["variant"]


def check(workload, gather, ids):
    batch = gather(ids)
    if len(batch) != len(ids):
        raise ValueError(f"{len(batch)} records for {len(ids)} ids")
    for index, id in enumerate(ids.tolist()):
        expected, got = workload.record(id), batch[index]
        if got.dtype != workload.dtype or got.shape != expected.shape:
            raise ValueError(f"record {id} is {got.dtype} {got.shape}, not {expected.shape}")
        if not np.array_equal(got, expected):
            raise ValueError(f"record {id}, asked for at {index}, differs")


def verify(workload, gather, ids_dtype, seconds_max):
    """The check plan, then every record once, in order: dtype, shape, order and each value. It ends
    early after `seconds_max`, for backends that would take minutes."""
    end = time.perf_counter() + seconds_max
    plan = workload.plan("check").astype(ids_dtype)
    for ids in plan:
        check(workload, gather, ids)
    swept = 0
    while swept < workload.records and time.perf_counter() < end:
        until = min(swept + workload.batch, workload.records)
        check(workload, gather, np.arange(swept, until, dtype=ids_dtype))
        swept = until
    return {"records": plan.size + swept, "isWhole": swept == workload.records}


def timed(gather, plan, start, seconds):
    clock = time.perf_counter
    times, total, number, count = [], 0.0, start, len(plan)
    while total < seconds or len(times) < CALLS_MIN:
        ids = plan[number % count]
        begin = clock()
        batch = gather(ids)
        elapsed = clock() - begin
        del batch
        times.append(elapsed)
        total += elapsed
        number += 1
    return times, number


def measure(workload, gather, plan, seconds, start):
    _, start = timed(gather, plan, start, seconds * WARM_SHARE)
    times, end = timed(gather, plan, start, seconds)
    size = sum(int(workload.sizes[plan[number % len(plan)]].sum()) for number in range(start, end))
    return {**summary(times), "records": len(times) * workload.batch, "bytes": size}


class Session:
    def __init__(self, backend):
        self.backend = backend
        self.ids_dtype = getattr(backend, "IDS", np.uint32)
        self.workload = self.modes = self.plan = None

    def about(self, request):
        versions = {"python": platform.python_version(), "numpy": np.__version__}
        return {**versions, **self.backend.about()}

    def write(self, request):
        job = Job(request)
        first = self._written(job)
        if "seconds" not in request:
            return {"seconds": first, "builds": 1}
        # Timed as gathers are: what came first has warmed code and memory, if it took long enough.
        if first < request["seconds"] * WARM_SHARE:
            self._writes(job, request["seconds"] * WARM_SHARE - first)
        return self._writes(job, request["seconds"])

    def _writes(self, job, seconds_min):
        """Builds that take `seconds_min` together, each in place of the one before."""
        seconds, builds = 0.0, 0
        while seconds < seconds_min or builds == 0:
            shutil.rmtree(job.target)
            os.mkdir(job.target)
            seconds += self._written(job)
            builds += 1
        return {"seconds": seconds, "builds": builds}

    def _written(self, job):
        run = self.backend.prepare_write(job)
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    def open(self, request):
        job = Job(request)
        self.workload = job.workload
        self.modes = self.backend.open_store(job)
        self.plan = self.workload.plan("time").astype(self.ids_dtype)
        return {"records": self.workload.records}

    def verify(self, request):
        gather = self.modes[request["mode"]]
        return verify(self.workload, gather, self.ids_dtype, request["secondsMax"])

    def gather(self, request):
        gather = self.modes[request["mode"]]
        return measure(
            self.workload, gather, self.plan, request["seconds"], request.get("from", 0)
        )

    def measure(self, request):
        """A probe: whatever the module measures."""
        return self.backend.measure(request)

    def close(self, request):
        self.modes = None
        return {}


def load_module():
    # By path: a probe lies in another folder than this file, which imports find by itself.
    spec = importlib.util.spec_from_file_location("backend", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    serve(load_module, Session)
