// @ts-check
// Opens a container whose schema promises far more than there is, and says what came of it and how
// much the heap grew meanwhile. Wants --expose-gc.
//
//     node --expose-gc --max-old-space-size=64 schema-promises.mjs CONTAINER
import fs from 'node:fs';
import path from 'node:path';
import { loaderx } from './package.mjs';
import { schemaAt, schemaBytesMax, u32 } from './page.mjs';

const [container = ''] = process.argv.slice(2);
/** @param {string} hex */
const repeated = (hex) =>
  Buffer.from(hex.repeat(schemaBytesMax).slice(0, schemaBytesMax * 2), 'hex');
const schemas = [
  Buffer.from('dd01312d00', 'hex'),
  repeated('dcffff'),
  repeated('deffff'),
  repeated('81a161'),
];

function heapBytes() {
  if (globalThis.gc === undefined) throw new Error('--expose-gc is missing');
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

/** @param {Buffer} schema */
function codeOf(schema) {
  const file = fs.openSync(path.join(container, 'meta.zr'), 'r+');
  fs.writeSync(file, u32(schema.length), 0, 2, 8);
  fs.writeSync(file, schema, 0, schema.length, schemaAt);
  fs.closeSync(file);
  try {
    loaderx.open(container).closeSync();
    return 'opened';
  } catch (error) {
    return error instanceof loaderx.LoaderxError ? error.code : String(error);
  }
}

// Once for the code that is compiled.
for (const schema of schemas) codeOf(schema);
const answers = schemas.map((schema) => {
  const before = heapBytes();
  const code = codeOf(schema);
  return { code, grewBytes: heapBytes() - before };
});
process.stdout.write(JSON.stringify(answers));
