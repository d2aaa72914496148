"""Pictures of every kind that folders are imported of, and what Pillow reads of them.

    pictures.py FOLDER HEIGHT WIDTH

Writes FOLDER/pictures/NAME.{png,jpg,webp}, and to stdout JSON: of each file, as NumPy has it after Pillow
decoded it, mode, shape and SHA-256; and after Pillow cut it to HEIGHT x WIDTH in its middle and resized it
(ImageOps.fit, Lanczos), its bytes.
"""
import base64
import hashlib
import json
import os
import sys

import numpy
from PIL import Image, ImageOps

folder, height, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
target = os.path.join(folder, "pictures")
os.makedirs(target)
random = numpy.random.default_rng(7)


def pixels(mode, rows, columns):
    """Soft shapes with some noise, so that kernels of resizing show."""
    y, x = numpy.mgrid[0:rows, 0:columns]
    channels = {"L": 1, "RGB": 3, "RGBA": 4}[mode]
    planes = [
        127 + 90 * numpy.sin(x / (3 + c) + c) * numpy.cos(y / (4 + c)) + random.normal(0, 12, (rows, columns))
        for c in range(channels)
    ]
    array = numpy.clip(numpy.stack(planes, axis=-1), 0, 255).astype(numpy.uint8)
    if mode == "RGBA":
        array[..., 3] = 255
    return array[..., 0] if channels == 1 else array


sizes = [(1, 1), (3, 5), (16, 16), (31, 64), (64, 31), (224, 224), (300, 451)]
kinds = [
    ("png", {"mode": ["L", "RGB", "RGBA"]}, {}),
    ("jpg", {"mode": ["L", "RGB"]}, {"quality": 90}),
    ("jpg", {"mode": ["RGB"]}, {"quality": 75, "subsampling": 0}),
    ("jpg", {"mode": ["RGB"]}, {"quality": 95, "progressive": True}),
    ("webp", {"mode": ["RGB", "RGBA"]}, {"lossless": True, "exact": True}),
    ("webp", {"mode": ["RGB"]}, {"quality": 80}),
]
answer = []
for number, (end, modes, options) in enumerate(kinds):
    for mode in modes["mode"]:
        for rows, columns in sizes:
            name = f"{number}-{mode}-{rows}x{columns}.{end}"
            file = os.path.join(target, name)
            Image.fromarray(pixels(mode, rows, columns)).save(file, **options)
            with Image.open(file) as image:
                own = numpy.asarray(image)
                fitted = ImageOps.fit(image.convert("RGB"), (width, height), Image.Resampling.LANCZOS)
            answer.append(
                {
                    "name": name,
                    "mode": image.mode,
                    "shape": list(own.shape),
                    "sha256": hashlib.sha256(own.tobytes()).hexdigest(),
                    "fitted": base64.b64encode(numpy.asarray(fitted).tobytes()).decode(),
                }
            )
json.dump(answer, sys.stdout)
