"""What pyarrow reads of a Parquet file: of each column, SHA-256 of its items in NumPy's order, and its type.

    read-parquet.py FILE
"""
import hashlib
import json
import sys

import numpy
import pyarrow.parquet

table = pyarrow.parquet.read_table(sys.argv[1])
answer = {}
for name in table.column_names:
    column = table[name].combine_chunks()
    dims = []
    items = column
    while pyarrow.types.is_list(items.type) or pyarrow.types.is_fixed_size_list(items.type):
        if pyarrow.types.is_list(items.type):
            dims.append(numpy.diff(items.offsets.to_numpy()).tolist())
        else:
            dims.append(items.type.list_size)
        items = items.flatten()
    values = items.to_numpy(zero_copy_only=False)
    answer[name] = {
        "dtype": str(values.dtype),
        "dims": dims,
        "sha256": hashlib.sha256(numpy.ascontiguousarray(values).tobytes()).hexdigest(),
    }
json.dump(answer, sys.stdout)
