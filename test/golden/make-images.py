"""Makes images.json: small pictures, and what Pillow and NumPy read of them.

    pip install pillow==13.0.0 numpy==2.4.6
    python test/golden/make-images.py > test/golden/images.json

Each case has the picture's bytes and one of

* `pixels`: dtype, shape and SHA-256 of `np.asarray` of the picture, turned upright as `datasets` does it. With
  `lossless` what the file holds, where Pillow would cut 16 bits to 8;
* `code`: the picture is refused with it. `says` is part of the message.

Pillow's encoders may change from version to version. That does not matter: the bytes are kept, and what is
compared is how they are decoded.
"""

import base64
import hashlib
import io
import json
import struct
import sys
import zlib

import numpy as np
from PIL import Image, ImageCms, ImageOps

cases = []
seen = set()


def picture(height, width, channels, top=256):
    """Smooth with some noise, and no two of the eight ways to turn it are alike."""
    random = np.random.default_rng(height * 1000 + width * 10 + channels)
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    values = x * 7 * top // 256 + y * 13 * top // 256 + c * 61 * top // 256
    values = values + random.integers(0, max(2, top // 12), values.shape)
    values = values % top
    return values.astype(np.uint16 if top > 256 else np.uint8)


def upright(data, mode=None):
    """What datasets' Image feature and NumPy's formatter make of it."""
    image = Image.open(io.BytesIO(data))
    image.load()
    if image.getexif().get(0x0112) is not None:
        image = ImageOps.exif_transpose(image)
    if mode is not None and image.mode != mode:
        image = image.convert(mode)
    return np.asarray(image)


def pixels_of(array):
    array = np.ascontiguousarray(array)
    little = array.astype(array.dtype.newbyteorder("<"))
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "sha256": hashlib.sha256(little.tobytes()).hexdigest(),
    }


def add(name, data, **more):
    assert name not in seen, name
    seen.add(name)
    case = {"name": name, **more}
    if "code" not in more and "pixels" not in more:
        case["pixels"] = pixels_of(upright(data, more.get("mode")))
    case["bytes"] = base64.b64encode(data).decode()
    cases.append(case)


def lossless(name, data, array):
    add(name, data, lossless=True, pixels=pixels_of(array))


def refused(name, data, code, says):
    add(name, data, code=code, says=says)


# PNG, written by hand: Pillow writes few of its kinds.

GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = bytes((i * 37 + j * 91) % 256 for i in range(256) for j in range(3))


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def packed_row(row, depth):
    """One row of samples as PNG stores it."""
    flat = row.reshape(-1)
    if depth == 16:
        return flat.astype(">u2").tobytes()
    if depth == 8:
        return flat.astype(np.uint8).tobytes()
    bits = "".join(format(int(value), f"0{depth}b") for value in flat)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


def paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def filtered(rows, step, first=0):
    """Every filter in turn, so that all five occur."""
    out = bytearray()
    above = bytes(len(rows[0])) if rows else b""
    for index, row in enumerate(rows):
        kind = (index + first) % 5
        out.append(kind)
        for i, value in enumerate(row):
            a = row[i - step] if i >= step else 0
            b = above[i]
            c = above[i - step] if i >= step else 0
            guess = (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]
            out.append((value - guess) & 255)
        above = row
    return bytes(out)


def scanlines(array, depth, interlaced):
    channels = 1 if array.ndim == 2 else array.shape[2]
    step = max(1, depth * channels // 8)
    passes = PASSES if interlaced else [(0, 0, 1, 1)]
    out = b""
    for number, (x, y, dx, dy) in enumerate(passes):
        part = array[y::dy, x::dx]
        if part.shape[0] > 0 and part.shape[1] > 0:
            out += filtered([packed_row(row, depth) for row in part], step, number)
    return out


def png(array, depth, colour, interlaced=False, before=b"", after=b"", idats=1, trailing=b""):
    height, width = array.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    stream = zlib.compress(scanlines(array, depth, interlaced), 9)
    size = -(-len(stream) // idats)
    parts = [stream[i : i + size] for i in range(0, len(stream), size)]
    out = SIGNATURE + chunk(b"IHDR", header)
    if colour == PALETTE:
        out += chunk(b"PLTE", COLOURS[: 3 * min(256, 1 << depth)])
    out += before
    for part in parts:
        out += chunk(b"IDAT", part)
    return out + after + chunk(b"IEND", b"") + trailing


def samples(height, width, depth, colour):
    array = picture(height, width, CHANNELS[colour], 1 << depth)
    return array[:, :, 0] if CHANNELS[colour] == 1 else array


KINDS = {
    "grey": (GREY, (1, 2, 4, 8, 16)),
    "rgb": (RGB, (8, 16)),
    "palette": (PALETTE, (1, 2, 4, 8)),
    "la": (GREY_ALPHA, (8, 16)),
    "rgba": (RGBA, (8, 16)),
}

for name, (colour, depths) in KINDS.items():
    for depth in depths:
        for height, width in ((7, 13), (9, 5)):
            for interlaced in (False, True):
                array = samples(height, width, depth, colour)
                data = png(array, depth, colour, interlaced)
                label = f"png {name} {depth} {height}x{width}{' interlaced' if interlaced else ''}"
                if depth == 16 and colour != GREY:
                    lossless(label, data, array)
                else:
                    add(label, data)

rgb = samples(7, 13, 8, RGB)
for height, width in ((1, 1), (1, 9), (9, 1), (3, 2)):
    for interlaced in (False, True):
        label = f"png rgb {height}x{width}{' interlaced' if interlaced else ''}"
        add(label, png(samples(height, width, 8, RGB), 8, RGB, interlaced))
        label = f"png palette 2 {height}x{width}{' interlaced' if interlaced else ''}"
        add(label, png(samples(height, width, 2, PALETTE), 2, PALETTE, interlaced))

# Large enough that another decoder takes them, or that they are inflated on another thread.
for name, depth in (("grey", 8), ("grey", 16), ("rgb", 8), ("rgb", 16), ("rgba", 8), ("rgba", 16), ("la", 8), ("palette", 8)):
    colour = KINDS[name][0]
    array = np.tile(samples(8, 16, depth, colour), (16, 16) + ((1,) if CHANNELS[colour] > 1 else ()))
    array = np.roll(array, 3, axis=0)
    for interlaced in (False, True):
        data = png(array, depth, colour, interlaced)
        label = f"png {name} {depth} {array.shape[0]}x{array.shape[1]}{' interlaced' if interlaced else ''}"
        if depth == 16 and colour != GREY:
            lossless(label, data, array)
        else:
            add(label, data)
wide = np.roll(np.tile(rgb, (12, 10, 1)), 5, axis=1)

grey = samples(7, 13, 8, GREY)
icc = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
colour_chunks = (
    chunk(b"gAMA", struct.pack(">I", 100000))
    + chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000))
    + chunk(b"iCCP", b"icc\0\0" + zlib.compress(icc))
)
for label, array in (("", rgb), (" large", wide)):
    add(f"png gamma, chromaticities and ICC{label}", png(array, 8, RGB, before=colour_chunks))
    add(f"png rgb with tRNS{label}", png(array, 8, RGB, before=chunk(b"tRNS", struct.pack(">3H", *[int(v) for v in array[0, 0]]))))
    add(f"png damaged ICC{label}", png(array, 8, RGB, before=chunk(b"iCCP", b"icc\0\0nonsense")))
add("png sRGB and sBIT", png(rgb, 8, RGB, before=chunk(b"sRGB", b"\0") + chunk(b"sBIT", b"\5\6\5")))
add("png grey with tRNS", png(grey, 8, GREY, before=chunk(b"tRNS", struct.pack(">H", int(grey[0, 0])))))
add("png grey 16 with tRNS", png(samples(7, 13, 16, GREY), 16, GREY, before=chunk(b"tRNS", struct.pack(">H", 7))))
add("png grey 1 with tRNS", png(samples(7, 13, 1, GREY), 1, GREY, before=chunk(b"tRNS", struct.pack(">H", 1))))
add("png palette with tRNS", png(samples(7, 13, 8, PALETTE), 8, PALETTE, before=chunk(b"tRNS", bytes(range(0, 250, 5)))))
add("png background and time", png(rgb, 8, RGB, before=chunk(b"bKGD", struct.pack(">3H", 1, 2, 3)), after=chunk(b"tIME", b"\x07\xe0\1\1\1\1\1")))
add("png in seven IDAT", png(rgb, 8, RGB, idats=7))
add("png in seven IDAT, large", png(wide, 8, RGB, idats=7))
add("png with bytes after IEND", png(rgb, 8, RGB, trailing=b"and more\0\xff"))
add("png without IEND", png(rgb, 8, RGB)[:-12])
add("png without IEND, large", png(wide, 8, RGB)[:-12])
add("png with a text", png(rgb, 8, RGB, before=chunk(b"tEXt", b"Comment\0said here")))
frames = [Image.fromarray(np.roll(rgb, n, axis=0)) for n in range(3)]
buffer = io.BytesIO()
frames[0].save(buffer, "PNG", save_all=True, append_images=frames[1:])
add("png animated", buffer.getvalue())


def exif(orientation, order="<", kind=3, extra=b"", prefix=b""):
    """A TIFF header with one tag."""
    value = struct.pack(order + {3: "HH", 4: "I", 1: "BBH"}[kind], *((orientation, 0) if kind == 3 else (orientation,) if kind == 4 else (orientation, 0, 0)))
    mark = b"II" if order == "<" else b"MM"
    return (
        prefix
        + mark
        + struct.pack(order + "HI", 42, 8)
        + struct.pack(order + "H", 1)
        + struct.pack(order + "HHI", 0x0112, kind, 1)
        + value
        + struct.pack(order + "I", 0)
        + extra
    )


def xmp(orientation, as_element=False):
    said = f"<tiff:Orientation>{orientation}</tiff:Orientation>" if as_element else f'<rdf:Description tiff:Orientation="{orientation}"/>'
    return f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF>{said}</rdf:RDF></x:xmpmeta>'.encode()


for orientation in range(0, 10):
    add(f"png eXIf {orientation}", png(rgb, 8, RGB, before=chunk(b"eXIf", exif(orientation))))
    add(f"png eXIf {orientation} large", png(wide, 8, RGB, before=chunk(b"eXIf", exif(orientation, ">"))))
for name, (colour, depths) in KINDS.items():
    for depth in depths:
        array = samples(7, 13, depth, colour)
        data = png(array, depth, colour, before=chunk(b"eXIf", exif(6)))
        if depth == 16 and colour != GREY:
            lossless(f"png {name} {depth} turned", data, np.rot90(array, -1))
        else:
            add(f"png {name} {depth} turned", data)
large16 = np.tile(samples(8, 8, 16, RGB), (16, 8, 1))
lossless("png rgb 16 turned, large", png(large16, 16, RGB, before=chunk(b"eXIf", exif(8))), np.rot90(large16, 1))
add("png eXIf after the pixels", png(rgb, 8, RGB, after=chunk(b"eXIf", exif(5))))
add("png eXIf as LONG", png(rgb, 8, RGB, before=chunk(b"eXIf", exif(6, kind=4))))
add("png eXIf as BYTE", png(rgb, 8, RGB, before=chunk(b"eXIf", exif(6, kind=1))))
itxt = b"XML:com.adobe.xmp\0"
add("png XMP", png(rgb, 8, RGB, before=chunk(b"iTXt", itxt + b"\0\0\0\0" + xmp(7))))
add("png XMP compressed", png(rgb, 8, RGB, before=chunk(b"iTXt", itxt + b"\1\0\0\0" + zlib.compress(xmp(3, True)))))
add("png XMP after eXIf that has none", png(rgb, 8, RGB, before=chunk(b"eXIf", exif(1)) + chunk(b"iTXt", itxt + b"\0\0\0\0" + xmp(7))))
profile = b"Exif\0\0" + exif(6)
raw_profile = f"\nexif\n{len(profile):8}\n".encode() + b"\n".join(
    profile.hex().encode()[i : i + 72] for i in range(0, len(profile.hex()), 72)
) + b"\n"
add("png raw profile", png(rgb, 8, RGB, before=chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(raw_profile))))
add("png raw profile as tEXt", png(rgb, 8, RGB, before=chunk(b"tEXt", b"Raw profile type exif\0" + raw_profile)))

