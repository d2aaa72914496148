"""A second reader of containers, written from the format's description and sharing no code with the
package: what this one reads and refuses, the package must read and refuse too.

Deliberately plain: bytes in memory, one record at a time, no speed. It goes beyond the description
where the package promises to (refused are a build that was never published, a repeated schema field
and an empty dictionary), and names refusals by the package's codes.

NumPy says which texts are dtypes, zstandard decodes frames; without them that part is unknown.
"""

import json
import math
import struct

try:
    import numpy
except ImportError:
    numpy = None
import zstd_once

PAGE_BYTES = 4096
SCHEMA_AT = 2056
SCHEMA_BYTES_MAX = 2040
SHARDS_MAX = 255
RECORD_BYTES_MAX = 2**31
FILE_OFFSET_MAX = 2**63 - 1
DICT_BYTES_MAX = 48 << 20
DICT_MAGIC = b"\x37\xa4\x30\xec"
RAW, ZSTD, ZSTD_DICT = 0, 1, 2

# Names of the newer dialect and their items' bytes.
NAMES_28 = {
    "bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
    "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16, "bfloat16": 2,
    "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1, "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
}


class Refused(Exception):
    """Its argument is the package's code for it."""


class Unknown(Exception):
    """It cannot be told without a library that is not here."""


class MsgPack:
    """Maps, arrays, texts and integers: a schema holds nothing else."""

    SIZED = {
        0xD9: ("str", 1), 0xDA: ("str", 2), 0xDB: ("str", 4), 0xDC: ("array", 2),
        0xDD: ("array", 4), 0xDE: ("map", 2), 0xDF: ("map", 4),
    }
    INTEGERS = {
        0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
        0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
    }

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise Refused("MALFORMED")
        self.at += count
        return self.data[self.at - count : self.at]

    def value(self, depth=0):
        tag = self.take(1)[0]
        if tag <= 0x7F or tag >= 0xE0:
            return tag if tag <= 0x7F else tag - 256
        if tag in self.INTEGERS:
            form = self.INTEGERS[tag]
            return struct.unpack(form, self.take(struct.calcsize(form)))[0]
        if tag in self.SIZED:
            kind, width = self.SIZED[tag]
            size = int.from_bytes(self.take(width), "big")
        elif tag <= 0x8F:
            kind, size = "map", tag & 0x0F
        elif tag <= 0x9F:
            kind, size = "array", tag & 0x0F
        elif tag <= 0xBF:
            kind, size = "str", tag & 0x1F
        else:
            raise Refused("MALFORMED")
        if kind == "str":
            try:
                return self.take(size).decode()
            except UnicodeDecodeError:
                raise Refused("MALFORMED") from None
        if (kind == "map") != (depth == 0) or depth > 1 or size > 64:
            raise Refused("MALFORMED")
        if kind == "array":
            return [self.value(2) for _ in range(size)]
        return unique([(self.value(2), self.value(1)) for _ in range(size)])


def unique(pairs):
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Refused("MALFORMED")
    return fields


def is_integer(value, least, most):
    return type(value) is int and least <= value <= most


def item_bytes_of(text):
    """NumPy's reading of a dtype text: its own spelling of it, and the bytes of an item."""
    if numpy is None:
        raise Unknown
    # These have 4 or 8 bytes, depending on the platform; the package refuses to guess. And a single
    # control character is a number of a type inside NumPy, which is an accident.
    kind = text.lstrip("<>=|")
    if kind in ("l", "L", "long", "ulong") or (len(kind) == 1 and kind < " "):
        raise Refused("UNSUPPORTED")
    try:
        dtype = numpy.dtype(text)
    except Exception:
        raise Refused("MALFORMED") from None
    if dtype.hasobject or dtype.names is not None or dtype.subdtype is not None:
        raise Refused("UNSUPPORTED")
    if dtype.itemsize == 0:
        raise Refused("MALFORMED")
    return dtype.str, dtype.itemsize


class Schema:
    def __init__(self, data):
        self.is_json = data[0] == 0x7B
        try:
            if self.is_json:
                fields = json.loads(data.decode(), object_pairs_hook=unique)
            else:
                reader = MsgPack(data)
                fields = reader.value()
                if reader.at != len(data):
                    raise Refused("MALFORMED")
        except (ValueError, RecursionError):
            raise Refused("MALFORMED") from None
        if type(fields) is not dict or type(fields.get("dtype")) is not str:
            raise Refused("MALFORMED")
        if self.is_json:
            self.dtype = fields["dtype"]
            if self.dtype not in NAMES_28:
                raise Refused("MALFORMED")
            self.item_bytes = NAMES_28[self.dtype]
        else:
            self.dtype, self.item_bytes = item_bytes_of(fields["dtype"])
        self.is_dense = "item_shape" in fields
        wanted = {"dtype"}
        if self.is_dense:
            wanted.add("item_shape")
        if not self.is_dense or not self.is_json:
            wanted.add("ndim")
        if set(fields) != wanted:
            raise Refused("MALFORMED")
        if self.is_dense:
            self.read_shape(fields)
        else:
            self.shape = fields["ndim"]
            if not is_integer(self.shape, 1, 64):
                raise Refused("MALFORMED")

    def read_shape(self, fields):
        self.shape = fields["item_shape"]
        if type(self.shape) is not list or len(self.shape) > 63:
            raise Refused("MALFORMED")
        if not all(is_integer(size, 1, RECORD_BYTES_MAX) for size in self.shape):
            raise Refused("MALFORMED")
        if "ndim" in fields and (type(fields["ndim"]) is not int or fields["ndim"] != len(self.shape)):
            raise Refused("MALFORMED")
        self.record_bytes = math.prod(self.shape) * self.item_bytes
        if self.record_bytes > RECORD_BYTES_MAX:
            raise Refused("MALFORMED")


