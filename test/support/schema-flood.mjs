// @ts-check
// Feeds schemas to the schema function of the built package, and to `open`, under a heap that any
// schema would burst that is believed. Wants --expose-gc.
//
//     node --expose-gc --max-old-space-size=64 schema-flood.mjs '{"seed", "tails", "generated", "opened", "container"}'
//
// The last line is a JSON text: how many were fed, taken and refused, what was wrong, and by how much
// the heap grew.
import fs from 'node:fs';
import path from 'node:path';
import { Random } from '../interop/random.mjs';
import { hostileSchema } from '../mutate/schemas.mjs';
import { loaderx } from './package.mjs';
import { schemaAt, schemaBytesMax, u32 } from './page.mjs';

/** @type {typeof import('../../ts/schema.js')} */
const { decodeSchema } = await import(new URL('../../dist/schema.js', import.meta.url).href);
const { LoaderxError } = loaderx;

// Traces cost more than the schemas themselves.
Error.stackTraceLimit = 0;

/** @type {{seed: string, tails: number, generated: number, opened: number, container: string}} */
const task = JSON.parse(process.argv[2] ?? '{}');
/** @type {string[]} */
const wrong = [];
let fed = 0;
let taken = 0;
let refused = 0;

/** @param {unknown} error @param {Buffer} bytes */
function check(error, bytes) {
  refused += 1;
  if (
    error instanceof LoaderxError &&
    (error.code === 'MALFORMED' || error.code === 'UNSUPPORTED') &&
    error.field !== undefined &&
    error.message.length < 1000
  ) {
    return;
  }
  complain(`${bytes.toString('hex')}: ${error instanceof Error ? error.stack : String(error)}`);
}

/** @param {string} what */
function complain(what) {
  if (wrong.length < 20) wrong.push(what.slice(0, 600));
}

/** What is taken must be a schema that could have been written. @param {import('../../ts/schema.js').Schema} schema @param {Buffer} bytes */
function checkTaken(schema, bytes) {
  taken += 1;
  const sizes = schema.kind === 'dense' ? schema.itemShape : [schema.ndim];
  const isSound =
    sizes.every((size) => Number.isInteger(size) && size >= 1 && size <= 2 ** 31) &&
    (schema.kind === 'dense' ? sizes.length <= 63 : schema.ndim <= 64) &&
    sizes.reduce((product, size) => product * size, schema.dtype.itemBytes) <=
      (schema.kind === 'dense' ? 2 ** 31 : 2 ** 31 * 64) &&
    schema.dtype.itemBytes >= 1;
  if (!isSound) complain(`${bytes.toString('hex')}: taken as ${JSON.stringify(schema)}`);
}

/** @param {Buffer} bytes */
function feed(bytes) {
  fed += 1;
  try {
    checkTaken(decodeSchema(bytes), bytes);
  } catch (error) {
    check(error, bytes);
  }
}

/** Every property of what all code stands on. */
function prototypes() {
  return [
    Object,
    Array,
    String,
    Number,
    Boolean,
    Function,
    Map,
    Set,
    Uint8Array,
    Buffer,
    Error,
    RegExp,
  ]
    .map(({ name, prototype }) => {
      const own = Reflect.ownKeys(prototype).map(String).sort();
      return `${name}: ${own.join()}`;
    })
    .join('\n');
}

function heapBytes() {
  if (globalThis.gc === undefined) throw new Error('--expose-gc is missing');
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

/** What stands behind the first two bytes: nothing, heaps of one byte, whole schemas, noise. */
function tailsOf(/** @type {number} */ count) {
  const random = new Random('tails', task.seed);
  const whole = [
    'a56474797065a33c6934a46e64696d01aa6974656d5f73686170659103',
    'a56474797065a37c7531a46e64696d02',
    Buffer.from('"dtype": "int32", "ndim": 2}').toString('hex'),
    Buffer.from('dtype": "int8", "item_shape": [2, 3]}').toString('hex'),
  ].map((hex) => Buffer.from(hex, 'hex'));
  return Array.from({ length: count }, (_, index) => {
    const intact = whole[index >> 1];
    if (intact !== undefined) return index % 2 === 0 ? intact : intact.subarray(1);
    if (index === 8) return Buffer.alloc(0);
    const bytes = Buffer.alloc(
      random.chance(0.3) ? schemaBytesMax - 2 : random.magnitude(1, schemaBytesMax - 2),
    );
    if (random.chance(0.5)) random.fill(bytes);
    else
      bytes.fill(
        random.pick([
          0, 0x7f, 0x81, 0x91, 0xa1, 0xc0, 0xc1, 0xca, 0xd9, 0xdc, 0xdd, 0xde, 0xdf, 0xff, 0x5b,
          0x7b, 0x22,
        ]),
      );
    return bytes;
  });
}

function everyPrefix() {
  const room = Buffer.alloc(schemaBytesMax);
  for (const tail of tailsOf(task.tails)) {
    const bytes = room.subarray(0, tail.length + 2);
    tail.copy(bytes, 2);
    for (let prefix = 0; prefix < 65_536; prefix += 1) {
      bytes[0] = prefix >> 8;
      bytes[1] = prefix & 0xff;
      feed(bytes);
    }
  }
}

function throughOpen() {
  const random = new Random('open', task.seed);
  const file = fs.openSync(path.join(task.container, 'meta.zr'), 'r+');
  for (let index = 0; index < task.opened; index += 1) {
    const bytes = hostileSchema(random);
    const page = Buffer.alloc(schemaBytesMax);
    bytes.copy(page);
    fs.writeSync(file, u32(bytes.length), 0, 2, 8);
    fs.writeSync(file, page, 0, page.length, schemaAt);
    fed += 1;
    try {
      const reader = loaderx.open(task.container);
      taken += 1;
      reader.closeSync();
    } catch (error) {
      if (bytes.length > 0) check(error, bytes);
      else refused += 1;
    }
  }
  fs.closeSync(file);
}

function everything() {
  const random = new Random('generated', task.seed);
  for (let index = 0; index < task.generated; index += 1) feed(hostileSchema(random));
  everyPrefix();
  throughOpen();
}

const before = prototypes();
// Once for the code that is compiled and the maps that are made, then once for what is left behind.
const whole = { ...task };
Object.assign(task, { tails: 1, generated: 2000, opened: 500 });
everything();
[fed, taken, refused] = [0, 0, 0];
Object.assign(task, whole);
const startBytes = heapBytes();
const startCpu = process.cpuUsage();
everything();
const { user, system } = process.cpuUsage(startCpu);
const grewBytes = heapBytes() - startBytes;
if (prototypes() !== before) complain('a prototype was changed');
if (Object.keys({}).length > 0 || 'polluted' in {}) complain('every object has a property more');
const cpuMs = Math.round((user + system) / 1000);
process.stdout.write(`${JSON.stringify({ fed, taken, refused, wrong, grewBytes, cpuMs })}\n`);
