"""Reads a stream of damaged containers with the reader beside this and says what came of each, one
JSON text a line:

    {"load": {name: {file: hex}}}      containers to damage              no answer
    {"base": name, "edits": [...]}     one of them, damaged              [open, [record, ...]]

`open` is a refusal's code or [kind, dtype, shape, length]; a record is a refusal's code or the start
of a hash over its dimensions and its items' bytes. "?" stands for what cannot be told without NumPy
or zstandard. What an edit is: test/mutate/files.mjs.
"""

import hashlib
import json
import sys

from reader import Container, Refused, Unknown


def edited(files, edits):
    files = dict(files)
    for edit in edits:
        name = edit["file"]
        content = files.get(name, b"")
        if "becomes" in edit:
            files.pop(name, None)
            if edit["becomes"] != "missing":
                files[name] = edit["becomes"]
        elif "content" in edit:
            files[name] = bytes.fromhex(edit["content"])
        elif "truncate" in edit:
            files[name] = content[: edit["truncate"]].ljust(edit["truncate"], b"\0")
        else:
            at, part = edit["at"], bytes.fromhex(edit["bytes"])
            content = content.ljust(at, b"\0")
            files[name] = content[:at] + part + content[at + len(part) :]
    return files


def outcome(call):
    try:
        return call()
    except Refused as refused:
        return str(refused)
    except Unknown:
        return "?"


def hashed(dims, items):
    return hashlib.sha256(json.dumps(dims, separators=(",", ":")).encode() + items).hexdigest()[:16]


def answer(files):
    container = outcome(lambda: Container(files))
    if isinstance(container, str):
        return [container, []]
    schema = container.schema
    about = ["dense" if schema.is_dense else "ragged", schema.dtype, schema.shape, container.length]
    return [about, [outcome(lambda: hashed(*container.record(i))) for i in range(container.length)]]


def main():
    bases = {}
    for line in sys.stdin:
        request = json.loads(line)
        for name, files in request.get("load", {}).items():
            bases[name] = {file: bytes.fromhex(content) for file, content in files.items()}
        if "base" in request:
            reply = answer(edited(bases[request["base"]], request["edits"]))
            sys.stdout.write(json.dumps(reply, separators=(",", ":")) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