# ---- container ----


class Container:
    """`files` maps each name in the folder to its bytes, or to a word for what is no regular file."""

    def __init__(self, files):
        self.files = files
        meta = self.regular("meta.zr")
        if meta is None:
            raise Refused("NOT_FOUND")
        if len(meta) < PAGE_BYTES:
            raise Refused("MALFORMED")
        self.length, schema_length, shards, self.codec, reserved = struct.unpack("<QHBBI", meta[:16])
        self.tails = struct.unpack("<255Q", meta[16:SCHEMA_AT])
        if self.length == 0 and schema_length == 0:
            raise Refused("NOT_PUBLISHED")
        if self.codec > 2 or not 1 <= schema_length <= SCHEMA_BYTES_MAX or shards == 0 or reserved:
            raise Refused("MALFORMED")
        if any(self.tails[shards:]) or any(tail > FILE_OFFSET_MAX for tail in self.tails):
            raise Refused("MALFORMED")
        table_end = PAGE_BYTES + 16 * self.length
        if table_end > FILE_OFFSET_MAX:
            raise Refused("MALFORMED")
        expected = [f"data_{shard}.zr" for shard in range(shards)]
        if any(name.startswith("data_") and name not in expected for name in files):
            raise Refused("MALFORMED")
        self.shards = []
        for name, tail in zip(expected, self.tails):
            self.shards.append(self.regular(name))
            if self.shards[-1] is None or len(self.shards[-1]) < tail:
                raise Refused("MALFORMED")
        if len(meta) < table_end:
            raise Refused("MALFORMED")
        if self.length == 0 and (any(self.shards) or len(meta) > table_end):
            raise Refused("NOT_PUBLISHED")
        self.decompressor = self.prepare()
        self.meta = meta
        self.schema = Schema(meta[SCHEMA_AT : SCHEMA_AT + schema_length])

    def regular(self, name):
        """The bytes of a file; None when there is none."""
        content = self.files.get(name)
        if content in (None, "dangling"):
            return None
        if content == "loop":
            raise Refused("IO")
        if isinstance(content, str):
            raise Refused("MALFORMED")
        return content

    def prepare(self):
        """What decodes frames; judges the dictionary."""
        content = self.regular("dict.zr")
        if (content is None) == (self.codec == ZSTD_DICT) or content == b"":
            raise Refused("DICTIONARY")
        if content is not None and len(content) > DICT_BYTES_MAX:
            raise Refused("TOO_LARGE")
        if self.codec == RAW:
            return None
        if zstd_once.is_missing:
            if (content or b"").startswith(DICT_MAGIC):
                raise Unknown
            return None
        decompressor = zstd_once.decompressor_for(content)
        if decompressor is None:
            raise Refused("DICTIONARY")
        return decompressor

    def record(self, index):
        """Dimensions and items of one record."""
        at = PAGE_BYTES + 16 * index
        offset, stored_bytes, record_bytes = struct.unpack("<QII", self.meta[at : at + 16])
        shard = index % len(self.shards)
        if stored_bytes == 0 or not 1 <= record_bytes <= RECORD_BYTES_MAX:
            raise Refused("MALFORMED")
        if offset + stored_bytes > self.tails[shard]:
            raise Refused("MALFORMED")
        if self.codec == RAW and stored_bytes != record_bytes:
            raise Refused("MALFORMED")
        # What the sizes alone rule out is refused before anything is decoded. A block of 4 bytes or
        # more makes at most 128 KiB.
        if self.codec != RAW and record_bytes > (stored_bytes // 4 + 1) << 17:
            raise Refused("CODEC")
        schema = self.schema
        header_bytes = 0 if schema.is_dense else schema.shape * (4 if schema.is_json else 8)
        items_bytes = record_bytes - header_bytes
        if items_bytes <= 0 or items_bytes % schema.item_bytes:
            raise Refused("MALFORMED")
        if schema.is_dense and record_bytes != schema.record_bytes:
            raise Refused("MALFORMED")
        stored = self.shards[shard][offset : offset + stored_bytes]
        data = stored if self.codec == RAW else self.decoded(stored, record_bytes)
        if schema.is_dense:
            return schema.shape, data
        form = f"<{schema.shape}{'I' if schema.is_json else 'Q'}"
        dims = list(struct.unpack(form, data[:header_bytes]))
        if math.prod(dims) * schema.item_bytes != items_bytes:
            raise Refused("MALFORMED")
        return dims, data[header_bytes:]

    def decoded(self, stored, record_bytes):
        if zstd_once.is_missing:
            raise Unknown
        data = zstd_once.decode(self.decompressor, stored, record_bytes)
        if data is None or len(data) != record_bytes:
            raise Refused("CODEC")
        return data
