"""Parquet files that pyarrow writes, and what a container of each of their columns must hold.

    python make-parquet.py short OUT.json     small files, as text: test/parquet/files.json
    python make-parquet.py long FOLDER        every type x encoding x compression x page version
    python make-parquet.py nulls OUT.json     what holds nulls, or nothing: test/parquet/nulls.json

What must come out is made from the values, not read back from the file: for each column its container's
kind, dtype and shape, the SHA-256 of all records' bytes in order, and of all their dimensions (u64).
"""

import base64
import hashlib
import io
import json
import os
import struct
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COMPRESSIONS = ["NONE", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4"]
PAGE_VERSIONS = ["1.0", "2.0"]

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def noise(seed, count):
    """Numbers that look random and are the same everywhere."""
    return [
        int.from_bytes(hashlib.sha256(b"%d,%d" % (seed, index)).digest()[:8], "little")
        for index in range(count)
    ]


def numbers(dtype, seed, count):
    """The extremes of a type, and noise; floats by their bits, NaN payloads and subnormals among them."""
    bits = noise(seed, count)
    if dtype == "bool":
        return np.array([bit & 1 for bit in bits], np.bool_)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        span = int(info.max) - int(info.min) + 1
        values = [int(info.min) + bit % span for bit in bits]
        # Runs, for dictionaries, and small steps, for differences.
        for index in range(count // 4, count // 2):
            values[index] = values[count // 4] if index % 3 else int(info.min)
        for index in range(count // 2, 3 * count // 4):
            values[index] = max(int(info.min), min(int(info.max), index - count // 2))
        values[:2] = [int(info.min), int(info.max)][:count]
        return np.array(values[:count], dtype)
    width = np.dtype(dtype).itemsize
    raw = b"".join((bit % 256**width).to_bytes(width, "little") for bit in bits)
    values = np.frombuffer(raw, dtype).copy()
    # One NaN payload a column: Arrow's dictionaries fold all NaN into the first.
    values[np.isnan(values)] = 1.5
    special = {
        "float16": ["0000", "0080", "0100", "007c", "00fc", "017e"],
        "float32": ["00000000", "00000080", "01000000", "0000807f", "000080ff", "0100c07f"],
        "float64": ["0000000000000000", "0000000000000080", "0100000000000000",
                    "000000000000f07f", "000000000000f0ff", "010000000000f87f"],
    }[dtype]
    for index, text in enumerate(special[:count]):
        values[index : index + 1] = np.frombuffer(bytes.fromhex(text), dtype)
    return values


def flat(dtype, seed, rows):
    values = numbers(dtype, seed, rows)
    column = pa.array(values, pa.from_numpy_dtype(values.dtype))
    return column, dense(dtype, [], values), ()


def sizes(seed, count, most):
    return [1 + bits % most for bits in noise(seed, count)]


def starts(lengths):
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    return pa.array(offsets, pa.int32())


def lists(dtype, seed, rows, large=False):
    lengths = sizes(seed + 1, rows, 7)
    values = numbers(dtype, seed, sum(lengths))
    items = pa.array(values, pa.from_numpy_dtype(values.dtype))
    kind = pa.LargeListArray if large else pa.ListArray
    offsets = starts(lengths).cast(pa.int64()) if large else starts(lengths)
    return kind.from_arrays(offsets, items), ragged(dtype, [[n] for n in lengths], values), ("list", "element")


def nested(dtype, seed, rows):
    outer = sizes(seed + 1, rows, 4)
    inner = sizes(seed + 2, rows, 5)
    lengths = [size for count, size in zip(outer, inner) for _ in range(count)]
    values = numbers(dtype, seed, sum(lengths))
    items = pa.array(values, pa.from_numpy_dtype(values.dtype))
    lists_ = pa.ListArray.from_arrays(starts(lengths), items)
    column = pa.ListArray.from_arrays(starts(outer), lists_)
    dims = [[count, size] for count, size in zip(outer, inner)]
    return column, ragged(dtype, dims, values), ("list", "element", "list", "element")


def fixed(dtype, shape, seed, rows):
    values = numbers(dtype, seed, rows * int(np.prod(shape)))
    column = pa.array(values, pa.from_numpy_dtype(values.dtype))
    for size in reversed(shape):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column, dense(dtype, shape, values), ("list", "element") * len(shape)


def lists_of_fixed(dtype, size, seed, rows):
    lengths = sizes(seed + 1, rows, 4)
    values = numbers(dtype, seed, sum(lengths) * size)
    inner = pa.FixedSizeListArray.from_arrays(pa.array(values, pa.from_numpy_dtype(values.dtype)), size)
    column = pa.ListArray.from_arrays(starts(lengths), inner)
    return column, ragged(dtype, [[n, size] for n in lengths], values), ("list", "element") * 2


def texts(seed, rows):
    words = [f"{'naïve 日本 ' * (bits % 3)}{bits % 17}" for bits in noise(seed, rows)]
    data = [word.encode() for word in words]
    values = np.frombuffer(b"".join(data), np.uint8)
    return pa.array(words, pa.string()), ragged("uint8", [[len(each)] for each in data], values), ()


def dense(dtype, shape, values):
    return {"kind": "dense", "dtype": dtype, "shape": list(shape), "sha256": digest(values)}


def ragged(dtype, dims, values):
    packed = b"".join(struct.pack("<%dQ" % len(each), *each) for each in dims)
    sums = {"sha256": digest(values), "dims": hashlib.sha256(packed).hexdigest()}
    return {"kind": "ragged", "dtype": dtype, "shape": len(dims[0]), **sums}


def digest(values):
    return hashlib.sha256(values.tobytes()).hexdigest()


def all_columns(rows):
    """name -> (column, what must come out, path of the values below the name)"""
    columns = {}
    for seed, dtype in enumerate(["bool", *INTEGERS, *FLOATS]):
        columns[dtype] = flat(dtype, 100 * seed, rows)
        columns[f"list {dtype}"] = lists(dtype, 100 * seed + 10, rows)
    columns["large list"] = lists("int16", 2000, rows, large=True)
    columns["nested"] = nested("int32", 2100, rows)
    columns["nested bool"] = nested("bool", 2200, rows)
    columns["fixed"] = fixed("float32", [3], 2300, rows)
    columns["fixed fixed"] = fixed("uint8", [2, 2], 2400, rows)
    columns["list fixed"] = lists_of_fixed("float64", 2, 2500, rows)
    columns["text"] = texts(2600, rows)
    return columns


def few_columns(rows):
    everything = all_columns(rows)
    names = ["bool", "int8", "uint16", "int64", "uint64", "float16", "float64", "list int32",
             "list float32", "nested", "fixed", "list fixed", "text"]
    return {name: everything[name] for name in names}


def encodings_of(dtype, is_text):
    """Encodings besides dictionaries that pyarrow writes for a type."""
    if is_text:
        return ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
    if dtype == "bool":
        return ["PLAIN", "RLE"]
    if dtype == "float16":
        return ["PLAIN", "BYTE_STREAM_SPLIT"]
    if dtype in FLOATS:
        return ["PLAIN", "BYTE_STREAM_SPLIT"]
    return ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]


def write(columns, where, encoding, **options):
    """encoding: 'dictionary', or a number that picks one of each type's encodings."""
    arrays = {name: column for name, (column, _, _) in columns.items()}
    required = options.pop("required", False)
    fields = [pa.field(name, array.type, nullable=not required) for name, array in arrays.items()]
    table = pa.table(list(arrays.values()), schema=pa.schema(fields))
    if encoding == "dictionary":
        options["use_dictionary"] = True
    else:
        options["use_dictionary"] = False
        options["column_encoding"] = {}
        for name, (_, wanted, below) in columns.items():
            choices = encodings_of(wanted["dtype"], name == "text")
            path = ".".join([name, *below])
            options["column_encoding"][path] = choices[encoding % len(choices)]
    pq.write_table(table, where, **options)


def expected(columns):
    return {name: wanted for name, (_, wanted, _) in columns.items()}


def short(out):
    files = []

    def add(name, encoding, columns, **options):
        buffer = io.BytesIO()
        write(columns, buffer, encoding, **options)
        files.append({
            "name": name,
            "rows": len(next(iter(columns.values()))[0]),
            "columns": expected(columns),
            "parquet": base64.b64encode(buffer.getvalue()).decode(),
        })

    plain = {"write_statistics": False}
    add("everything", "dictionary", all_columns(9), compression="NONE", **plain)
    few = few_columns(25)
    for index, compression in enumerate(COMPRESSIONS):
        version = PAGE_VERSIONS[index % 2]
        add(f"{compression} {version}", 0, few, compression=compression,
            data_page_version=version, write_page_checksum=index % 2 == 0, **plain)
    for encoding in ["dictionary", 1, 2]:
        for version in PAGE_VERSIONS:
            add(f"{encoding} {version}", encoding, few, compression="SNAPPY",
                data_page_version=version, **plain)
    small = {"data_page_size": 64, "write_batch_size": 3, "row_group_size": 11}
    add("small pages", "dictionary", few, compression="NONE", **small)
    add("required", 0, few_columns(7), compression="ZSTD", required=True, **plain)
    add("version 1.0", 0, {"uint32": flat("uint32", 1, 9)}, compression="NONE", version="1.0", **plain)
    with open(out, "w") as file:
        json.dump(files, file, indent=1, ensure_ascii=False)
        file.write("\n")


def long(folder):
    os.makedirs(folder, exist_ok=True)
    files = []
    rows = 3000
    columns = all_columns(rows)
    for compression in COMPRESSIONS:
        for version in PAGE_VERSIONS:
            for encoding in ["dictionary", 0, 1, 2]:
                for pages, options in [("large", {}), ("small", {
                    "data_page_size": 512, "write_batch_size": 17, "row_group_size": 1001,
                    "write_page_checksum": True,
                })]:
                    name = f"{compression}-{version}-{encoding}-{pages}.parquet"
                    write(columns, os.path.join(folder, name), encoding,
                          compression=compression, data_page_version=version, **options)
                    files.append({"name": name, "rows": rows, "columns": expected(columns)})
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(files, file)


def nulls(out):
    """Columns `x` with nulls: the row of the first, or -1 where there is none after all."""
    lists_ = pa.list_(pa.int64())
    pairs = pa.list_(pa.int64(), 2)
    two = pa.list_(pa.field("element", lists_))
    cases = {
        "the middle": (pa.array([1, None, 3], pa.int64()), 1),
        "the first": (pa.array([None, 2, 3], pa.int64()), 0),
        "the last": (pa.array([1, 2, None], pa.int64()), 2),
        "floats": (pa.array([1.5, 2.5, None], pa.float32()), 2),
        "flags": (pa.array([True, None], pa.bool_()), 1),
        "texts": (pa.array(["a", None], pa.string()), 1),
        "nullable without nulls": (pa.array([1, 2, 3], pa.int64()), -1),
        "all, of a dictionary": (pa.array([None, None], pa.int32()), 0),
        "the first list": (pa.array([None, [1], [2, 3]], lists_), 0),
        "the middle list": (pa.array([[1], None, [2, 3]], lists_), 1),
        "the last list": (pa.array([[1], [2, 3], None], lists_), 2),
        "in a list": (pa.array([[1], [2, 3], [4, None, 5]], lists_), 2),
        "in a list of a fixed length": (pa.array([[1, 2], [3, None]], pairs), 1),
        "a list in a list": (pa.array([[[1]], [[2], None]], two), 1),
        "in a list in a list": (pa.array([[[1]], [[2], [3]], [[4, None]]], two), 2),
        "lists without nulls": (pa.array([[1], [2, 3]], lists_), -1),
    }
    files = []
    for name, (column, row) in cases.items():
        buffer = io.BytesIO()
        pq.write_table(pa.table({"good": pa.array(range(len(column)), pa.int16()), "x": column}), buffer,
                       compression="NONE", store_schema=False, write_statistics=False)
        files.append({"name": name, "row": row, "parquet": base64.b64encode(buffer.getvalue()).decode()})
    # Row groups and files of no rows add none.
    for name, groups in {"an empty row group": [2, 0, 1], "no rows": [0], "no row group": []}.items():
        buffer = io.BytesIO()
        schema = pa.schema([("x", pa.int32())])
        with pq.ParquetWriter(buffer, schema, compression="NONE", store_schema=False) as writer:
            for rows in groups:
                writer.write_table(pa.table({"x": pa.array(range(rows), pa.int32())}, schema=schema))
        files.append({"name": name, "rows": sum(groups), "parquet": base64.b64encode(buffer.getvalue()).decode()})
    with open(out, "w", encoding="utf-8") as file:
        json.dump(files, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    {"short": short, "long": long, "nulls": nulls}[sys.argv[1]](sys.argv[2])