# PNG that is none.
good = png(rgb, 8, RGB)
at = good.index(b"IDAT")
large = png(wide, 8, RGB)
refused("png of 0 bytes", b"", "MALFORMED", "no bytes")
refused("png signature alone", SIGNATURE, "MALFORMED", "PNG")
refused("png ends in IHDR", good[:20], "MALFORMED", "PNG")
refused("png ends before IDAT", good[: at - 4], "MALFORMED", "PNG")
refused("png ends in IDAT", good[: at + 40], "MALFORMED", "PNG")
refused("png ends in IDAT, large", large[: len(large) // 2], "MALFORMED", "PNG")
refused("png with a wrong CRC", good[:30] + b"\0" + good[31:], "MALFORMED", "PNG")
refused("png with a flipped bit", good[: at + 30] + bytes([good[at + 30] ^ 4]) + good[at + 31 :], "MALFORMED", "PNG")
flip = len(large) // 2
refused("png with a flipped bit, large", large[:flip] + bytes([large[flip] ^ 4]) + large[flip + 1 :], "MALFORMED", "PNG")


def png_of(stream, width=13, height=7, depth=8, colour=RGB, rest=(0, 0, 0), before=b""):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, *rest)
    return SIGNATURE + chunk(b"IHDR", header) + before + chunk(b"IDAT", zlib.compress(stream, 9)) + chunk(b"IEND", b"")


lines = scanlines(rgb, 8, False)
refused("png with a row too few", png_of(lines[:-40]), "MALFORMED", "PNG")
refused("png with a byte too few", png_of(lines[:-1]), "MALFORMED", "PNG")
refused("png that is a bomb inside", png_of(lines + bytes(3_000_000)), "MALFORMED", "PNG")
refused("png with filter 5", png_of(b"\5" + lines[1:]), "MALFORMED", "PNG")
refused("png of no width", png_of(b"", width=0), "MALFORMED", "PNG")
refused("png of no height", png_of(b"", height=0), "MALFORMED", "PNG")
refused("png of 3 bits", png_of(lines, depth=3), "MALFORMED", "PNG")
refused("png rgb of 4 bits", png_of(lines, depth=4), "MALFORMED", "PNG")
refused("png of colour type 5", png_of(lines, colour=5), "MALFORMED", "PNG")
refused("png with compression 1", png_of(lines, rest=(1, 0, 0)), "MALFORMED", "PNG")
refused("png with interlace 2", png_of(lines, rest=(0, 0, 2)), "MALFORMED", "PNG")
refused("png palette without PLTE", png_of(scanlines(grey, 8, False), colour=PALETTE), "MALFORMED", "PNG")
refused("png of 2^31 - 1 squared", png_of(lines, width=2**31 - 1, height=2**31 - 1), "TOO_LARGE", "maxPixels")
refused("png of 20000 x 20000", png_of(lines, width=20000, height=20000), "TOO_LARGE", "maxPixels")
refused("png without IDAT", SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 3, 8, 2, 0, 0, 0)) + chunk(b"IEND", b""), "MALFORMED", "PNG")
refused(
    "png with a bomb for a text",
    png(rgb, 8, RGB, before=chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(bytes(3_000_000), 9))),
    "TOO_LARGE",
    "text",
)

