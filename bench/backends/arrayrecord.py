"""ArrayRecord: one record per group, so that a record is read and decoded alone."""

import importlib.metadata

import numpy as np
from array_record.python import array_record_module


def about():
    return {"array_record": importlib.metadata.version("array_record")}


def prepare_write(job):
    workload = job.workload
    workload.items
    codec = "uncompressed" if job.variant == "raw" else "zstd:3"

    def run():
        path = job.target + "/records.array_record"
        writer = array_record_module.ArrayRecordWriter(path, f"group_size:1,{codec}")
        for id in range(workload.records):
            writer.write(workload.packed(id))
        writer.close()

    return run


def open_store(job):
    workload = job.workload
    path = job.target + "/records.array_record"
    reader = array_record_module.ArrayRecordReader(path, "readahead_buffer_size:0")
    if not workload.is_dense:
        return {"fresh": lambda ids: [workload.unpacked(each) for each in reader.read(ids.tolist())]}

    def gather(ids):
        batch = workload.new_batch(len(ids))
        rows = batch.reshape(len(ids), -1)
        for index, record in enumerate(reader.read(ids.tolist())):
            rows[index] = np.frombuffer(record, workload.dtype)
        return batch

    return {"fresh": gather}
