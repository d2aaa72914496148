"""The photos of the workload, for comparing what a loader delivers with them; as photos.mjs."""

import hashlib
import json
import os

import numpy as np

KEY_STRIDE = 1009
HASHED_RECORDS = 16


def records_file(folder):
    return os.path.join(folder, "records.npy")


def facts_of(folder):
    with open(os.path.join(folder, "workload.json")) as file:
        return json.load(file)


class Photos:
    def __init__(self, folder, is_corrected):
        self.items = np.load(records_file(folder))
        if is_corrected:
            from colour import correct_records

            correct_records(self.items)
        self.ids = {}
        for id, record in enumerate(self.items):
            self.ids.setdefault(self._key(record), []).append(id)

    @staticmethod
    def _key(record):
        return record.reshape(-1)[::KEY_STRIDE].tobytes()

    def check(self, image, count):
        """Raises unless each record of a batch is one of the photos."""
        if image.shape != (count, *self.items.shape[1:]) or image.dtype != self.items.dtype:
            raise ValueError(f"a batch of {image.dtype} {image.shape}")
        for index, record in enumerate(image):
            ids = self.ids.get(self._key(record), ())
            if not any(np.array_equal(record, self.items[id]) for id in ids):
                raise ValueError(f"record {index} of a batch is none of the photos")

    def hash(self):
        return hashlib.sha256(self.items[:HASHED_RECORDS].tobytes()).hexdigest()
