"""`.npy` and `.npz` files that NumPy writes, and what a container of each must hold.

    python make-arrays.py short OUT.json     small files, as text: test/importers/arrays.json
    python make-arrays.py long FOLDER        dtypes x byte orders x orders x versions x shapes
    python make-arrays.py load FILE.npz      what NumPy reads of a file of ours: names, dtypes, shapes, hashes

What must come out is made from the values: dtype, shape, and the SHA-256 of the items in C order,
little-endian.
"""

import base64
import hashlib
import io
import json
import os
import sys

import numpy as np
from numpy.lib import format as npy

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
SHAPES = [(7,), (1,), (5, 3), (1, 4), (4, 1, 2), (3, 2, 4, 5), (300, 2)]
VERSIONS = [(1, 0), (2, 0), (3, 0)]
NAMES = {"?": "bool"}


def numbers(dtype, shape, seed):
    """Random bits of every kind, NaN payloads among them."""
    count = int(np.prod(shape))
    size = np.dtype(dtype).itemsize
    bits = b"".join(
        hashlib.sha256(b"%d,%d" % (seed, index)).digest() for index in range(count * size // 32 + 1)
    )[: count * size]
    if dtype == "?":
        return np.frombuffer(bytes(b & 1 for b in bits), "?").reshape(shape)
    return np.frombuffer(bits, np.dtype(dtype)).reshape(shape)


def written(array, version):
    out = io.BytesIO()
    npy.write_array(out, array, version=version)
    return out.getvalue()


def wanted(array):
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return {
        "dtype": little.dtype.name,
        "shape": list(array.shape),
        "sha256": hashlib.sha256(little.tobytes()).hexdigest(),
    }


def cases(every):
    seed = 0
    for d, dtype in enumerate(DTYPES):
        for s, shape in enumerate(SHAPES):
            for order in "CF":
                for side in "<>":
                    for v, version in enumerate(VERSIONS):
                        seed += 1
                        # The short form has each dtype with each order, and the rest in turn.
                        if not every and (s != (d * 2 + "CF".index(order)) % 7 or v != (d + s) % 3):
                            continue
                        values = numbers("<" + dtype if dtype != "?" else dtype, shape, seed)
                        array = np.asarray(values, order=order)
                        if dtype not in ("?", "i1", "u1"):
                            array = array.astype(np.dtype(side + dtype), order=order)
                        elif side == ">":
                            continue
                        name = f"{side}{dtype} {order} {shape} v{version[0]}".replace("?", "b1")
                        yield name, written(array, version), wanted(array)


def refused():
    """Files that NumPy writes and that hold no plain numbers."""
    plain = lambda array: written(array, None)
    structured = np.zeros(3, dtype=[("shape", "<i4"), ("b}", "<f8"), ("\u00fcber", "u1")])
    out = io.BytesIO()
    np.save(out, np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    return {
        "object": out.getvalue(),
        "structured": plain(structured),
        "nested": plain(np.zeros(2, dtype=[("a", [("b", "<i2", (2, 2))])])),
        "text": plain(np.array(["one", "two"])),
        "bytes": plain(np.array([b"one", b"two"])),
        "void": plain(np.zeros(2, "V5")),
        "datetime": plain(np.zeros(2, "<M8[ns]")),
        "longdouble": plain(np.zeros(2, np.longdouble)),
        "scalar": plain(np.float32(3)),
        "empty": plain(np.zeros((0, 4), "<f4")),
        "empty-records": plain(np.zeros((4, 0), "<f4")),
    }


def archives():
    image = np.asfortranarray(numbers("<i8", (6, 3, 2), 901))
    label = numbers(">f4", (6,), 902)
    for name, save in [("stored", np.savez), ("deflated", np.savez_compressed)]:
        out = io.BytesIO()
        save(out, image=image, label=label)
        yield name, out.getvalue(), {"image": wanted(image), "label": wanted(label)}


def main(mode, target):
    if mode == "load":
        found = {name: wanted(array) for name, array in np.load(target).items()}
        print(json.dumps(found))
        return
    text = lambda data: base64.b64encode(data).decode()
    if mode == "short":
        document = {
            "arrays": [{"name": n, "npy": text(b), **w} for n, b, w in cases(False)],
            "refused": {name: text(data) for name, data in refused().items()},
            "archives": [{"name": n, "npz": text(b), "columns": w} for n, b, w in archives()],
        }
        with open(target, "w", newline="\n") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
        return
    expected = []
    for index, (name, data, what) in enumerate(cases(True)):
        with open(os.path.join(target, f"{index}.npy"), "wb") as file:
            file.write(data)
        expected.append({"name": name, "file": f"{index}.npy", **what})
    with open(os.path.join(target, "expected.json"), "w") as file:
        json.dump(expected, file)


main(sys.argv[1], sys.argv[2])
