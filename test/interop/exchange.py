"""What both generations of loaderx share on the Python side of `npm run interop`.

Records travel as two files: `items`, the records' bytes back to back without dimensions, and, for
ragged records, `dims`, their dimensions as u64 little-endian, `ndim` each.
"""

import math

import numpy as np


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def write_bytes(path, chunks):
    with open(path, "wb") as file:
        for chunk in chunks:
            file.write(chunk)


def dense_records(items, dtype, item_shape):
    """All records as one array, on the memory of `items`."""
    flat = np.frombuffer(items, dtype=dtype)
    count = flat.size // math.prod(item_shape)
    return flat.reshape(count, *item_shape)


def ragged_records(items, dtype, ndim, dims):
    """A list of arrays, on the memory of `items`."""
    shapes = np.frombuffer(dims, dtype="<u8").reshape(-1, ndim).tolist()
    records, start = [], 0
    for shape in shapes:
        count = math.prod(shape)
        part = np.frombuffer(items, dtype=dtype, count=count, offset=start)
        records.append(part.reshape(shape))
        start += count * dtype.itemsize
    return records


class Subclass(np.ndarray):
    """Stands for the array classes of other libraries."""


def laid_out(array, layout):
    """An array equal to `array` that lies in memory in another way."""
    if layout == "fortran":
        return np.asfortranarray(array)
    if layout == "strided":
        wide = np.zeros((*array.shape[:-1], array.shape[-1] * 3), dtype=array.dtype)
        wide[..., ::3] = array
        return wide[..., ::3]
    if layout == "reversed":
        return array[::-1].copy()[::-1]
    if layout == "transposed":
        return array.T.copy().T
    if layout == "subclass":
        return array.copy().view(Subclass)
    if layout == "writable":
        return array.copy()
    if layout == "read_only":
        return array
    raise ValueError(f"there is no layout {layout!r}")


def error_of(action):
    """What calling `action` raised, as [type, code], or None."""
    try:
        action()
    except Exception as error:
        code = getattr(error, "code", None)
        return [type(error).__name__, code if isinstance(code, int) else None]
    return None


class Held:
    """Readers and writers that stay open from one request to the next."""

    def __init__(self):
        self._held = {}

    def put(self, name, value):
        if name in self._held:
            raise ValueError(f"{name} is held already")
        self._held[name] = value

    def get(self, name):
        return self._held[name]

    def take(self, name):
        return self._held.pop(name)


def draw_samplers(sampler_class, samplers, target, closes):
    """Runs each sampler's moves and writes all indices drawn, u64 little-endian, to `target`.

    A move is a number of draws or {"seek": step}. Numbers over 2^53 come as text. Returns how many
    indices each sampler gave, and the error that ended it early, if one did.
    """
    counts, errors, chunks = [], [], []
    for options in samplers:
        sampler = sampler_class(
            int(options["length"]), options["batch"], options["mode"], int(options["seed"]),
        )
        count, error = 0, None
        try:
            for move in options["moves"]:
                if isinstance(move, dict):
                    sampler.seek(int(move["seek"]))
                    continue
                for _ in range(move):
                    indices = sampler.next()
                    chunks.append(indices.astype("<u8").tobytes())
                    count += indices.size
        except Exception as raised:
            error = type(raised).__name__
        if closes:
            sampler.close()
        counts.append(count)
        errors.append(error)
    write_bytes(target, chunks)
    return {"counts": counts, "errors": errors}
