"""Python loaderx 2.8. A batch is a DLPack tensor, ragged a packed batch: `fresh` makes arrays of it,
as the contract of this bench wants."""

import loaderx
import numpy as np
from loaderx import Allocator, dtypes
from loaderx.zrecord import (
    DenseStore, DenseWriter, RaggedBatch, RaggedStore, RaggedWriter, train_dict,
)

IDS = np.uint64
DTYPES = {"<i4": "int32", "|u1": "uint8"}


def about():
    return {"loaderx": loaderx.__version__}


def _raw_twin(job):
    """A raw store of the same records: dictionaries are trained on stores."""
    path = job.target + "/twin"
    _write(job, path, {"codec": "raw"})()
    return path


def _write(job, path, options):
    workload = job.workload
    dtype = getattr(dtypes, DTYPES[workload.dtype.str])
    if workload.is_dense:
        store = DenseWriter(path, dtype, workload.item_shape, **options)
        source = workload.items
    else:
        store = RaggedWriter(path, dtype, workload.ndim, **options)
        source = workload.arrays()

    def run():
        store.append(source if workload.is_dense else RaggedBatch.from_records(source))
        store.close()

    return run


def prepare_write(job):
    options = {"codec": job.variant}
    if job.variant == "zstd_dict":
        kind = DenseStore if job.workload.is_dense else RaggedStore
        with kind(_raw_twin(job)) as twin:
            options["dict_bytes"] = train_dict(twin.bind(Allocator("cpu")))
    return _write(job, job.target + "/store", options)


def open_store(job):
    workload = job.workload
    kind = DenseStore if workload.is_dense else RaggedStore
    view = kind(job.target + "/store").bind(Allocator("cpu"))
    if workload.is_dense:
        return {"fresh": lambda ids: np.from_dlpack(view[ids])}

    def gather(ids):
        # Slices of the packed values: its own `to_tensors` takes much longer.
        batch = view[ids]
        values = np.from_dlpack(batch.values)
        ends = np.from_dlpack(batch.cu_seqlens).tolist()
        parts = [values[start:end] for start, end in zip(ends, ends[1:])]
        if workload.ndim == 1:
            return parts
        shapes = np.from_dlpack(batch.shapes).tolist()
        return [part.reshape(shape) for part, shape in zip(parts, shapes)]

    return {"fresh": gather}
