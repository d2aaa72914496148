"""Python's part of bench/converter.mjs.

    python python.py prepare WORKLOAD ROWS FILE     writes a Parquet file
    python python.py convert FILE OUT CODEC CACHE   converts it; one line of JSON with seconds and memory
"""

import json
import os
import resource
import sys
import time


def prepare(workload, rows, file):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(7)
    if workload == "numbers":
        columns = {
            "id": np.arange(rows, dtype=np.int64),
            "label": rng.integers(0, 10, rows).astype(np.int64),
            "int32": rng.integers(-(2**31), 2**31, rows).astype(np.int32),
            "int16": rng.integers(-(2**15), 2**15, rows).astype(np.int16),
            "uint8": rng.integers(0, 256, rows).astype(np.uint8),
            "bool": rng.integers(0, 2, rows).astype(np.bool_),
            "float32": rng.standard_normal(rows).astype(np.float32),
            "float64": rng.standard_normal(rows),
        }
        table = pa.table(columns)
    elif workload == "tokens":
        lengths = rng.integers(16, 400, rows)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        tokens = rng.integers(0, 32_000, offsets[-1]).astype(np.int32)
        table = pa.table({"tokens": pa.ListArray.from_arrays(offsets, tokens)})
    elif workload == "vectors":
        values = rng.standard_normal(rows * 128).astype(np.float32)
        table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(values, 128)})
    elif workload == "arrays":
        pixels = rng.integers(0, 256, rows * 28 * 28).astype(np.uint8)
        inner = pa.FixedSizeListArray.from_arrays(pa.array(pixels), 28)
        table = pa.table({"image": pa.FixedSizeListArray.from_arrays(inner, 28)})
    elif workload == "pairs":
        counts = rng.integers(1, 8, rows)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        boxes = pa.FixedSizeListArray.from_arrays(
            pa.array(rng.standard_normal(offsets[-1] * 4).astype(np.float32)), 4
        )
        table = pa.table({"boxes": pa.ListArray.from_arrays(offsets, boxes)})
    elif workload == "pictures":
        table = pictures(rows, rng)
    else:
        raise SystemExit(f"there is no workload {workload}")
    pq.write_table(table, file, row_group_size=20_000 if workload != "pictures" else 500)


def pictures(rows, rng):
    """JPEG of 224 x 224, smooth with noise, so that they compress about as photographs do."""
    import io

    import numpy as np
    import pyarrow as pa
    from PIL import Image

    files = []
    for _ in range(64):
        small = rng.integers(0, 256, (14, 14, 3)).astype(np.uint8)
        smooth = np.asarray(Image.fromarray(small).resize((224, 224), Image.BICUBIC))
        noisy = smooth + rng.normal(0, 6, smooth.shape)
        kept = io.BytesIO()
        Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(kept, "JPEG", quality=90)
        files.append({"bytes": kept.getvalue(), "path": None})
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    column = pa.array([files[row % len(files)] for row in range(rows)], kind)
    features = {"info": {"features": {"image": {"_type": "Image"}}}}
    schema = pa.schema([("image", kind)], metadata={"huggingface": json.dumps(features)})
    return pa.table([column], schema=schema)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def convert(file, out, codec, cache):
    from datasets import disable_progress_bars, load_dataset
    from loaderx.converter import convert as to_containers

    disable_progress_bars()
    base = peak()
    start = time.perf_counter()
    cpu_start = time.process_time()
    dataset = load_dataset("parquet", data_files=file, split="train", cache_dir=cache)
    loaded = time.perf_counter()
    cpu_loaded = time.process_time()
    to_containers(dataset, out, codec=codec)
    end = time.perf_counter()
    cpu_end = time.process_time()
    print(json.dumps({
        "seconds": end - start,
        "convertSeconds": end - loaded,
        "cpuSeconds": cpu_end - cpu_start,
        "convertCpuSeconds": cpu_end - cpu_loaded,
        "memoryBytes": peak() - base,
    }))


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    os.environ["HF_HUB_OFFLINE"] = "1"
    if what == "prepare":
        prepare(rest[0], int(rest[1]), rest[2])
    else:
        convert(*rest)
