"""Writes the golden containers beside this file as text that can be read and reviewed.

    python3 test/golden/make.py            writes *.hex
    python3 test/golden/make.py --check    fails where a file is not what this writes

Everything is put together from the format's description alone: page, table, schema in MsgPack and
JSON, ragged headers, and zstd frames of one stored block, which is what level 3 makes of records that
are too small to compress (RFC 8878). One thing cannot be: frames of compressed blocks. Those are in
frozen-frames.json: libzstd 1.5.7 made them once, at level 3, through this package, and their lines
say "frozen". For them the files show that nothing changed since, not that it was right; the
original's own containers show that.

A line of a file's bytes is an offset, the bytes in hex and what they are; what no line covers is zero.
"""

import json
import pathlib
import struct
import sys

PAGE_BYTES = 4096
WORDS = b"one two three four five six seven eight nine ten eleven twelve"

# Record (dimensions included) to frame, both in hex, by how they are compressed.
FROZEN = json.loads((pathlib.Path(__file__).parent / "frozen-frames.json").read_text())

CODECS = {"raw": 0, "zstd": 1, "zstd_dict": 2}
NUMPY = {"uint8": "|u1", "int16": "<i2", "uint32": "<u4", "float64": "<f8", "numpy:>f4": ">f4"}
ITEM_BYTES = {"uint8": 1, "int16": 2, "uint32": 4, "float64": 8, "numpy:>f4": 4, "bfloat16": 2}


def fixstr(text):
    return bytes([0xA0 | len(text)]) + text.encode()


def uint(value):
    if value < 0x80:
        return bytes([value])
    if value < 0x100:
        return b"\xcc" + struct.pack(">B", value)
    return b"\xcd" + struct.pack(">H", value)


def schema_of(about):
    """The schema's bytes, in parts with their meaning."""
    shape = about.get("itemShape")
    if about["dialect"] == "2.8":
        last = f'"item_shape": {json.dumps(shape)}' if shape is not None else f'"ndim": {about["ndim"]}'
        text = f'{{"dtype": "{about["dtype"]}", {last}}}'
        return [(text.encode(), text)]
    dtype = NUMPY[about["dtype"]]
    ndim = len(shape) if shape is not None else about["ndim"]
    parts = [
        (bytes([0x80 | (2 if shape is None else 3)]), "map"),
        (fixstr("dtype") + fixstr(dtype), f"dtype {dtype}"),
        (fixstr("ndim") + uint(ndim), f"ndim {ndim}"),
    ]
    if shape is not None:
        sizes = b"".join(uint(size) for size in shape)
        parts.append((fixstr("item_shape") + bytes([0x90 | len(shape)]) + sizes, f"item_shape {shape}"))
    return parts


def stored_frame(record):
    """Magic, single segment with a one-byte content size, one stored block that is the last."""
    assert len(record) < 256
    header = (len(record) << 3 | 1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(record)]) + header + record


def stored(about, record):
    """The record as it is stored, and what to say of it."""
    if about["codec"] == "raw":
        return record, ""
    frozen = FROZEN[about["codec"]].get(record.hex())
    return (stored_frame(record), "") if frozen is None else (bytes.fromhex(frozen), ", frozen")


class File:
    """Bytes with a meaning for each part."""

    def __init__(self):
        self.lines, self.size = [], 0

    def put(self, at, data, meaning):
        for start in range(0, len(data), 32):
            shown = meaning if start == 0 else ""
            self.lines.append(f"{at + start:04x} {data[start : start + 32].hex()}  {shown}".rstrip())
        self.size = max(self.size, at + len(data))

    def end(self, data, meaning):
        self.put(self.size, data, meaning)


def build(about, appends, dictionary):
    meta, shards = File(), [File() for _ in range(about["dataShards"])]
    records = [record for append in appends for record in append]
    schema = schema_of(about)
    meta.put(0, struct.pack("<Q", len(records)), f"length {len(records)}")
    schema_bytes = sum(len(part) for part, _ in schema)
    meta.put(8, struct.pack("<H", schema_bytes), f"schema_length {schema_bytes}")
    meta.put(10, bytes([about["dataShards"]]), "data_shards")
    meta.put(11, bytes([CODECS[about["codec"]]]), f"codec {about['codec']}")
    locations = []
    for index, (dims, items) in enumerate(records):
        shard = shards[index % len(shards)]
        record = header_of(about, dims) + items
        part, remark = stored(about, record)
        location = struct.pack("<QII", shard.size, len(part), len(record))
        sizes = f"{len(part)} stored, {len(record)} logical"
        locations.append((location, f"record {index}: offset {shard.size}, {sizes}"))
        shard.end(part, f"record {index}, shape {dims}{remark}")
    for index, shard in enumerate(shards):
        meta.put(16 + 8 * index, struct.pack("<Q", shard.size), f"tail of shard {index}")
    at = 2056
    for part, meaning in schema:
        meta.put(at, part, meaning)
        at += len(part)
    meta.size = PAGE_BYTES
    for location, meaning in locations:
        meta.end(location, meaning)
    files = {"meta.zr": meta, **{f"data_{index}.zr": shard for index, shard in enumerate(shards)}}
    if dictionary is not None:
        files["dict.zr"] = File()
        files["dict.zr"].put(0, dictionary, "raw content")
    return files


