"""Reads what python.mjs wrote, and writes a container for it to read."""

import sys

import numpy as np
from loaderx.zrecord import Dense, Ragged

folder = sys.argv[1]

vectors = Dense.open(folder + "/vectors")
words = Ragged.open(folder + "/words")
print(f"in Python: {len(vectors)} records of {vectors[7].dtype}, record 7 is {vectors[7].tolist()}")
print(f"in Python: {len(words)} ragged records, record 7 is {words[7].tolist()}")
assert vectors[7].tolist() == [21 / 8, 22 / 8, 23 / 8]
assert words[7].tolist() == [7, 7, 7, 7]

doubled = Dense.create(folder + "/doubled", dtype=np.float64, item_shape=(3,), codec="raw")
doubled.append(np.stack([2 * vectors[i] for i in range(len(vectors))]))
doubled.close()
vectors.close()
words.close()
