// Record ids and slices: what is taken, what is refused, and that nothing is lost on the way to u64.
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { Dense, type DenseReader, ndarray, open } from '../ts/index.js';
import { checkedId, giveIds, idArray, rangeArray, sliceRange } from '../ts/store/ids.js';
import { Scratch } from './support/scratch.js';

const huge = 2 ** 53 - 1;

t.test('three kinds of list, copied exactly', async (t) => {
  t.same([...idArray([0, 2, 2, 9], 10)], [0n, 2n, 2n, 9n]);
  t.same([...idArray(new Uint32Array([0, 2 ** 32 - 1]), 2 ** 32)], [0n, 2n ** 32n - 1n]);
  const far = [0, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 52 + 3, huge - 1];
  t.same([...idArray(far, huge)], far.map(BigInt));
  t.same([...idArray(BigUint64Array.from(far, BigInt), huge)], far.map(BigInt));
  for (const empty of [[], new Uint32Array(0), new BigUint64Array(0)]) {
    t.equal(idArray(empty, 0).length, 0);
  }
});

t.test('the copy is private', async (t) => {
  for (const list of [new BigUint64Array([1n, 2n]), new Uint32Array([1, 2]), [1, 2]]) {
    const copy = idArray(list, 10);
    list.fill((typeof list[0] === 'bigint' ? 7n : 7) as never);
    t.same([...copy], [1n, 2n]);
    t.not(copy.buffer, (list as BigUint64Array).buffer);
  }
  const shared = new BigUint64Array(new SharedArrayBuffer(16));
  t.notOk(idArray(shared, 1).buffer instanceof SharedArrayBuffer);
  const middle = new BigUint64Array(new BigUint64Array([9n, 1n, 2n]).buffer, 8, 2);
  t.same([...idArray(middle, 3)], [1n, 2n]);
});

t.test('negative zero is zero', async (t) => {
  t.same([...idArray([-0], 1)], [0n]);
  t.ok(Object.is(checkedId(-0, 1, 'id', 'id'), 0));
});

t.test('what is said of an id that is not there', async (t) => {
  const refusal = (ids: unknown, count: number): { message: string; record?: unknown } => {
    try {
      idArray(ids, count);
    } catch (error) {
      return error as Error;
    }
    throw new Error('nothing is thrown');
  };
  const message = (ids: unknown, count: number): string => refusal(ids, count).message;
  t.equal(message([-1], 3), 'ids[0] is -1, and ids go from 0 to 2, never from the end');
  t.equal(message([3], 3), 'ids[0] is 3, and ids go from 0 to 2');
  t.equal(message([0], 0), 'ids[0] is 0, and the container is empty');
  t.ok(Object.is(sliceRange(5, -0, 3, 1).first, 0), 'no negative zero');
  // A number where one can be, so that a caller need not know both.
  for (const [id, record] of [
    [BigInt(huge), huge],
    [BigInt(huge) + 1n, BigInt(huge) + 1n],
  ] as const) {
    t.equal(refusal(BigUint64Array.of(id), 5).record, record);
  }
  const gone = new Uint32Array(2);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  t.equal(message(gone, 3), 'the memory of ids was transferred away or shrank');
  for (const list of [new Uint32Array(2), new BigUint64Array(2)]) {
    const lying = Object.defineProperty(list, 'length', { value: 1 });
    t.match(message(lying, 3), 'ids say another length or memory of themselves than they have');
  }
  const around = rangeArray({ first: 2 ** 32 - 1, step: 1, count: 3 });
  t.same([...around], [2n ** 32n - 1n, 2n ** 32n, 2n ** 32n + 1n]);
});

t.test('ids that are not there', async (t) => {
  for (const ids of [
    [10],
    [-1],
    [2 ** 32],
    [2 ** 53],
    [0, 5, 10],
    new Uint32Array([10]),
    new BigUint64Array([10n]),
    new BigUint64Array([2n ** 32n]),
    new BigUint64Array([2n ** 64n - 1n]),
  ]) {
    t.throws(() => idArray(ids, 10), { name: 'RangeError', code: 'OUT_OF_RANGE', field: 'ids' });
  }
  t.throws(() => idArray([0, -1], 10), {
    message: 'ids[1] is -1, and ids go from 0 to 9, never from the end',
    record: -1,
  });
  t.throws(() => idArray([0], 0), { message: 'ids[0] is 0, and the container is empty' });
  t.throws(() => idArray(new BigUint64Array([2n ** 60n]), 10), {
    code: 'OUT_OF_RANGE',
    record: 2n ** 60n,
  });
});

