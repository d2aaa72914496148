"""LMDB's Python package: one value per record under its u32 id, one transaction, no sync."""

import struct

import lmdb
import numpy as np

key_of = struct.Struct(">I").pack


def about():
    return {"lmdb": lmdb.__version__, "liblmdb": ".".join(map(str, lmdb.version()))}


def _open(job, **options):
    size = job.workload.payload_bytes * 4 + 2**26
    return lmdb.open(job.target + "/lmdb", map_size=size, sync=False, metasync=False, **options)


def prepare_write(job):
    workload = job.workload
    environment = _open(job)
    workload.items

    def run():
        with environment.begin(write=True) as transaction:
            for id in range(workload.records):
                transaction.put(key_of(id), workload.packed(id), append=True)

    return run


def open_store(job):
    workload = job.workload
    transaction = _open(job, readonly=True, lock=False).begin(buffers=True)
    get = transaction.get
    if not workload.is_dense:
        return {"fresh": lambda ids: [workload.unpacked(get(key_of(id))) for id in ids.tolist()]}

    def gather(ids):
        batch = workload.new_batch(len(ids))
        rows = batch.reshape(len(ids), -1)
        for index, id in enumerate(ids.tolist()):
            rows[index] = np.frombuffer(get(key_of(id)), workload.dtype)
        return batch

    return {"fresh": gather}
