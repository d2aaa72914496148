"""Python loaderx 2.4."""

import loaderx
import numpy as np
from loaderx.utils import train_dict
from loaderx.zrecord import Dense, Ragged

IDS = np.uint64  # what its own sampler draws, and what it takes without a conversion


def about():
    return {"loaderx": loaderx.__version__}


def prepare_write(job):
    workload = job.workload
    options = {"codec": job.variant}
    source = workload.items if workload.is_dense else workload.arrays()
    if job.variant == "zstd_dict":
        options["dict_bytes"] = train_dict(source)
    path = job.target + "/store"
    if workload.is_dense:
        store = Dense.create(path, workload.dtype, workload.item_shape, **options)
    else:
        store = Ragged.create(path, workload.dtype, workload.ndim, **options)

    def run():
        store.append(source)
        store.close()

    return run


def open_store(job):
    kind = Dense if job.workload.is_dense else Ragged
    store = kind.open(job.target + "/store")
    return {"fresh": lambda ids: store[ids]}
