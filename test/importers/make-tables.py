"""CSV and JSON lines as pyarrow reads them, and what a container of each column must hold.

    python make-tables.py OUT.json     test/importers/tables.json

The texts are printed here; dtype, shape and the SHA-256 of all items are those of what pyarrow has read.
"""

import hashlib
import io
import json
import random
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json

ROWS = 200
random.seed(20261130)


def column(kind):
    def bits64():
        return float(np.frombuffer(random.randbytes(8), "<f8")[0])

    def bits32():
        return np.frombuffer(random.randbytes(4), "<f4")[0]

    def finite(make):
        value = make()
        return value if np.isfinite(value) else finite(make)

    make = {
        "int64": lambda: random.choice([random.randint(-(2**63), 2**63 - 1), random.randint(-9, 9)]),
        "uint64": lambda: random.choice([random.randint(2**63, 2**64 - 1), 0, 2**64 - 1]),
        "int8": lambda: random.randint(-128, 127),
        "uint16": lambda: random.randint(0, 65535),
        "float64": lambda: repr(random.choice([finite(bits64), random.random(), -0.0, 5e-324])),
        "float32": lambda: str(random.choice([finite(bits32), np.float32(random.random())])),
        "bool": lambda: random.choice(["true", "false"]),
    }[kind]
    return [str(make()) for _ in range(ROWS)]


def wanted(table):
    found = {}
    for name in table.column_names:
        values = table.column(name).to_numpy()
        array = np.ascontiguousarray(values)
        sha256 = hashlib.sha256(array.tobytes()).hexdigest()
        found[name] = {"dtype": array.dtype.name, "shape": list(array.shape), "sha256": sha256}
    return found


def main(target):
    kinds = ["int64", "uint64", "int8", "uint16", "float64", "float32", "bool"]
    columns = {kind: column(kind) for kind in kinds}
    types = {kind: pa.bool_() if kind == "bool" else pa.from_numpy_dtype(kind) for kind in kinds}
    quoted = lambda text, row: f'"{text}"' if row % 7 == 3 else text
    lines = [",".join(kinds)]
    lines += [",".join(quoted(columns[k][row], row) for k in kinds) for row in range(ROWS)]
    csv = "\r\n".join(lines) + "\r\n"
    read = pa.csv.read_csv(
        io.BytesIO(csv.encode()), convert_options=pa.csv.ConvertOptions(column_types=types)
    )
    rows = [
        "{" + ", ".join(f'"{k}": {columns[k][row]}' for k in kinds) + "}" for row in range(ROWS)
    ]
    jsonl = "\n".join(rows)
    parsed = pa.json.read_json(
        io.BytesIO(jsonl.encode()),
        parse_options=pa.json.ParseOptions(explicit_schema=pa.schema(list(types.items()))),
    )
    document = {
        "csv": csv,
        "jsonl": jsonl,
        "columns": {"csv": wanted(read), "jsonl": wanted(parsed)},
    }
    with open(target, "w", newline="\n") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


main(sys.argv[1])
