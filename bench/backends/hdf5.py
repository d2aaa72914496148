"""h5py: a contiguous data set (raw) or chunks of about 128 KiB, one record at least (gzip, level 4,
which is the default). A gather is one selection of the sorted ids where records are small, one read
per record where they are large: whichever is faster. Ragged: all items in one data set, with
offsets."""

import h5py
import numpy as np

CHUNK_BYTES = 128 * 1024
SELECTION_BYTES_MAX = 16 * 1024  # of a record


def about():
    return {"h5py": h5py.__version__, "hdf5": h5py.version.hdf5_version}


def prepare_write(job):
    workload = job.workload
    items = workload.items

    def run():
        with h5py.File(job.target + "/records.h5", "w") as file:
            options = {}
            if job.variant == "gzip":
                record_bytes = items[0].nbytes
                rows = max(1, CHUNK_BYTES // record_bytes)
                options = {"compression": "gzip", "chunks": (rows, *items.shape[1:])}
            file.create_dataset("items", data=items, **options)
            if not workload.is_dense:
                file.create_dataset("offsets", data=workload.offsets)
                file.create_dataset("shapes", data=workload.shapes)

    return run


def open_store(job):
    workload = job.workload
    file = h5py.File(job.target + "/records.h5", "r")
    items = file["items"]
    if workload.is_dense:
        def gather(ids):
            if workload.sizes[0] <= SELECTION_BYTES_MAX:
                # h5py wants them rising, each once.
                unique, places = np.unique(ids, return_inverse=True)
                return items[unique][places]
            batch = workload.new_batch(len(ids))
            for index, id in enumerate(ids.tolist()):
                items.read_direct(batch, np.s_[id], np.s_[index])
            return batch

        return {"fresh": gather}
    offsets = file["offsets"][:].tolist()
    shapes = [tuple(shape) for shape in file["shapes"][:].tolist()]
    return {
        "fresh": lambda ids: [
            items[offsets[id]:offsets[id + 1]].reshape(shapes[id]) for id in ids.tolist()
        ]
    }