# JPEG


def jpeg(array, **options):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "JPEG", **{"quality": 88, **options})
    return buffer.getvalue()


def with_segment(data, marker, body):
    return data[:2] + b"\xff" + bytes([marker]) + struct.pack(">H", len(body) + 2) + body + data[2:]


photo = picture(21, 19, 3)
for label, options in {
    "4:4:4": {"subsampling": 0},
    "4:2:2": {"subsampling": 1},
    "4:2:0": {"subsampling": 2},
    "progressive": {"progressive": True},
    "optimised": {"optimize": True},
    "restart markers": {"restart_marker_blocks": 1},
    "quality 100": {"quality": 100},
    "quality 10": {"quality": 10},
    "ICC": {"icc_profile": icc},
    "damaged ICC": {"icc_profile": b"no profile at all " * 9},
    "comment": {"comment": b"a comment"},
    "RGB inside": {"keep_rgb": True},
    "density": {"dpi": (300, 300)},
}.items():
    add(f"jpeg {label}", jpeg(photo, **options))
for height, width in ((1, 1), (8, 8), (16, 16), (17, 33), (40, 7)):
    add(f"jpeg {height}x{width}", jpeg(picture(height, width, 3)))
    add(f"jpeg grey {height}x{width}", jpeg(picture(height, width, 1)[:, :, 0]))
    add(f"jpeg progressive {height}x{width}", jpeg(picture(height, width, 3), progressive=True))
