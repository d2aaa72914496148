#!/usr/bin/env python3
"""Writes test/golden/sampler.txt: the batches that a sampler must give, index for index.

    python3 scripts/make-sampler-golden.py > test/golden/sampler.txt

The model below is a second implementation, written for reading and not for speed: arithmetic on
Python's unbounded integers, cut to 64 bits where the format says so. It shares no code with
zig-src/sampler. Its results were compared with the Python packages loaderx 2.4.6 and 2.8.19.
"""

WORD = 2**64
LAST = WORD - 1
GOLDEN = 0x9E3779B97F4A7C15
STRIDE = 0xD1B54A32D192ED03


def mix(value):
    value ^= value >> 30
    value = value * 0xBF58476D1CE4E5B9 % WORD
    value ^= value >> 27
    value = value * 0x94D049BB133111EB % WORD
    return value ^ value >> 31


def sfc64(seed):
    """Endless words of stream 2.4."""
    a = b = c = seed
    for drawn in range(1, WORD):
        word = (a + b + drawn) % WORD
        a, b, c = b ^ b >> 11, c * 9 % WORD, (((c << 24) | (c >> 40)) + word) % WORD
        if drawn > 12:
            yield word


def hashed(seed, position):
    """Endless words of stream 2.8 for one position."""
    key = mix((position // WORD) * GOLDEN % WORD ^ seed)
    base = position * GOLDEN % WORD ^ key
    for retry in range(WORD):
        yield mix(base ^ retry * STRIDE % WORD)


def below(length, words):
    """The first of `words` that is not surplus, as an index below `length`."""
    for word in words:
        if word * length % WORD >= WORD % length:
            return word * length // WORD


def permuted(length, seed, cycle, position):
    if length < 2:
        return 0
    half = ((length - 1).bit_length() + 1) // 2
    key = mix(cycle * GOLDEN % WORD ^ seed)
    while True:
        left, right = divmod(position, 2**half)
        for turn in range(4):
            mixed = mix(right * GOLDEN % WORD ^ key ^ turn * STRIDE % WORD)
            left, right = right, (left ^ mixed) % 2**half
        position = left * 2**half + right
        if position < length:
            return position


def sequential(stream, length, batch, seed, step):
    if stream == "2.8":
        while True:
            yield [(step * batch + index) % length for index in range(batch)]
            step += 1
    cursor = step * batch % WORD % length
    while True:
        yield [(cursor + index) % WORD % length for index in range(batch)]
        cursor = (cursor + batch) % WORD % length


def iid(stream, length, batch, seed, step):
    if stream == "2.8":
        while True:
            first = step * batch
            yield [below(length, hashed(seed, first + index)) for index in range(batch)]
            step += 1
    words = sfc64(seed)
    for _ in range(step * batch):
        below(length, words)
    while True:
        yield [below(length, words) for _ in range(batch)]


def cyclic(stream, length, batch, seed, step):
    usable = length if length < batch else length - length % batch
    cycle, within = divmod(step, max(1, usable // batch))
    cursor = within * batch
    while True:
        count = min(batch, usable - cursor)
        yield [permuted(length, seed, cycle, cursor + index) for index in range(count)]
        cursor += count
        if cursor == usable:
            cycle, cursor = (cycle + 1) % WORD, 0


LENGTHS = (
    1, 2, 3, 4, 5, 10, 16, 17, 1000, 10**6, 2**26, 2**26 + 1, 2**32, 2**33 + 7, 2**53 + 5, 2**63,
    2**63 + 1, LAST,
)
SEEDS = (42, 0, 1, 2**53 + 1, LAST)


def cases():
    """Every length with a small, an odd and a large batch; seeds and steps take turns."""
    near = (0, 1, 7, 1000)
    turn = 0
    for stream in ("2.4", "2.8"):
        for mode in (sequential, iid, cyclic):
            walks = mode is iid and stream == "2.4"
            for length in LENGTHS:
                for batch in (1, 3, 11 if length < 2**32 else 4):
                    # To where step * batch passes 2^64, and to the last step.
                    over = min(LAST // batch - 1, LAST - 2)
                    far = near if walks else (0, over, LAST - 2, 2**53 + 1)
                    steps = far if turn % 2 else near
                    yield stream, mode, length, batch, SEEDS[turn % 5], steps[turn // 2 % 4]
                    turn += 1


def main():
    print("# Batches of the sampler, made by scripts/make-sampler-golden.py.")
    print("# stream mode length batch seed step: one batch, / the next, / ...")
    for stream, mode, length, batch, seed, step in cases():
        draws = mode(stream, length, batch, seed, step)
        count = 2 if length > 2**32 else 3
        batches = " / ".join(" ".join(map(str, next(draws))) for _ in range(count))
        print(f"{stream} {mode.__name__} {length} {batch} {seed} {step}: {batches}")


if __name__ == "__main__":
    main()
