"""Python loaderx 2.4, its own defaults: 4 transform workers, 4 batches ahead.

    mode    threads-4; numpy, numba-gil, numba-nogil: with the transform
"""

import importlib.metadata
import importlib.util

import loaderx
import numpy as np
from loaderx.dataloader import DataLoader
from loaderx.zrecord import Dense

import colour


def about():
    versions = {"loaderx": loaderx.__version__, "numpy": np.__version__}
    if importlib.util.find_spec("numba") is not None:
        versions["numba"] = importlib.metadata.version("numba")
    return versions


def corrects(mode):
    return mode.startswith("num")


def transform_of(mode):
    if not corrects(mode):
        return None
    if mode == "numpy":
        correct = colour.correct_records
    else:
        correct = colour.compiled(nogil=mode == "numba-nogil")

    def transform(batch):
        correct(batch["image"])
        return batch

    return transform


def open_loader(job):
    store = Dense.open(job.store)
    transform = transform_of(job.mode)
    options = {} if transform is None else {"transform": transform}
    loader = DataLoader({"image": store}, batch_size=job.batch, seed=job.seed, **options)

    def close():
        loader.close()
        store.close()

    return loader, close


def image_of(batch):
    return batch["image"]
