"""zstd frames decoded as zstd does it in one go, which is how the original and the package do it.

zstandard decodes in a stream, and a stream is stricter than one go in two places that no compressor
comes to: it holds a block against the declared window, and it takes a content size of 2^64 - 1, which
means "none" inside zstd, for a window of that size. So such frames get another header first.
"""

try:
    import zstandard
except ImportError:
    zstandard = None

is_missing = zstandard is None

MAGIC = b"\x28\xb5\x2f\xfd"
SINGLE_SEGMENT = 0x20
# 128 MiB: more than any block, and than any record here.
WINDOW = b"\x88"
# The largest exponent of a window that zstd takes at all: 2^31 bytes.
EXPONENT_MAX = 21


def decompressor_for(dictionary):
    """A decompressor with a dictionary's bytes, or with none. None: zstd cannot use the dictionary."""
    if dictionary is None:
        return zstandard.ZstdDecompressor(max_window_size=2**31)
    prepared = zstandard.ZstdCompressionDict(dictionary)
    try:
        decompressor = zstandard.ZstdDecompressor(dict_data=prepared, max_window_size=2**31)
        decompressor.decompressobj()
    except zstandard.ZstdError:
        return None
    return decompressor


def decode(decompressor, frames, wanted_bytes):
    """What all frames decode to, one after the other, or more than is wanted of it. None: they do not."""
    decoded = b""
    while frames and len(decoded) <= wanted_bytes:
        frame = decompressor.decompressobj()
        try:
            decoded += frame.decompress(lenient(frames))
        except zstandard.ZstdError:
            return None
        if not frame.eof:
            return None
        frames = frame.unused_data
    return None if frames else decoded


def lenient(frames):
    """The same frames, the first with a header that says the same to a stream as it did in one go."""
    if len(frames) < 6 or not frames.startswith(MAGIC):
        return frames
    descriptor = frames[4]
    if not descriptor & SINGLE_SEGMENT:
        if frames[5] >> 3 > EXPONENT_MAX:
            return frames
        return frames[:5] + WINDOW + frames[6:]
    size_at = 5 + (0, 1, 2, 4)[descriptor & 3]
    if descriptor >> 6 == 3 and frames[size_at : size_at + 8] == b"\xff" * 8:
        no_size = bytes([descriptor & ~0xE0 & 0xFF])
        return MAGIC + no_size + WINDOW + frames[5:size_at] + frames[size_at + 8 :]
    return frames
