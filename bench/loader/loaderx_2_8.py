"""Python loaderx 2.8, its own defaults: 4 workers, 4 batches ahead; permuted epochs, as the others.

    mode    threads-4
"""

import loaderx
import numpy as np
from loaderx import Allocator
from loaderx.dataloader import Loader
from loaderx.sampler import Sampler
from loaderx.zrecord import DenseStore


def about():
    return {"loaderx": loaderx.__version__, "numpy": np.__version__}


def open_loader(job):
    view = DenseStore(job.store).bind(Allocator("cpu"))
    sampler = Sampler(len(view), job.batch, Sampler.Mode.CYCLIC, job.seed)
    loader = Loader({"image": [view]}, sampler)
    return loader, loader.close


def image_of(batch):
    return np.from_dlpack(batch[0]["image"])
