// Every code of the error family is raised here by what a user does, once: the table has a row for each
// code, or the types do not check.
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { type ErrorCode, errorCodes, fromNative } from '../ts/errors.js';
import { DataLoader, Dense, ndarray, open, Sampler, toNative, trainDict } from '../ts/index.js';
import { take } from '../ts/store/memory.js';
import { runChild } from './support/child.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const items = 12;

function batch(count: number) {
  return ndarray('uint32', [count, items], new Uint32Array(count * items).fill(7));
}

/** A container of 10 records at a path of its own. */
function built(options: { integrity?: boolean; codec?: 'raw' | 'zstd' } = {}): string {
  const { integrity = false, codec = 'raw' } = options;
  const at = scratch.fresh();
  const writer = Dense.create(at, { codec, dtype: 'uint32', itemShape: [items], dataShards: 1 });
  writer.appendSync(batch(10));
  writer.closeSync({ integrity });
  return at;
}

function changeByte(at: string, name: string, offset: number): void {
  const file = path.join(at, name);
  const bytes = readFileSync(file);
  bytes[offset] = (bytes[offset] ?? 0) ^ 0xff;
  writeFileSync(file, bytes);
}

async function reading(at: string, act: (reader: ReturnType<typeof Dense.open>) => unknown) {
  const reader = Dense.open(at);
  try {
    await act(reader);
  } finally {
    await reader.close();
  }
}

/** Of the converter, whose own tests raise them with a hub of their own. */
const ofTheConverter = [
  ...(['GATED', 'UNAUTHORIZED', 'OFFLINE', 'RATE_LIMITED', 'NETWORK', 'SOURCE'] as const),
];
type OfTheConverter = (typeof ofTheConverter)[number];

const raised: Record<Exclude<ErrorCode, OfTheConverter>, () => unknown> = {
  NOT_FOUND: () => open(scratch.fresh()),
  NOT_PUBLISHED: () => {
    const at = built();
    writeFileSync(path.join(at, 'meta.zr'), Buffer.alloc(8192));
    return open(at);
  },
  EXISTS: () => Dense.create(built(), { codec: 'raw', dtype: 'uint8', itemShape: [] }),
  LOCKED: () => {
    const at = scratch.fresh();
    const writer = Dense.create(at, { codec: 'raw', dtype: 'uint8', itemShape: [] });
    try {
      Dense.create(at, { codec: 'raw', dtype: 'uint8', itemShape: [] });
    } finally {
      writer.abort();
    }
  },
  MALFORMED: () => {
    const at = built();
    truncateSync(path.join(at, 'data_0.zr'), 5);
    return open(at);
  },
  SCHEMA: () => Dense.open(built(), { dtype: 'float32' }),
  CODEC: () => {
    const at = built({ codec: 'zstd' });
    changeByte(at, 'data_0.zr', 0);
    return reading(at, (reader) => reader.gather([0]));
  },
  DICTIONARY: () => trainDict(batch(2)),
  IO: () => {
    const file = scratch.fresh();
    writeFileSync(file, 'no folder');
    return open(file);
  },
  TOO_LARGE: () =>
    Dense.create(scratch.fresh(), { codec: 'raw', dtype: 'uint8', itemShape: [2 ** 31 + 1] }),
  OUT_OF_MEMORY: () => take(2 ** 52),
  OUT_OF_RANGE: () => reading(built(), (reader) => reader.gather([10])),
  INVALID_ARGUMENT: () => reading(built(), (reader) => reader.gather([0.5])),
  CLOSED: async () => {
    const sampler = new Sampler({ length: 10, batchSize: 2, mode: 'iid' });
    sampler.close();
    sampler.draw();
  },
  BUSY: () =>
    reading(built(), async (reader) => {
      const ids = Uint32Array.from({ length: 200_000 }, (_, index) => index % 10);
      const running = reader.gather(ids);
      try {
        reader.closeSync();
      } finally {
        await running;
      }
    }),
  BUILD_FAILED: async () => {
    // The first append over the limit is IO, what comes after it is not tried.
    const prefix = ['/bin/sh', '-c', 'ulimit -f 400; exec "$@"', 'sh'];
    const { stdout } = await runChild('builder', ['full', scratch.fresh()], { prefix });
    const { after } = JSON.parse(stdout) as { after: string[] };
    throw Object.assign(new Error('as a process says'), { code: after[0] });
  },
  TRANSFORM: () =>
    reading(built(), async (reader) => {
      const module = scratch.fresh('transform.mjs');
      writeFileSync(module, 'export const nothing = 1;\n');
      await using loader = new DataLoader(
        { reader },
        { batchSize: 2, mode: 'sequential', transform: new URL(`file://${module}`) },
      );
      await loader.next();
    }),
  INTEGRITY: () => {
    const at = built({ integrity: true });
    changeByte(at, 'data_0.zr', 0);
    const reader = open(at, { verify: 'digest' });
    try {
      return reader.gatherSync([0]);
    } finally {
      reader.closeSync();
    }
  },
  ABORTED: () =>
    reading(built(), (reader) =>
      reader.gather([0], { signal: AbortSignal.abort(new Error('no')) }),
    ),
  UNSUPPORTED: () => toNative(ndarray('numpy:|S5', [0], new Uint8Array(0))),
  // What no caller can bring about: a status that this version does not know.
  UNEXPECTED: () => {
    throw fromNative(Object.assign(new Error('?'), { status: -99, fileKind: 0 }));
  },
};

for (const code of errorCodes) {
  if (!(code in raised)) {
    t.ok(ofTheConverter.includes(code as OfTheConverter), `${code} is the converter's`);
    continue;
  }
  const skip = code === 'BUILD_FAILED' && process.platform === 'win32' ? 'wants ulimit' : false;
  t.test(code, { skip }, async (t) => {
    let failure: unknown;
    try {
      await raised[code as Exclude<ErrorCode, OfTheConverter>]();
    } catch (error) {
      failure = error;
    }
    t.match(failure, { code });
    t.ok(failure instanceof Error && failure.message.length > 0, 'it says something');
  });
}