plain = jpeg(photo)
for orientation in range(0, 10):
    add(f"jpeg EXIF {orientation}", jpeg(photo, exif=b"Exif\0\0" + exif(orientation)))
    add(f"jpeg progressive EXIF {orientation}", jpeg(photo, progressive=True, exif=b"Exif\0\0" + exif(orientation, ">")))
    add(f"jpeg grey EXIF {orientation}", jpeg(photo[:, :, 0], exif=b"Exif\0\0" + exif(orientation, ">")))
add("jpeg EXIF as LONG", jpeg(photo, exif=b"Exif\0\0" + exif(6, kind=4)))
add("jpeg EXIF in two segments", with_segment(with_segment(plain, 0xE1, b"Exif\0\0" + exif(6)[20:]), 0xE1, b"Exif\0\0" + exif(6)[:20]))
for label, count in (("no value", 0), ("two values", 2), ("three values", 3), ("more values than bytes", 9000)):
    tag = bytearray(exif(6))
    tag[14:18] = struct.pack("<I", count)
    add(f"jpeg EXIF of {label}", jpeg(photo, exif=b"Exif\0\0" + bytes(tag)))
add("jpeg with bytes between segments", plain[:20] + b"\0\1\2" + plain[20:])
add("jpeg with a restart in its header", plain[:20] + b"\xff\xd3" + plain[20:])
add("jpeg EXIF twice prefixed", with_segment(plain, 0xE1, b"Exif\0\0Exif\0\0" + exif(8)))
add("jpeg EXIF that is cut", with_segment(plain, 0xE1, b"Exif\0\0" + exif(8)[:15]))
add("jpeg EXIF that is empty", with_segment(plain, 0xE1, b"Exif\0\0"))
add("jpeg XMP", with_segment(plain, 0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp(6)))
add("jpeg XMP element", with_segment(plain, 0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp(5, True)))
add("jpeg XMP beside EXIF", with_segment(jpeg(photo, exif=b"Exif\0\0" + exif(1)), 0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp(6)))
buffer = io.BytesIO()
Image.fromarray(photo).save(buffer, "MPO", save_all=True, append_images=[Image.fromarray(photo[::-1])])
add("jpeg of several pictures (MPO)", buffer.getvalue())
add("jpeg with bytes after its end", plain + b"and more\xff\xd8\xff")
add("jpeg with bytes before its end", plain[:-2] + b"\0\1\2" + plain[-2:])
add("jpeg with fill bytes", plain[:2] + b"\xff\xff\xff" + plain[2:])
layers = jpeg(photo, progressive=True)
second = layers.index(b"\xff\xda", layers.index(b"\xff\xda") + 2)
add("jpeg progressive with bytes between its scans", layers[:second] + b"\0\1\2" + layers[second:])
scan = plain.index(b"\xff\xda")
add("jpeg of an unusual scan header", plain[: scan + 11] + b"\1\x20\0" + plain[scan + 14 :])
jfif = plain.index(b"JFIF\0")
add("jpeg of JFIF 3", plain[: jfif + 5] + b"\3" + plain[jfif + 6 :])
adobe_name = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\7"
add("jpeg of an unknown Adobe transform", plain[:2] + adobe_name + plain[2:])
restarts = jpeg(picture(40, 64, 3), restart_marker_blocks=1)
third = restarts.index(b"\xff\xd2")
add("jpeg with bytes before a restart", restarts[:third] + b"\0\1\2" + restarts[third:])
cmyk = np.asarray(Image.fromarray(photo).convert("CMYK")).copy()
cmyk[:, :, 3] = picture(21, 19, 1)[:, :, 0]
buffer = io.BytesIO()
Image.fromarray(cmyk, "CMYK").save(buffer, "JPEG", quality=90)
inks = buffer.getvalue()
add("jpeg CMYK", inks)
add("jpeg CMYK with ICC", with_segment(inks, 0xE2, b"ICC_PROFILE\0\1\1" + icc))
adobe = inks.index(b"\xff\xee")
length = struct.unpack(">H", inks[adobe + 2 : adobe + 4])[0]
add("jpeg CMYK without Adobe's segment", inks[:adobe] + inks[adobe + 2 + length :])
ycck = bytearray(inks)
ycck[adobe + 2 + length - 1] = 2
add("jpeg YCCK", bytes(ycck))
add("jpeg CMYK turned", with_segment(inks, 0xE1, b"Exif\0\0" + exif(6)))