t.test('what is no integer', async (t) => {
  for (const id of [
    1.5,
    Number.NaN,
    Infinity,
    '3',
    3n,
    null,
    undefined,
    true,
    {},
    [1],
    new Date(0),
  ]) {
    t.throws(
      () => idArray([0, id], 10),
      { name: 'TypeError', code: 'INVALID_ARGUMENT', message: /^ids\[1\] must be an integer/ },
      String(id),
    );
    t.throws(() => checkedId(id, 10, 'id', 'id'), { name: 'TypeError', field: 'id' });
  }
  t.throws(() => idArray([3n], 10), { message: /BigUint64Array/ });
});

t.test('what is no list of ids', async (t) => {
  for (const ids of [
    undefined,
    null,
    3,
    3n,
    '123',
    {},
    { length: 1, 0: 0 },
    new Set([1]),
    new Int32Array(1),
    new Uint8Array(1),
    new Uint16Array(1),
    new Float64Array(1),
    new BigInt64Array(1),
    new DataView(new ArrayBuffer(8)),
    new ArrayBuffer(8),
    (function* () {
      yield 1;
    })(),
  ]) {
    t.throws(() => idArray(ids, 10), { name: 'TypeError', code: 'INVALID_ARGUMENT', field: 'ids' });
  }
});

t.test('a sparse array is refused before anything is allocated', async (t) => {
  const before = process.memoryUsage().arrayBuffers;
  t.throws(() => idArray(new Array(2 ** 32 - 1), 10), { name: 'TypeError' });
  const holey = [0, 1, 2];
  delete holey[1];
  t.throws(() => idArray(holey, 10), { message: 'ids[1] must be an integer, got undefined' });
  const wrongAtTheEnd = new Array<number>(2_000_000).fill(0);
  wrongAtTheEnd.push(-1);
  t.throws(() => idArray(wrongAtTheEnd, 10), { name: 'RangeError' });
  t.ok(process.memoryUsage().arrayBuffers - before < 2 ** 20);
});

t.test('a list that lies between check and copy gives numbers, not a crash', async (t) => {
  let reads = 0;
  const liar = new Proxy([0, 0], {
    get(target, key, receiver) {
      if (key === '0') reads += 1;
      return key === '0' && reads > 1 ? 'x' : Reflect.get(target, key, receiver);
    },
  });
  t.equal(idArray(liar, 10).length, 2);
});

t.test('ten million ids', async (t) => {
  const ids = new Uint32Array(10_000_000);
  ids[9_999_999] = 7;
  t.equal(idArray(ids, 8)[9_999_999], 7n);
});

/** Python's `range(n)[start:end:step]`, for parts that are not negative. */
function pythonSlice(n: number, start?: number, end?: number, step = 1): number[] {
  const ids = [];
  if (step > 0) {
    for (let id = Math.min(start ?? 0, n); id < Math.min(end ?? n, n); id += step) ids.push(id);
  } else {
    const from = Math.min(start ?? n - 1, n - 1);
    const until = end === undefined ? -1 : Math.min(end, n - 1);
    for (let id = from; id > until; id += step) ids.push(id);
  }
  return ids;
}