def header_of(about, dims):
    if about["kind"] == "dense":
        return b""
    return struct.pack(f"<{len(dims)}{'I' if about['dialect'] == '2.8' else 'Q'}", *dims)


def text_of(name, about, appends, dictionary):
    files = build(about, appends, dictionary)
    lines = [f"# {name}: made by make.py, see there. What is created, what is appended, the files of it."]
    lines.append(f"create {json.dumps(about)}")
    if dictionary is not None:
        lines.append(f"dict {dictionary.hex()}")
    for append in appends:
        lines.append("append")
        lines.extend(f"record {json.dumps(dims, separators=(',', ':'))} {items.hex()}" for dims, items in append)
    for file, content in files.items():
        lines.append(f"file {file} {content.size}")
        lines.extend(content.lines)
    return "\n".join(lines) + "\n"


def counted(shape, form, first):
    """A record of consecutive numbers."""
    count = 1
    for size in shape:
        count *= size
    return shape, struct.pack(f"{form[0]}{count}{form[1]}", *range(first, first + count))


def words(first, count):
    """An item of text from WORDS, so that the dictionary and repeats have something to find."""
    chosen = b" ".join((WORDS.split() * 3)[first : first + count])
    return [len(chosen)], chosen


def row(text, size):
    """One dense record of text, filled with dots."""
    return [size], text.ljust(size, b".")


SENTENCE = b"to be or not to be, that is the question; to be or not to be"

CONTAINERS = {
    "dense-raw-24": (
        {"kind": "dense", "dtype": "numpy:>f4", "itemShape": [2, 2], "codec": "raw", "dataShards": 2},
        [[counted([2, 2], ">f", 1), counted([2, 2], ">f", 5)], [counted([2, 2], ">f", index) for index in (9, 13, 17)]],
    ),
    "dense-zstd-24": (
        {"kind": "dense", "dtype": "uint8", "itemShape": [200], "codec": "zstd", "dataShards": 3},
        [[row(SENTENCE, 200), row(b"", 200)], [row(bytes(range(200)), 200), row(SENTENCE * 2, 200)]],
    ),
    "dense-zstd_dict-24": (
        {"kind": "dense", "dtype": "uint8", "itemShape": [40], "codec": "zstd_dict", "dataShards": 1},
        [[row(words(index, 4)[1], 40) for index in range(3)]],
    ),
    "ragged-raw-24": (
        {"kind": "ragged", "dtype": "int16", "ndim": 2, "codec": "raw", "dataShards": 4},
        [[counted([1, 3], "<h", -3)], [counted([2, 1], "<h", 300), counted([1, 1], "<h", 7)]],
    ),
    "ragged-zstd-24": (
        {"kind": "ragged", "dtype": "uint8", "ndim": 1, "codec": "zstd", "dataShards": 2},
        [[([1], b"\xff"), ([60], SENTENCE)], [words(0, 12), ([2], b"ab"), ([300], bytes(300))]],
    ),
    "ragged-zstd_dict-24": (
        {"kind": "ragged", "dtype": "uint8", "ndim": 1, "codec": "zstd_dict", "dataShards": 2},
        [[words(index, 5 + index) for index in range(4)], [([1], b"\x00")]],
    ),
    "dense-raw-28": (
        {"kind": "dense", "dtype": "bfloat16", "itemShape": [], "codec": "raw", "dataShards": 3},
        [[counted([], "<H", 0x3F80 + index) for index in range(7)]],
    ),
    "dense-zstd-28": (
        {"kind": "dense", "dtype": "int16", "itemShape": [3], "codec": "zstd", "dataShards": 2},
        [[counted([3], "<h", index) for index in (-2, 250, 32000)]],
    ),
    "dense-zstd_dict-28": (
        {"kind": "dense", "dtype": "uint8", "itemShape": [6], "codec": "zstd_dict", "dataShards": 2},
        [[row(b"one", 6), row(b"twelve", 6)], [row(b"\x00\xff", 6)]],
    ),
    "ragged-raw-28": (
        {"kind": "ragged", "dtype": "float64", "ndim": 3, "codec": "raw", "dataShards": 2},
        [[counted([1, 2, 1], "<d", 0)], [counted([1, 1, 3], "<d", -1), counted([2, 1, 1], "<d", 8)]],
    ),
    "ragged-zstd-28": (
        {"kind": "ragged", "dtype": "uint8", "ndim": 1, "codec": "zstd", "dataShards": 1},
        [[([2], b"ab"), ([1], b"\x80"), ([60], SENTENCE)]],
    ),
    "ragged-zstd_dict-28": (
        {"kind": "ragged", "dtype": "uint32", "ndim": 2, "codec": "zstd_dict", "dataShards": 2},
        [[counted([1, 1], "<I", 5), ([1, 4], b"four five six se"), counted([2, 2], "<I", 70000)]],
    ),
}


def main():
    here = pathlib.Path(__file__).parent
    stale = 0
    for name, (about, appends) in CONTAINERS.items():
        about = {**about, "dialect": "2.8" if name.endswith("28") else "2.4"}
        text = text_of(name, about, appends, WORDS if about["codec"] == "zstd_dict" else None)
        file = here / f"{name}.hex"
        if "--check" not in sys.argv:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            print(f"{file.name} is not what make.py writes")
            stale += 1
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
