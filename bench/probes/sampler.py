"""Index sequences over a million records, µs per batch: Python loaderx 2.4 and NumPy. For cyclic NumPy
permutes all indices, a cost that is spread over the batches of a cycle."""

import statistics
import time

import numpy as np
from loaderx.zsampler import Sampler

LENGTH = 1_000_000
CALLS_PER_BLOCK = 100


def per_call(seconds, draw):
    clock = time.perf_counter
    for _ in range(CALLS_PER_BLOCK * 3):
        draw()
    times, end = [], clock() + seconds
    while clock() < end or len(times) < 5:
        start = clock()
        for _ in range(CALLS_PER_BLOCK):
            draw()
        times.append((clock() - start) * 1e6 / CALLS_PER_BLOCK)
    return statistics.median(times)


def permuted(batch, seconds, rng):
    clock = time.perf_counter
    times, end, count = [], clock() + seconds, LENGTH // batch
    while clock() < end or len(times) < 3:
        start = clock()
        indices = rng.permutation(LENGTH)
        for number in range(count):
            indices[number * batch:(number + 1) * batch]
        times.append((clock() - start) * 1e6 / count)
    return statistics.median(times)


def measure(request):
    us, seconds = {}, request["seconds"]
    modes = {"sequential": Sampler.Mode.SEQUENTIAL, "iid": Sampler.Mode.IID, "cyclic": Sampler.Mode.CYCLIC}
    for batch in request["batches"]:
        for name, mode in modes.items():
            sampler = Sampler(LENGTH, batch, mode, seed=42)
            us[f"loaderx {name} {batch}"] = per_call(seconds, sampler.next)
        rng = np.random.default_rng(42)
        us[f"numpy iid {batch}"] = per_call(
            seconds, lambda: rng.integers(0, LENGTH, batch, dtype=np.uint64)
        )
        us[f"numpy cyclic {batch}"] = permuted(batch, seconds, rng)
    return {"us": us}