t.test('slices select what Python slices select', async (t) => {
  const ends = [undefined, 0, 1, 2, 5, 6, 7, 8, 100];
  let wrong = 0;
  let count = 0;
  for (const n of [0, 1, 2, 6, 7]) {
    for (const start of ends) {
      for (const end of ends) {
        for (const step of [undefined, 1, 2, 3, 7, 100, -1, -2, -3, -7, -100]) {
          const ids = [...rangeArray(sliceRange(n, start, end, step))];
          const expected = pythonSlice(n, start, end, step).map(BigInt);
          count += 1;
          if (ids.join() !== expected.join()) wrong += 1;
        }
      }
    }
  }
  t.equal(wrong, 0, `${count} slices`);
  t.same([...rangeArray(sliceRange(5, undefined, undefined, -1))], [4n, 3n, 2n, 1n, 0n]);
  t.same([...rangeArray(sliceRange(5, 3, 0, -1))], [3n, 2n, 1n], 'the end is left out');
  t.same(
    [...rangeArray(sliceRange(huge, huge - 3, huge, 1))],
    [3, 2, 1].map((k) => BigInt(huge - k)),
  );
  t.equal(sliceRange(5, -0, 5, 1).count, 5);
});

t.test('slices that are refused', async (t) => {
  t.throws(() => sliceRange(5, -1, 5, 1), {
    name: 'RangeError',
    code: 'OUT_OF_RANGE',
    field: 'start',
  });
  t.throws(() => sliceRange(5, 0, -1, 1), {
    name: 'RangeError',
    code: 'OUT_OF_RANGE',
    field: 'end',
  });
  t.throws(() => sliceRange(5, 0, -1, -1), { name: 'RangeError', field: 'end' });
  for (const zero of [0, -0]) {
    t.throws(() => sliceRange(5, 0, 5, zero), {
      name: 'RangeError',
      code: 'INVALID_ARGUMENT',
      field: 'step',
    });
  }
  for (const wrong of [1.5, Number.NaN, Infinity, '1', 1n, null, {}]) {
    for (const [start, end, step, field] of [
      [wrong, 5, 1, 'start'],
      [0, wrong, 1, 'end'],
      [0, 5, wrong, 'step'],
    ]) {
      t.throws(() => sliceRange(5, start, end, step), {
        name: 'TypeError',
        code: 'INVALID_ARGUMENT',
        field: String(field),
      });
    }
  }
});

t.test('lists are used again, and never by two at once', async (t) => {
  const first = idArray([3, 4], 10);
  const second = idArray([5, 6], 10);
  t.same([...first, ...second], [3n, 4n, 5n, 6n]);
  giveIds(first);
  t.equal(idArray([7, 2 ** 40], 2 ** 41), first, 'the same memory');
  t.same([...first], [7n, 2n ** 40n]);
  giveIds(first);
  // Reading an element may run code that gathers: it must not get the list that is being filled.
  let inner: BigUint64Array | undefined;
  const list = [1, 2];
  Object.defineProperty(list, 1, {
    get() {
      inner = idArray([8, 9], 10);
      giveIds(inner);
      return 2;
    },
  });
  t.same([...idArray(list, 10)], [1n, 2n]);
  t.same([...(inner ?? [])], [8n, 9n]);
  const long = idArray(
    Array.from({ length: 8193 }, () => 1),
    2,
  );
  giveIds(long);
  t.not(
    idArray(
      Array.from({ length: 8193 }, () => 1),
      2,
    ),
    long,
    'long ones are not kept',
  );
  giveIds(new BigUint64Array(2));
  t.not(idArray([1, 1], 2), undefined);
  for (const kept of [1, 16, 17, 256, 8192]) {
    const ids = new Array(kept).fill(1);
    const given = idArray(ids, 2);
    giveIds(given);
    t.equal(idArray(ids, 2), given, `lists of ${kept} are kept`);
  }
  const twice = idArray([1, 1, 1], 2);
  giveIds(twice);
  giveIds(twice);
  t.equal(idArray([1, 1, 1], 2), twice);
  t.not(idArray([1, 1, 1], 2), twice, 'given back twice, handed out once');
  const many = Array.from({ length: 40 }, () => idArray([1, 1, 1, 1], 2));
  for (const each of many) giveIds(each);
  const again = Array.from({ length: 40 }, () => idArray([1, 1, 1, 1], 2));
  t.equal(new Set(again).size, 40, 'never one list for two');
  t.equal(again.filter((each) => many.includes(each)).length, 16, 'some are kept, not all');
  const none = idArray([], 2);
  giveIds(none);
  t.not(idArray([], 2), none, 'nothing is not worth keeping');
});

