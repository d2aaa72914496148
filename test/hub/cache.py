"""Python's client and the cache of the hub, for test/hub-python.test.ts.

    python cache.py read REPO REVISION     with HF_HUB_CACHE and HF_HUB_OFFLINE: what a snapshot holds
    python cache.py fill REPO REVISION     with HF_HUB_CACHE and HF_ENDPOINT: loads all of it

Prints one JSON text.
"""

import hashlib
import json
import os
import sys
import warnings

warnings.simplefilter("error")

from huggingface_hub import get_cached_repo_tree, scan_cache_dir, snapshot_download

what, repo, revision = sys.argv[1:]
folder = snapshot_download(repo, repo_type="dataset", revision=revision)

files = {}
for at, _, names in os.walk(folder):
    for name in names:
        path = os.path.join(at, name)
        with open(path, "rb") as file:
            files[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()

scanned = scan_cache_dir()
print(
    json.dumps(
        {
            "commit": os.path.basename(folder),
            "files": files,
            "tree": [file.path for file in get_cached_repo_tree(repo, repo_type="dataset", revision=revision)],
            "refs": sorted(ref for info in scanned.repos for one in info.revisions for ref in one.refs),
            "warnings": [str(one) for one in scanned.warnings],
            "incomplete": len(scanned.incomplete_files),
        }
    )
)
