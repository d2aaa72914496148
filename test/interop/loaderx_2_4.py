"""The operations of worker.py with loaderx 2.4."""

import hashlib
import os
import platform

import numpy as np
from loaderx import __version__, _storage
from loaderx.utils import train_dict
from loaderx.zrecord import Dense, Ragged
from loaderx.zsampler import Sampler

from exchange import (
    Held, dense_records, draw_samplers, error_of, laid_out, ragged_records, read_bytes, write_bytes,
)

_held = Held()


def about():
    logical = _storage._logical_cpu_count()
    return {
        "loaderx": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "lanes": max(1, _storage._physical_cpu_count(logical), logical * 3 // 4),
    }


def _create(path, kind, dtype, codec, shards, dictionary, item_shape, ndim):
    options = {"codec": codec, "data_shards": shards}
    if dictionary is not None:
        options["dict_bytes"] = read_bytes(dictionary)
    if kind == "dense":
        return Dense.create(path, dtype, tuple(item_shape), **options)
    return Ragged.create(path, dtype, ndim, **options)


def _records(store, items, dims):
    if isinstance(store, Dense):
        return dense_records(read_bytes(items), store.dtype, store.item_shape)
    return ragged_records(read_bytes(items), store.dtype, store.ndim, read_bytes(dims))


def _ragged_input(records, form):
    if form == "generator":
        return (record for record in records)
    if form == "dict_values":
        return dict(enumerate(records)).values()
    if form == "tuple":
        return tuple(records)
    is_even = len({record.shape for record in records}) == 1
    if form == "stacked" and is_even and records[0].ndim < 64:
        # Without its dtype, stacking would turn big-endian records into native ones.
        return np.stack(records, dtype=records[0].dtype, casting="no")
    return records


def write(path, kind, dtype, codec, shards, items, appends, dictionary=None, item_shape=None,
          ndim=None, dims=None):
    """Writes a whole container. Each append: {"count", "layout", "form"}."""
    store = _create(path, kind, dtype, codec, shards, dictionary, item_shape, ndim)
    with store:
        records = _records(store, items, dims) if appends else []
        start = 0
        for append in appends:
            part = records[start:start + append["count"]]
            start += append["count"]
            if kind == "dense":
                store.append(laid_out(part, append["layout"]))
            else:
                laid = [laid_out(record, append["layout"]) for record in part]
                store.append(_ragged_input(laid, append["form"]))
        return len(store)


def _open(path, kind):
    return Dense.open(path) if kind == "dense" else Ragged.open(path)


def _facts(store):
    dense = isinstance(store, Dense)
    return {
        "dtype": store.dtype.str,
        "ndim": store.ndim,
        "item_shape": list(store.item_shape) if dense else None,
        "codec": store.codec,
        "shards": store.data_shards,
        "has_dict": store.has_dict(),
        "length": len(store),
    }


def _save(store, values, items, dims):
    if isinstance(store, Dense):
        write_bytes(items, [np.ascontiguousarray(values).tobytes()])
    else:
        write_bytes(items, (value.tobytes() for value in values))
        write_bytes(dims, (np.asarray(value.shape, dtype="<u8").tobytes() for value in values))


def read(path, kind, items, dims, picks):
    """Reads a whole container into `items` and `dims`, and the records `picks` into the same names
    with `.picked`: half as one set, half one by one."""
    with _open(path, kind) as store:
        _save(store, store[:], items, dims)
        half = len(picks) // 2
        together = store[np.asarray(picks[:half], dtype=np.int64)]
        # One record of a scalar store is a NumPy scalar, which loses byte order and padding.
        is_scalar = kind == "dense" and store.ndim == 0
        singles = [store[[pick] if is_scalar else pick] for pick in picks[half:]]
        if kind == "dense":
            alone = (record.tobytes() for record in singles)
            write_bytes(items + ".picked", [together.tobytes(), *alone])
        else:
            _save(store, together + singles, items + ".picked", dims + ".picked")
        return _facts(store)


def train(source, path, kind=None, dtype=None, item_shape=None, ndim=None, items=None, dims=None):
    """Trains a dictionary into `path`. `source`: array, records, bytes or reader."""
    if source == "reader":
        with _open(items, kind) as reader:
            dictionary = train_dict(reader)
    elif source == "array":
        dictionary = train_dict(dense_records(read_bytes(items), np.dtype(dtype), item_shape))
    else:
        records = ragged_records(read_bytes(items), np.dtype(dtype), ndim, read_bytes(dims))
        dictionary = train_dict(
            record.tobytes() if source == "bytes" else record for record in records
        )
    write_bytes(path, [dictionary])
    return len(dictionary)


def samplers(samplers, target):
    return draw_samplers(Sampler, samplers, target, closes=True)


def open_error(path, kind):
    return error_of(lambda: _open(path, kind).close())


def create_error(path):
    return error_of(lambda: Dense.create(path, "u1", (), codec="raw").close())


def hold_reader(name, path, kind):
    _held.put(name, _open(path, kind))
    return len(_held.get(name))


def hold_writer(name, path):
    """A build of uint8 scalars, raw."""
    _held.put(name, Dense.create(path, "u1", (), codec="raw"))


def append_held(name, values):
    _held.get(name).append(np.asarray(values, dtype=np.uint8))
    return len(_held.get(name))


def read_held(name):
    """The records of a held reader of scalars."""
    return [int(value) for value in _held.get(name)[:]]


def close_held(name):
    _held.take(name).close()


def write_one(path, kind, codec, items, length):
    """A container of one uint8 record: the first `length` bytes of the file `items`."""
    record = np.memmap(items, dtype=np.uint8, mode="r", shape=(length,))
    if kind == "dense":
        with Dense.create(path, np.uint8, record.shape, codec=codec, data_shards=1) as store:
            store.append(record[None])
    else:
        with Ragged.create(path, np.uint8, 1, codec=codec, data_shards=1) as store:
            store.append([record])
    return os.path.getsize(os.path.join(path, "data_0.zr"))


def hash_one(path, kind):
    """The length and SHA-256 of record 0."""
    with _open(path, kind) as store:
        record = store[0]
        return {"bytes": record.nbytes, "sha256": hashlib.sha256(record.data).hexdigest()}


OPERATIONS = {
    operation.__name__: operation
    for operation in (
        about, write, read, train, samplers, open_error, create_error, hold_reader, hold_writer,
        append_held, read_held, close_held, write_one, hash_one,
    )
}
