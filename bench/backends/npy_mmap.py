"""NumPy alone: an .npy file mapped. Dense: fancy indexing; ragged: the slices that the offsets name,
copied. `kept`: np.take into the same array."""

import numpy as np


def about():
    return {}


def prepare_write(job):
    items = job.workload.items

    def run():
        np.save(job.target + "/items.npy", items)
        if not job.workload.is_dense:
            np.save(job.target + "/offsets.npy", job.workload.offsets)
            np.save(job.target + "/shapes.npy", job.workload.shapes)

    return run


def open_store(job):
    workload = job.workload
    # A plain array over the map: np.memmap would make each slice a slower subclass.
    items = np.asarray(np.load(job.target + "/items.npy", mmap_mode="r"))
    if workload.is_dense:
        kept = workload.new_batch(workload.batch)

        def into(ids):
            return np.take(items, ids, axis=0, out=kept[:len(ids)], mode="clip")

        return {"fresh": lambda ids: items[ids], "kept": into}
    offsets = np.load(job.target + "/offsets.npy").tolist()
    shapes = np.load(job.target + "/shapes.npy")
    if workload.ndim == 1:
        return {
            "fresh": lambda ids: [items[offsets[id]:offsets[id + 1]].copy() for id in ids.tolist()]
        }
    shapes = [tuple(shape) for shape in shapes.tolist()]
    return {
        "fresh": lambda ids: [
            items[offsets[id]:offsets[id + 1]].reshape(shapes[id]).copy() for id in ids.tolist()
        ]
    }
