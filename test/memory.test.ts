// Kept memory: recycled, bounded, and never visible to two owners.
import t from 'tap';
import {
  dropKept,
  give,
  keep,
  keptBytesMax,
  keptBytesMin,
  keptPerSizeMax,
  take,
  takeSpare,
} from '../ts/store/memory.js';

t.beforeEach(() => dropKept());
t.teardown(() => dropKept());

t.test('what is given is taken again, under a new owner', async (t) => {
  const buffer = take(1 << 20);
  t.equal(buffer.byteLength, 1 << 20);
  const view = new Uint8Array(buffer);
  view.fill(7);
  give(buffer);
  t.equal(view.length, 0, 'old views are empty');
  t.equal(buffer.byteLength, 0);
  const again = take(1 << 20);
  t.equal(new Uint8Array(again)[12345], 7, 'the same memory');
  t.not(again, buffer);
  t.not(take(1 << 20), again, 'to one owner only');
});

t.test('giving twice, giving nothing, giving what cannot be taken', async (t) => {
  const buffer = take(1 << 16);
  give(buffer);
  give(buffer);
  give(new ArrayBuffer(0));
  give(new SharedArrayBuffer(1 << 16));
  take(1 << 16);
  t.equal(takeSpare(1 << 16), undefined, 'it was kept once');
});

t.test('sizes are exact', async (t) => {
  for (const bytes of [0, 1, 1024, 1025, keptBytesMin - 1, keptBytesMin, 100_000]) {
    const buffer = take(bytes);
    t.equal(buffer.byteLength, bytes);
    give(buffer);
    t.equal(take(bytes + 1).byteLength, bytes + 1);
  }
});

t.test('what is kept is bounded', async (t) => {
  const mark = (buffer: ArrayBuffer): ArrayBuffer => {
    new Uint8Array(buffer)[0] = 99;
    return buffer;
  };
  for (let count = 0; count < 10; count += 1) keep(mark(new ArrayBuffer(keptBytesMin)));
  let same = 0;
  for (let count = 0; count < 10; count += 1) {
    if (new Uint8Array(take(keptBytesMin))[0] === 99) same += 1;
  }
  // Memory that was freed may come back with the old byte in it, so this is only an upper look.
  t.ok(same >= keptPerSizeMax);

  dropKept();
  const half = keptBytesMax / 2;
  for (let size = 0; size < 4; size += 1) keep(new ArrayBuffer(half - size));
  let kept = 0;
  while (takeSpare(half / 2) !== undefined) kept += 1;
  t.equal(kept, 2, 'no more bytes than allowed, the oldest went');

  for (let size = 0; size < 40; size += 1) keep(new ArrayBuffer(keptBytesMin + size));
  kept = 0;
  while (takeSpare(keptBytesMin) !== undefined) kept += 1;
  t.equal(kept, 16);
  keep(new ArrayBuffer(keptBytesMin - 1));
  t.equal(takeSpare(keptBytesMin / 2), undefined, 'nothing small');
});

t.test('a spare is the largest that is large enough, and not absurdly large', async (t) => {
  for (const bytes of [50_000, 100_000, 300_000, 9_000_000]) keep(new ArrayBuffer(bytes));
  t.equal(takeSpare(90_000)?.byteLength, 300_000);
  t.equal(takeSpare(90_000)?.byteLength, 100_000);
  t.equal(takeSpare(90_000), undefined);
  t.equal(takeSpare(50_000)?.byteLength, 50_000);
  t.equal(takeSpare(0), undefined);
});

t.test('memory that cannot be had is a typed error', async (t) => {
  t.throws(() => take(2 ** 52), { name: 'LoaderxError', code: 'OUT_OF_MEMORY' });
});
