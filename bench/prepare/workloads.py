"""The prepared corpora -> DATA/workloads/<name>/, the only thing that a backend reads; workload.mjs
describes the folders.

    python workloads.py DATA      reads DATA/corpus and DATA/vision, what there is of them

Plans are uniform with replacement and the same for every backend."""

import json
import os
import sys

import numpy as np

data = sys.argv[1]
BATCH = 256
CHECK_BATCHES = 4
# Enough for seconds of the fastest backend without coming round too often.
LARGE_BATCHES, SMALL_BATCHES = 2048, 40_000


def folder_of(name):
    folder = os.path.join(data, "workloads", name)
    os.makedirs(folder, exist_ok=True)
    return folder


def link(source, target):
    if os.path.lexists(target):
        os.remove(target)
    os.symlink(os.path.relpath(source, os.path.dirname(target)), target)


def finish(name, facts, batches):
    folder = folder_of(name)
    for plan, seed, count in (("check", 42, CHECK_BATCHES), ("time", 43, batches)):
        random = np.random.Generator(np.random.PCG64(seed))
        ids = random.integers(0, facts["records"], size=(count, BATCH), dtype=np.uint32)
        np.save(f"{folder}/plan_{plan}.npy", ids)
    facts = {"name": name, **facts, "batch": BATCH}
    # Last: a folder without it is not a workload.
    with open(folder + "/workload.json", "w") as file:
        json.dump(facts, file, indent=1)
    print(json.dumps(facts))


def dense(name, array, batches, source=None):
    target = folder_of(name) + "/records.npy"
    link(source, target) if source else np.save(target, array)
    facts = {
        "geometry": "dense",
        "dtype": array.dtype.str,
        "itemsize": array.dtype.itemsize,
        "records": len(array),
        "item_shape": list(array.shape[1:]),
        "payload_bytes": int(array.nbytes),
    }
    finish(name, facts, batches)


def ragged(name, values, offsets, shapes, batches, source=None):
    folder = folder_of(name)
    link(source, folder + "/values.npy") if source else np.save(folder + "/values.npy", values)
    np.save(folder + "/offsets.npy", offsets.astype(np.int64))
    np.save(folder + "/shapes.npy", shapes.astype(np.int64))
    lengths = np.diff(offsets)
    facts = {
        "geometry": "ragged",
        "dtype": values.dtype.str,
        "itemsize": values.dtype.itemsize,
        "records": len(offsets) - 1,
        "ndim": int(shapes.shape[1]),
        "payload_bytes": int(values.nbytes),
        "items_p10_p50_mean_p90": [
            float(np.percentile(lengths, 10)), float(np.median(lengths)), float(lengths.mean()),
            float(np.percentile(lengths, 90)),
        ],
    }
    finish(name, facts, batches)


def token_bounds(offsets, count=200_000):
    """Whole paragraphs, joined up to drawn lengths of 16..512, so that records end where text does."""
    random = np.random.Generator(np.random.PCG64(7))
    targets = np.clip(random.gamma(1.35, 78.0, size=len(offsets)), 16, 480).astype(np.int64)
    bounds, start, index = [0], 0, 1
    ends = offsets.tolist()
    while index < len(ends) and len(bounds) <= count:
        target = targets[len(bounds) - 1]
        while index < len(ends) and ends[index] - start < target and (
            index + 1 >= len(ends) or ends[index + 1] - start <= 512
        ):
            index += 1
        if index >= len(ends):
            break
        start = ends[index]
        bounds.append(start)
        index += 1
    return np.array(bounds, dtype=np.int64)


def photos():
    path = data + "/vision/vision_dense.npy"
    dense("vision_dense", np.load(path, mmap_mode="r"), LARGE_BATCHES, path)
    path = data + "/vision/vision_ragged"
    offsets, shapes = np.load(path + "_offsets.npy"), np.load(path + "_shapes.npy")
    values = path + "_values.npy"
    ragged("vision_ragged", np.load(values, mmap_mode="r"), offsets, shapes, LARGE_BATCHES, values)
    dense("mnist_dense", np.load(data + "/vision/mnist.npy"), SMALL_BATCHES)


def tokens():
    values = np.load(data + "/corpus/tokens.npy")
    count = len(values) // 512
    dense("tokens_dense", values[:count * 512].reshape(count, 512), SMALL_BATCHES)
    bounds = token_bounds(np.load(data + "/corpus/offsets.npy"))
    ragged("tokens_ragged", values[:bounds[-1]], bounds, np.diff(bounds)[:, None], SMALL_BATCHES)


if os.path.exists(data + "/vision/vision.json"):
    photos()
if os.path.exists(data + "/corpus/tokens.json"):
    tokens()