refused("jpeg signature alone", b"\xff\xd8\xff", "MALFORMED", "JPEG")
refused("jpeg ends in its header", plain[:100], "MALFORMED", "JPEG")
refused("jpeg ends in its pixels", plain[: len(plain) * 3 // 4], "MALFORMED", "JPEG")
refused("jpeg without its end", plain[:-2], "MALFORMED", "JPEG")
refused("jpeg without a restart", restarts[: restarts.index(b"\xff\xd1")] + restarts[restarts.index(b"\xff\xd3") + 2 :], "MALFORMED", "JPEG")
refused("jpeg progressive that is cut", jpeg(photo, progressive=True)[:-40], "MALFORMED", "JPEG")
scan = plain.index(b"\xff\xda") + 14
refused("jpeg that ends too early", plain[: scan + 40] + b"\xff\xd9", "MALFORMED", "JPEG")
sof = plain.index(b"\xff\xc0")
refused("jpeg of 65500 x 65500", plain[: sof + 5] + struct.pack(">HH", 65500, 65500) + plain[sof + 9 :], "TOO_LARGE", "maxPixels")
refused("jpeg of no height", plain[: sof + 5] + b"\0\0" + plain[sof + 7 :], "MALFORMED", "JPEG")
refused("jpeg of 12 bits", plain[: sof + 4] + b"\x0c" + plain[sof + 5 :], "UNSUPPORTED", "12-bit JPEG")
refused("jpeg lossless", plain[: sof + 1] + b"\xc3" + plain[sof + 2 :], "UNSUPPORTED", "lossless JPEG")
refused("jpeg arithmetic", plain[: sof + 1] + b"\xc9" + plain[sof + 2 :], "UNSUPPORTED", "arithmetic")

# WebP


def webp(array, **options):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "WEBP", **options)
    return buffer.getvalue()


with_alpha = np.dstack([photo, picture(21, 19, 1)])
add("webp lossy", webp(photo, quality=80))
add("webp lossless", webp(photo, lossless=True))
add("webp lossy alpha", webp(with_alpha, quality=80))
add("webp lossless alpha", webp(with_alpha, lossless=True))
add("webp lossless alpha exact", webp(with_alpha, lossless=True, exact=True))
add("webp alpha that is opaque", webp(np.dstack([photo, np.full((21, 19), 255, np.uint8)]), lossless=True))
add("webp grey", webp(photo[:, :, 0], quality=80))
add("webp 1x1", webp(picture(1, 1, 3)))
add("webp ICC", webp(photo, icc_profile=icc))
for orientation in range(0, 10):
    add(f"webp EXIF {orientation}", webp(photo, exif=exif(orientation)))
add("webp lossless alpha turned", webp(with_alpha, lossless=True, exact=True, exif=b"Exif\0\0" + exif(6, ">")))
add("webp XMP", webp(photo, xmp=xmp(6)))
buffer = io.BytesIO()
frames = [Image.fromarray(np.roll(photo, n, axis=0)) for n in range(3)]
frames[0].save(buffer, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
animated = buffer.getvalue()
add("webp animated", animated)
buffer = io.BytesIO()
frames = [Image.fromarray(np.roll(with_alpha, n, axis=0)) for n in range(3)]
frames[0].save(buffer, "WEBP", save_all=True, append_images=frames[1:], quality=70)
add("webp animated alpha", buffer.getvalue())
frame = animated.index(b"ANMF") + 8
refused("webp animated, first picture beside the corner", animated[:frame] + b"\1" + animated[frame + 1 :], "UNSUPPORTED", "animated WebP")
lossy = webp(photo, quality=80)
refused("webp signature alone", b"RIFF\x10\0\0\0WEBP", "MALFORMED", "WebP")
refused("webp that is cut", lossy[: len(lossy) // 2], "MALFORMED", "WebP")
refused("webp lossless that is cut", webp(photo, lossless=True)[:-30], "MALFORMED", "WebP")
extended = bytearray(webp(photo, exif=exif(1)))
where = extended.index(b"VP8X") + 12
extended[where : where + 6] = b"\xff\x3f\x00\xff\x3f\x00"
refused("webp of 16384 x 16384", bytes(extended), "TOO_LARGE", "maxPixels")

# A mode that is asked for
modes = {
    "L": grey,
    "RGB": rgb,
    "RGBA": samples(7, 13, 8, RGBA),
    "LA": samples(7, 13, 8, GREY_ALPHA),
    "P": samples(7, 13, 8, PALETTE),
    "1": samples(7, 13, 1, GREY),
}
for source, array in modes.items():
    colour = {"L": GREY, "RGB": RGB, "RGBA": RGBA, "LA": GREY_ALPHA, "P": PALETTE, "1": GREY}[source]
    data = png(array, 1 if source == "1" else 8, colour)
    for target in ("L", "RGB", "RGBA", "LA"):
        add(f"mode {target} of {source}", data, mode=target)
add("mode L of jpeg", plain, mode="L")
add("mode RGB of jpeg grey", jpeg(photo[:, :, 0]), mode="RGB")
add("mode RGB of webp alpha", webp(with_alpha, lossless=True, exact=True), mode="RGB")
add("mode L of jpeg turned", jpeg(photo, exif=b"Exif\0\0" + exif(6)), mode="L")
add("mode RGB of palette 2 interlaced", png(samples(7, 13, 2, PALETTE), 2, PALETTE, True), mode="RGB")
add("mode RGB of RGB with tRNS", png(rgb, 8, RGB, before=chunk(b"tRNS", struct.pack(">3H", 1, 2, 3))), mode="RGB")
add("mode 1 of 1", png(samples(7, 13, 1, GREY), 1, GREY), mode="1")
add("mode P of P", png(samples(7, 13, 8, PALETTE), 8, PALETTE), mode="P")
add("mode I;16 of I;16", png(samples(7, 13, 16, GREY), 16, GREY), mode="I;16")
for label, data, target in (
    ("mode L of 16 bits", png(samples(7, 13, 16, GREY), 16, GREY), "L"),
    ("mode RGB of 16 bits", png(samples(7, 13, 16, RGB), 16, RGB), "RGB"),
    ("mode 1 of L", png(grey, 8, GREY), "1"),
    ("mode HSV of RGB", good, "HSV"),
    ("mode RGB of CMYK", inks, "RGB"),
    ("mode RGBA of RGB with tRNS", png(rgb, 8, RGB, before=chunk(b"tRNS", struct.pack(">3H", 1, 2, 3))), "RGBA"),
    ("mode RGBA of palette with tRNS", png(samples(7, 13, 8, PALETTE), 8, PALETTE, before=chunk(b"tRNS", b"\1\2\3")), "RGBA"),
):
    add(label, data, mode=target, code="UNSUPPORTED", says=target)

# Other formats are refused by name.
for label, kind, options in (
    ("BMP", "BMP", {}),
    ("GIF", "GIF", {}),
    ("TIFF", "TIFF", {}),
    ("ICO", "ICO", {"sizes": [(16, 16)]}),
    ("Netpbm", "PPM", {}),
    ("JPEG 2000", "JPEG2000", {}),
    ("AVIF", "AVIF", {}),
):
    buffer = io.BytesIO()
    Image.fromarray(photo).save(buffer, kind, **options)
    refused(f"other {label}", buffer.getvalue(), "UNSUPPORTED", label)
refused("other big-endian TIFF", b"MM\0\x2a\0\0\0\x08\0\0", "UNSUPPORTED", "TIFF")
refused("other SVG", b"<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>", "UNSUPPORTED", "SVG")
refused("other text", b"no picture at all", "MALFORMED", "no picture")
refused("other zeros", bytes(64), "MALFORMED", "no picture")

json.dump(cases, sys.stdout, indent=0)
sys.stdout.write("\n")