t.test('a list that says another length each time has the one that it truly has', async (t) => {
  for (const later of [1, 16, 20]) {
    let asked = 0;
    class Moody extends BigUint64Array {
      override get length(): number {
        asked += 1;
        return asked === 1 ? 3 : later;
      }
    }
    t.same([...idArray(new Moody([1n, 2n, 3n]), 10)], [1n, 2n, 3n], `${later}`);
  }
});

t.test('ids whose memory shrank before them are no empty list', async (t) => {
  for (const Kind of [Uint32Array, BigUint64Array]) {
    const Resizable = ArrayBuffer as unknown as new (
      bytes: number,
      options: { maxByteLength: number },
    ) => ArrayBuffer & { resize(bytes: number): void };
    const memory = new Resizable(24, { maxByteLength: 24 });
    const ids = new Kind(memory, 8, 2);
    memory.resize(8);
    t.throws(() => idArray(ids, 10), { name: 'TypeError', code: 'INVALID_ARGUMENT' });
    const still = new Kind(memory, 8, 0);
    t.equal(idArray(still, 10).length, 0, 'one that is empty');
  }
});

t.test('a list that gets shorter while it is read has nothing of an earlier one', async (t) => {
  for (const count of [4, 100]) {
    giveIds(idArray(new Array(count).fill(7), 10));
    const list = new Array(count).fill(5);
    let reads = 0;
    Object.defineProperty(list, 1, {
      get() {
        reads += 1;
        // The first time it is checked.
        if (reads === 2) list.length = 2;
        return 5;
      },
    });
    t.same([...idArray(list, 10)], [5n, 5n, ...new Array(count - 2).fill(0n)]);
  }
});

t.test('a list that another thread makes longer is taken as it was, or refused', async (t) => {
  const Growable = SharedArrayBuffer as unknown as new (
    bytes: number,
    options: { maxByteLength: number },
  ) => SharedArrayBuffer & { grow(bytes: number): void };
  const growing = new Worker(
    `require('node:worker_threads').parentPort.on('message', (memory) => {
      for (let count = 21; count <= 8192; count += 1) memory.grow(count * 8);
    });`,
    { eval: true },
  );
  for (let round = 0; round < 20; round += 1) {
    const memory = new Growable(20 * 8, { maxByteLength: 8192 * 8 });
    const ids = new BigUint64Array(memory);
    growing.postMessage(memory);
    const codes = new Set<unknown>();
    while (ids.length < 8192) {
      try {
        giveIds(idArray(ids, 10));
      } catch (error) {
        codes.add((error as { code?: string }).code);
      }
    }
    // "ids say another length" where it grows between two looks at it.
    codes.delete('INVALID_ARGUMENT');
    t.same([...codes], []);
  }
  await growing.terminate();
});

t.test('gathers that run at once never share a list, nor after one was aborted', async (t) => {
  const scratch = new Scratch(t);
  const recordCount = 20_000;
  const target = scratch.fresh();
  const writer = Dense.create(target, { dtype: 'int32', itemShape: [16], codec: 'zstd' });
  const items = Int32Array.from({ length: recordCount * 16 }, (_, index) => Math.floor(index / 16));
  await writer.append(ndarray('int32', [recordCount, 16], items));
  await writer.close();
  const reader = open(target) as DenseReader<'int32'>;
  t.teardown(() => reader.close());
  let aborted = 0;
  for (let round = 0; round < 5; round += 1) {
    const running = Array.from({ length: 60 }, async (_, number) => {
      const count = number % 3 === 0 ? 256 : 2000;
      const first = (round * 997 + number * 61) % (recordCount - count);
      const ids = Array.from({ length: count }, (_, index) => first + index);
      const stop = new AbortController();
      const gathering = reader.gather(ids, { signal: stop.signal });
      if (number % 4 === 1) stop.abort();
      try {
        const { data } = await gathering;
        return ids.every((id, index) => data[index * 16] === id && data[index * 16 + 15] === id);
      } catch (error) {
        aborted += 1;
        return (error as { code?: string }).code === 'ABORTED';
      }
    });
    t.ok((await Promise.all(running)).every(Boolean), 'each gets the records that it asked for');
  }
  t.ok(aborted > 0, 'some were aborted');
});
