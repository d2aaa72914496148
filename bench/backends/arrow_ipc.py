"""Arrow IPC by pyarrow. Raw: the file mapped, one record batch, `take`. zstd: a record batch for each
group of rows, each batch that a gather touches decoded once."""

import numpy as np
import pyarrow as pa

from columnar import about, columns_of, gather_groups, group_rows, table_of


def prepare_write(job):
    workload = job.workload
    workload.items
    is_raw = job.variant == "raw"
    options = pa.ipc.IpcWriteOptions(compression=None if is_raw else "zstd")
    rows = workload.records if is_raw else group_rows(workload)

    def run():
        table = table_of(workload)
        with pa.OSFile(job.target + "/records.arrow", "wb") as sink:
            with pa.ipc.new_file(sink, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=rows)

    return run


def open_store(job):
    workload = job.workload
    reader = pa.ipc.open_file(pa.memory_map(job.target + "/records.arrow"))
    if job.variant != "raw":
        def read_group(group):
            return columns_of(workload, reader.get_batch(group))

        return {"fresh": gather_groups(workload, read_group, group_rows(workload))}

    whole = reader.get_batch(0)
    if workload.is_dense:
        records = whole.column(0)

        def gather(ids):
            taken = records.take(pa.array(ids))
            data = np.frombuffer(taken.buffers()[1], workload.dtype)
            return data.reshape(len(ids), *workload.item_shape)

        return {"fresh": gather}

    def gather_ragged(ids):
        taken = whole.take(pa.array(ids))
        values = taken.column(0).values.to_numpy()
        offsets = taken.column(0).offsets.to_pylist()
        shapes = taken.column(1).values.to_numpy().reshape(len(ids), -1).tolist()
        return [
            values[offsets[index]:offsets[index + 1]].reshape(shapes[index])
            for index in range(len(ids))
        ]

    return {"fresh": gather_ragged}
