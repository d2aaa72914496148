"""What Arrow IPC and Parquet share: the table of a workload, and batches out of parts of one."""

import os

import numpy as np
import pyarrow as pa

# Compressed, these formats decode whole groups of rows: groups of about this size, one row at least.
GROUP_BYTES = 128 * 1024


def table_of(workload):
    if workload.is_dense:
        record_bytes = int(workload.sizes[0])
        data = pa.py_buffer(workload.items.reshape(-1).view(np.uint8))
        kind = pa.binary(record_bytes)
        column = pa.FixedSizeBinaryArray.from_buffers(kind, workload.records, [None, data])
        return pa.table({"records": column})
    offsets = pa.array(workload.offsets, pa.int64())
    column = pa.LargeListArray.from_arrays(offsets, pa.array(workload.items))
    shapes = pa.FixedSizeListArray.from_arrays(pa.array(workload.shapes.reshape(-1)), workload.ndim)
    return pa.table({"records": column, "shapes": shapes})


def group_rows(workload):
    return max(1, int(GROUP_BYTES // workload.sizes.mean()))


def fixed_view(workload, column):
    """The bytes of a column of one chunk, without a copy: rows of items."""
    data = np.frombuffer(column.buffers()[1], workload.dtype)
    items = int(workload.sizes[0]) // workload.dtype.itemsize
    return data[column.offset * items:(column.offset + len(column)) * items].reshape(len(column), -1)


def ragged_record(workload, records, shapes, row):
    values = records[row].values.to_numpy(zero_copy_only=False)
    return values.reshape(shapes[row].values.to_numpy(zero_copy_only=False)).copy()


def gather_groups(workload, read_group, rows):
    """Gathers by reading each group of `rows` rows that a batch touches, once."""
    def gather(ids):
        groups, places = np.divmod(ids.astype(np.int64), rows)
        batch = workload.new_batch(len(ids)) if workload.is_dense else [None] * len(ids)
        flat = batch.reshape(len(ids), -1) if workload.is_dense else None
        order = np.argsort(groups, kind="stable")
        opened, records, shapes, view = -1, None, None, None
        for index in order.tolist():
            group, place = int(groups[index]), int(places[index])
            if group != opened:
                opened, (records, shapes) = group, read_group(group)
                view = fixed_view(workload, records) if workload.is_dense else None
            if workload.is_dense:
                flat[index] = view[place]
            else:
                batch[index] = ragged_record(workload, records, shapes, place)
        return batch

    return gather


def columns_of(workload, part):
    """A table's or batch's columns as one chunk each."""
    def one(column):
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    records = one(part.column(0))
    return records, None if workload.is_dense else one(part.column(1))


def about():
    return {"pyarrow": pa.__version__, "threads": os.cpu_count()}
