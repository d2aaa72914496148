"""Grain's DataLoader over ArrayRecord, one record per group.

    mode    processes-N
"""

import importlib.metadata
import logging

logging.disable(logging.WARNING)  # absl: that there is no JAX

import grain.python as grain
import numpy as np

from photos import facts_of


def about():
    return {
        "grain": importlib.metadata.version("grain"),
        "array_record": importlib.metadata.version("array_record"),
        "numpy": np.__version__,
    }


class Decode(grain.MapTransform):
    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype

    def map(self, record):
        return np.frombuffer(record, self.dtype).reshape(self.shape)


def open_loader(job):
    facts = facts_of(job.folder)
    source = grain.ArrayRecordDataSource(job.target + "/records.array_record")
    loader = grain.DataLoader(
        data_source=source,
        sampler=grain.IndexSampler(
            len(source), grain.NoSharding(), shuffle=True, num_epochs=None, seed=job.seed
        ),
        operations=[
            Decode(tuple(facts["item_shape"]), np.dtype(facts["dtype"])),
            grain.Batch(job.batch, drop_remainder=True),
        ],
        worker_count=int(job.mode.split("-")[1]),
    )
    batches = iter(loader)

    def close():
        closer = getattr(batches, "close", None)
        if closer is not None:
            closer()

    return batches, close


def image_of(batch):
    return batch
