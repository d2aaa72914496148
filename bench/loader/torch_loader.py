"""torch's DataLoader over NumPy's map of the source: records are views of the map, and workers collate
them into shared memory, one copy. Epochs have no end, so that no row pays for beginning one.

    mode    fork-N, spawn-N: N worker processes
"""

import warnings

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from photos import records_file


def about():
    return {"torch": torch.__version__, "numpy": np.__version__}


class Records(Dataset):
    """Opens the map in the process that reads it."""

    def __init__(self, file):
        self.file = file
        self.count = len(np.load(file, mmap_mode="r"))
        self.items = None

    def __len__(self):
        return self.count

    def __getitem__(self, id):
        if self.items is None:
            # Copy on write: torch warns of memory that cannot be written to.
            self.items = np.load(self.file, mmap_mode="c")
        return torch.from_numpy(self.items[id])


class Endless(Sampler):
    """Batches of ids: one permutation after the other."""

    def __init__(self, count, batch, seed):
        self.count, self.batch, self.seed = count, batch, seed

    def __iter__(self):
        random = torch.Generator().manual_seed(self.seed)
        ids = []
        while True:
            ids += torch.randperm(self.count, generator=random).tolist()
            while len(ids) >= self.batch:
                yield ids[: self.batch]
                del ids[: self.batch]


def open_loader(job):
    context, workers = job.mode.split("-")
    warnings.filterwarnings("ignore")  # of more workers than processors, which is what is asked for
    records = Records(records_file(job.folder))
    loader = DataLoader(
        records,
        batch_sampler=Endless(len(records), job.batch, job.seed),
        num_workers=int(workers),
        multiprocessing_context=context,
    )
    batches = iter(loader)

    def close():
        batches._shutdown_workers()

    return batches, close


def image_of(batch):
    return batch.numpy()
