"""The operations of worker.py with loaderx 2.8."""

import os
import platform

import numpy as np
from loaderx import Allocator, __version__, dtypes
from loaderx.sampler import Sampler
from loaderx.zrecord import (
    DenseStore, DenseWriter, DLTensor, RaggedBatch, RaggedStore, RaggedWriter, train_dict,
)

from exchange import (
    Held, dense_records, draw_samplers, error_of, laid_out, ragged_records, read_bytes, write_bytes,
)

_CPU = (1, 0)  # DLPack's device type and number
_held = Held()
_allocator = Allocator("cpu")


def about():
    return {
        "loaderx": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "lanes": max(1, (os.cpu_count() or 1) * 3 // 4),
    }


def _create(path, kind, dtype, codec, shards, dictionary, item_shape, ndim):
    options = {"codec": codec, "data_shards": shards}
    if dictionary is not None:
        options["dict_bytes"] = read_bytes(dictionary)
    dtype = getattr(dtypes, dtype)
    if kind == "dense":
        return DenseWriter(path, dtype, tuple(item_shape), **options)
    return RaggedWriter(path, dtype, ndim, **options)


def _tensor(array):
    return DLTensor(array, array, *_CPU)


def write(path, kind, dtype, codec, shards, items, appends, dictionary=None, item_shape=None,
          ndim=None, dims=None):
    """Writes a whole container. Each append: {"count", "layout", "form"}."""
    data = read_bytes(items)
    with _create(path, kind, dtype, codec, shards, dictionary, item_shape, ndim) as store:
        if kind == "dense":
            records = dense_records(data, store.dtype, store.item_shape)
        else:
            records = ragged_records(data, store.dtype, ndim, read_bytes(dims))
        start = 0
        for append in appends:
            part = records[start:start + append["count"]]
            start += append["count"]
            if kind == "dense":
                # Only contiguous batches are taken; both ways of handing one over.
                batch = laid_out(part, "writable")
                store.append(_tensor(batch) if append["layout"] == "read_only" else batch)
            else:
                store.append(RaggedBatch.from_records(
                    laid_out(record, append["layout"]) for record in part
                ))
        return len(store)


def _open(path, kind):
    return DenseStore(path) if kind == "dense" else RaggedStore(path)


def _facts(store):
    dense = isinstance(store, DenseStore)
    return {
        "dtype": store.dtype.name,
        "ndim": len(store.item_shape) if dense else store.ndim,
        "item_shape": list(store.item_shape) if dense else None,
        "codec": store.codec,
        "shards": store.data_shards,
        "has_dict": store.codec == "zstd_dict",
        "length": len(store),
    }


def _save(values, kind, items, dims):
    if kind == "dense":
        write_bytes(items, [np.from_dlpack(values).tobytes()])
    else:
        write_bytes(items, [np.from_dlpack(values.values).tobytes()])
        shapes = np.from_dlpack(values.shapes).astype("<u8")
        write_bytes(dims, [shapes.tobytes()])


def read(path, kind, items, dims, picks):
    """Reads a whole container into `items` and `dims`, and the records `picks` into the same names
    with `.picked`."""
    store = _open(path, kind)
    with store:
        facts = _facts(store)
        view = store.bind(_allocator)
        if facts["length"] == 0:
            for name in (items, dims, items + ".picked", dims + ".picked"):
                write_bytes(name, [])
            return facts
        _save(view[:], kind, items, dims)
        _save(view[np.asarray(picks, dtype=np.int64)], kind, items + ".picked", dims + ".picked")
        return facts


def train(path, kind, items):
    """Trains a dictionary on the container `items` into `path`."""
    with _open(items, kind) as store:
        dictionary = train_dict(store.bind(_allocator))
    write_bytes(path, [dictionary])
    return len(dictionary)


def samplers(samplers, target):
    return draw_samplers(Sampler, samplers, target, closes=False)


def open_error(path, kind):
    return error_of(lambda: _open(path, kind).close())


def create_error(path):
    return error_of(lambda: DenseWriter(path, dtypes.uint8, (), codec="raw").close())


def hold_reader(name, path, kind):
    _held.put(name, _open(path, kind))
    return len(_held.get(name))


def hold_writer(name, path):
    """A build of uint8 scalars, raw."""
    _held.put(name, DenseWriter(path, dtypes.uint8, (), codec="raw"))


def append_held(name, values):
    _held.get(name).append(np.asarray(values, dtype=np.uint8))
    return len(_held.get(name))


def read_held(name):
    """The records of a held reader of scalars."""
    return np.from_dlpack(_held.get(name).bind(_allocator)[:]).tolist()


def close_held(name):
    _held.take(name).close()


OPERATIONS = {
    operation.__name__: operation
    for operation in (
        about, write, read, train, samplers, open_error, create_error, hold_reader, hold_writer,
        append_held, read_held, close_held,
    )
}
