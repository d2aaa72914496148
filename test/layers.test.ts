// Who may open which door: the import table of ts/ as data. An import that is not here is an error,
// and so is a file that no row covers.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import ts from 'typescript';

const root = path.resolve(import.meta.dirname, '..', 'ts');

const cliDoors = ['cli/command', 'cli/terminal', 'cli/text'];

/** Rooms by file, most specific first. `*` is any file of that folder. */
const rooms: readonly (readonly [string, readonly string[]])[] = [
  // Pure rooms: no native code, no file system.
  ['errors', []],
  ['dtype', ['errors']],
  ['ndarray', ['dtype', 'errors']],
  ['signal', ['errors']],
  ['variables', ['errors']],
  ['schema-walk', ['errors']],
  ['schema', ['dtype', 'schema-walk', 'errors', 'msgpackr']],

  // The addon, and what calls need.
  ['native/binding', []],
  [
    'native/load',
    [
      'native/binding',
      'errors',
      'node-gyp-build',
      'node:fs',
      'node:module',
      'node:path',
      'node:url',
      'node:worker_threads',
    ],
  ],
  ['native/cancel', ['errors', 'signal']],
  ['native/turn', ['node:timers/promises']],

  // Containers. Each line may be read as "uses".
  ['store/path', ['dtype', 'errors', 'node:path', 'node:url']],
  ['store/ids', ['dtype', 'errors']],
  ['store/memory', ['errors', 'native/load', 'node:util']],
  ['store/stream', []],
  ['store/capability', ['dtype', 'ndarray', 'schema', 'store/ids']],
  ['store/fields', ['errors']],
  ['store/options', ['dtype', 'errors', 'schema', 'store/capability', 'store/fields']],
  ['store/handle', ['errors', 'native/binding']],
  ['store/sizes', []],
  // Reading a whole container, and what is known of it once it was read. Readers are types here.
  ['store/walk', ['dtype', 'schema', 'signal', 'store/capability', 'store/ids', 'store/sizes']],
  ['store/logical-digest', ['node:crypto', 'store/capability', 'store/walk']],
  ['store/folder', ['errors', 'node:fs', 'node:path', 'store/path']],
  ['store/set-file', ['dtype', 'errors', 'schema', 'node:fs']],
  [
    'store/listing',
    ['errors', 'node:fs', 'node:path', 'store/folder', 'store/path', 'store/set-file'],
  ],
  ['store/integrity-file', ['errors', 'node:crypto']],
  [
    'store/integrity',
    [
      ...['errors', 'schema', 'native/binding', 'native/cancel', 'store/capability'],
      ...['store/folder', 'store/handle', 'store/integrity-file', 'store/logical-digest'],
      ...['node:timers/promises', 'store/path'],
    ],
  ],
  [
    'store/container',
    [
      ...['errors', 'schema', 'native/binding', 'native/load', 'node:path', 'store/set-file'],
      ...['store/capability', 'store/folder', 'store/handle', 'store/integrity'],
      ...['store/listing', 'store/options', 'store/path'],
    ],
  ],
  ['store/append-queue', ['errors', 'native/binding', 'store/handle', 'node:async_hooks']],
  ['store/shown', []],
  [
    'store/writer',
    [
      ...['dtype', 'schema', 'store/append-queue', 'store/capability', 'store/container'],
      ...['store/handle', 'store/shown', 'store/integrity', 'store/options'],
    ],
  ],
  [
    'store/reader',
    [
      ...['dtype', 'errors', 'schema', 'signal', 'native/cancel', 'store/capability'],
      'store/container',
      ...['store/fields', 'store/handle', 'store/shown', 'store/ids', 'store/sizes'],
      'store/stream',
    ],
  ],
  ['store/dense-views', ['dtype', 'ndarray', 'store/memory']],
  [
    'store/pad',
    ['dtype', 'errors', 'ndarray', 'native/load', 'store/capability', 'store/fields', 'store/ids'],
  ],
  [
    'store/ragged-pack',
    [
      ...['dtype', 'errors', 'ndarray', 'schema', 'node:util'],
      ...['store/append-queue', 'store/memory'],
    ],
  ],
  ['store/young', ['dtype', 'ndarray']],
  ['store/pace', ['node:timers/promises', 'store/append-queue']],
  [
    'store/ragged-views',
    ['dtype', 'errors', 'ndarray', 'store/capability', 'store/memory', 'store/pad', 'store/young'],
  ],
  [
    'store/dense',
    [
      ...['dtype', 'errors', 'ndarray', 'schema', 'node:timers/promises', 'node:util'],
      ...['native/turn', 'store/append-queue'],
      ...['store/capability', 'store/container', 'store/dense-views', 'store/fields'],
      ...['store/handle', 'store/memory', 'store/options', 'store/path', 'store/reader'],
      ...['store/pace', 'store/writer', 'store/young'],
    ],
  ],
  [
    'store/ragged',
    [
      ...['dtype', 'errors', 'ndarray', 'schema', 'native/binding', 'native/turn'],
      ...[
        'node:timers/promises',
        'store/pace',
        'store/append-queue',
        'store/capability',
        'store/container',
        'store/fields',
      ],
      ...['store/handle', 'store/memory'],
      ...[
        'store/options',
        'store/path',
        'store/ragged-pack',
        'store/ragged-views',
        'store/reader',
        'store/sizes',
        'store/writer',
        'store/young',
      ],
    ],
  ],
  [
    'store/open',
    [
      ...['store/capability', 'store/container', 'store/dense', 'store/fields', 'store/options'],
      ...['store/path', 'store/ragged'],
    ],
  ],

  [
    'store/concat',
    [
      ...['dtype', 'errors', 'store/capability', 'store/container', 'store/dense', 'store/fields'],
      ...['store/options', 'store/path', 'store/ragged', 'store/set-file'],
    ],
  ],
  [
    'store/hand-over',
    ['dtype', 'store/capability', 'store/dense-views', 'store/memory', 'store/ragged-views'],
  ],

  ['configure', ['errors', 'native/load']],
  ['sampler', ['errors', 'signal', 'native/binding', 'native/cancel', 'native/load']],
  ['frame', ['errors', 'native/load']],
  [
    'dict',
    ['dtype', 'errors', 'ndarray', 'native/load', 'store/capability', 'store/sizes', 'store/walk'],
  ],

  // The converter: from rows to containers.
  ['converter/dataset', ['dtype', 'ndarray']],
  ['converter/file-column', ['converter/dataset']],
  ['converter/batches', ['errors', 'signal', 'converter/dataset']],
  ['converter/features', ['errors', 'converter/dataset']],
  ['converter/names', ['errors']],
  ['converter/parquet/encodings', ['hyparquet']],
  ['converter/parquet/numbers', ['dtype', 'converter/parquet/encodings']],
  ['converter/parquet/codecs', ['errors', 'frame', 'hyparquet', 'node:zlib']],
  ['converter/parquet/page-header', ['errors', 'hyparquet', 'converter/parquet/encodings']],
  ['converter/parquet/arrow-schema', ['converter/dataset']],
  [
    'converter/parquet/file',
    [
      ...['errors', 'hyparquet', 'node:fs/promises', 'converter/dataset', 'converter/features'],
      ...['converter/parquet/arrow-schema', 'converter/parquet/encodings'],
    ],
  ],
  [
    'converter/parquet/pages',
    [
      ...['errors', 'hyparquet', 'node:zlib', 'converter/parquet/codecs'],
      ...['converter/parquet/encodings', 'converter/parquet/file', 'converter/parquet/numbers'],
      'converter/parquet/page-header',
    ],
  ],
  ['converter/parquet/cursor', ['errors', 'converter/parquet/numbers', 'converter/parquet/pages']],
  [
    'converter/parquet',
    [
      ...['dtype', 'errors', 'node:fs/promises', 'node:path', 'converter/dataset'],
      ...['converter/features', 'converter/parquet/cursor', 'converter/parquet/file'],
      ...['converter/parquet/numbers', 'converter/parquet/pages'],
    ],
  ],
  // Pictures: what their headers say, pixels, and the column that they make.
  ['converter/images/pixels', ['errors', 'ndarray']],
  ['converter/images/orientation', ['converter/images/pixels']],
  ['converter/images/file', ['errors', 'converter/images/pixels']],
  [
    'converter/images/png',
    [
      ...['errors', 'node:zlib', 'converter/images/file', 'converter/images/orientation'],
      'converter/images/pixels',
    ],
  ],
  [
    'converter/images/jpeg',
    ['converter/images/file', 'converter/images/orientation', 'converter/images/pixels'],
  ],
  ['converter/images/webp', ['converter/images/file', 'converter/images/orientation']],
  ['converter/images/scanlines', ['node:zlib', 'converter/images/file', 'converter/images/pixels']],
  [
    'converter/images/sharp',
    ['errors', 'sharp', 'converter/images/file', 'converter/images/pixels'],
  ],
  [
    'converter/images/decode',
    [
      ...['errors', 'schema', 'converter/images/file', 'converter/images/jpeg'],
      ...['converter/images/orientation', 'converter/images/pixels', 'converter/images/png'],
      ...['converter/images/scanlines', 'converter/images/sharp', 'converter/images/webp'],
    ],
  ],
  ['converter/images/threads', ['node:os']],
  [
    'converter/images/settling',
    [
      ...['dtype', 'errors', 'ndarray', 'signal', 'node:crypto', 'node:fs/promises', 'node:path'],
      ...['store/capability', 'store/dense', 'store/ragged'],
    ],
  ],
  [
    'converter/images',
    [
      ...['errors', 'signal', 'store/capability', 'converter/dataset', 'converter/images/decode'],
      ...['converter/images/pixels', 'converter/images/settling', 'converter/images/threads'],
    ],
  ],
  // Writing: of sources it knows the types alone.
  [
    'converter/layout',
    ['dtype', 'errors', 'converter/dataset', 'converter/features', 'converter/parquet/numbers'],
  ],
  [
    'converter/images/resize',
    ['errors', 'ndarray', 'converter/images/pixels', 'converter/images/sharp'],
  ],
  [
    'converter/rows',
    [
      ...['dtype', 'errors', 'ndarray', 'converter/dataset', 'converter/file-column'],
      'converter/layout',
    ],
  ],
  [
    'converter/column',
    [
      ...['dtype', 'errors', 'store/capability', 'store/dense', 'store/ragged'],
      ...['store/ragged-views', 'converter/images', 'converter/images/settling'],
      ...['converter/layout', 'converter/rows'],
    ],
  ],
  [
    'converter/survey',
    [
      ...['dtype', 'errors', 'converter/images', 'converter/images/settling'],
      ...['converter/layout', 'converter/rows'],
    ],
  ],
  [
    'converter/staging',
    ['errors', 'node:fs', 'node:path', 'store/dense', 'store/folder', 'store/open'],
  ],
  ['parts', ['errors', 'node:fs', 'node:path', 'store/path', 'converter/staging']],
  ['part-env', ['errors', 'parts', 'variables', 'store/fields']],
  [
    'converter/convert',
    [
      ...['dict', 'errors', 'signal', 'node:fs', 'node:path', 'node:util', 'parts'],
      ...['store/capability', 'store/fields'],
      ...['store/open', 'store/path', 'converter/batches', 'converter/column', 'converter/dataset'],
      ...['converter/file-column', 'converter/images', 'converter/layout', 'converter/names'],
      ...['converter/rows', 'converter/staging', 'converter/survey'],
    ],
  ],

  // Files of others: what each kind is, as a dataset; and the way back.
  ['importers/literal', []],
  ['importers/npy-header', ['dtype', 'errors', 'importers/literal']],
  ['importers/bytes', ['errors', 'node:buffer', 'node:fs', 'converter/file-column', 'store/path']],
  [
    'importers/npy',
    [
      ...['dtype', 'errors', 'ndarray', 'converter/dataset', 'converter/file-column'],
      ...['importers/bytes', 'importers/npy-header'],
    ],
  ],
  ['importers/npy-ragged', ['errors', 'converter/dataset', 'importers/bytes', 'importers/npy']],
  ['importers/cells', ['dtype']],
  ['importers/table', ['dtype', 'errors', 'ndarray', 'converter/dataset', 'importers/cells']],
  [
    'importers/csv',
    [
      ...['errors', 'node:stream', 'csv-parse', 'importers/bytes', 'importers/cells'],
      'importers/table',
    ],
  ],
  [
    'importers/jsonl',
    [...['errors', 'lossless-json', 'importers/bytes', 'importers/cells'], 'importers/table'],
  ],
  ['importers/tokenizer', ['errors', 'node:fs', 'node:module', 'node:path', 'node:url']],
  [
    'importers/text',
    ['errors', 'node:buffer', 'converter/dataset', 'importers/bytes', 'importers/tokenizer'],
  ],
  [
    'importers/pictures',
    [
      ...['errors', 'ndarray', 'node:fs', 'node:fs/promises', 'node:path', 'converter/dataset'],
      ...['converter/images', 'converter/images/resize', 'importers/bytes'],
    ],
  ],
  ['importers/tar', ['errors', 'node:fs', 'node:zlib', 'importers/bytes']],
  [
    'importers/webdataset',
    [
      ...['dtype', 'errors', 'ndarray', 'node:buffer', 'node:fs', 'node:path'],
      ...['converter/dataset', 'importers/bytes', 'importers/npy', 'importers/pictures'],
      'importers/tar',
    ],
  ],
  [
    'importers/zip',
    [
      ...['errors', 'node:fs/promises', 'node:os', 'node:path', 'node:stream', 'node:zlib'],
      'importers/bytes',
    ],
  ],
  [
    'importers/import',
    [
      ...['errors', 'node:path', 'signal', 'store/capability', 'store/fields', 'inspect/info'],
      ...['converter/convert', 'converter/dataset', 'converter/layout', 'converter/names'],
      ...['converter/parquet', 'converter/survey', 'importers/bytes', 'importers/csv'],
      ...['importers/jsonl', 'importers/npy', 'importers/npy-ragged', 'importers/table'],
      ...['importers/pictures', 'importers/text', 'importers/tokenizer', 'importers/zip'],
      ...['importers/webdataset', 'node:fs', 'parts', 'store/path'],
    ],
  ],
  ['exporters/target', ['errors', 'node:crypto', 'node:fs/promises', 'node:path', 'store/folder']],
  ['exporters/zip', ['errors', 'node:zlib']],
  ['exporters/classes', ['errors', 'node:fs/promises', 'node:path']],
  ['exporters/arrow-schema', []],
  ['exporters/parquet-bytes', []],
  [
    'exporters/parquet',
    [
      ...['dtype', 'errors', 'node:util', 'node:zlib', 'signal', 'store/capability'],
      ...['store/ids', 'store/open', 'store/walk', 'inspect/info', 'exporters/arrow-schema'],
      ...['exporters/classes', 'exporters/npy', 'exporters/parquet-bytes', 'exporters/target'],
    ],
  ],
  [
    'exporters/npy',
    [
      ...['dtype', 'errors', 'signal', 'store/capability', 'store/fields'],
      ...['store/open', 'store/walk', 'importers/npy-header', 'inspect/info'],
      ...['inspect/progress', 'inspect/settings', 'exporters/target', 'exporters/zip'],
    ],
  ],

  // Looking at whole containers. Natively they are checked, and read as everybody reads them.
  ['inspect/progress', []],
  ['inspect/settings', ['errors', 'signal', 'store/fields', 'inspect/progress']],
  [
    'inspect/facts',
    ['dtype', 'schema', 'store/capability', 'store/container', 'store/dense', 'store/ragged'],
  ],
  [
    'inspect/info',
    [
      ...['dtype', 'errors', 'schema', 'signal', 'store/container', 'store/fields'],
      ...['store/folder', 'store/ids', 'store/integrity', 'store/integrity-file', 'store/path'],
      'store/listing',
      ...['inspect/facts', 'inspect/progress', 'inspect/settings'],
    ],
  ],
  ['inspect/plain', []],
  ['inspect/numbers', ['dtype', 'errors', 'ndarray']],
  ['inspect/picture', ['ndarray']],
  ['inspect/png', ['errors', 'ndarray', 'node:zlib', 'store/fields', 'inspect/picture']],
  [
    'inspect/head',
    [
      ...['errors', 'ndarray', 'store/container', 'store/fields', 'store/ids', 'store/path'],
      ...['store/walk', 'inspect/facts', 'inspect/numbers', 'inspect/picture', 'inspect/plain'],
      'inspect/settings',
    ],
  ],
  [
    'inspect/verify',
    [
      ...['errors', 'native/binding', 'native/cancel', 'store/container', 'store/fields'],
      ...['store/folder', 'store/integrity', 'store/integrity-file', 'store/path'],
      ...['inspect/progress', 'inspect/settings'],
    ],
  ],
  [
    'inspect/digest',
    [
      ...['errors', 'store/capability', 'store/container', 'store/fields', 'store/folder'],
      ...['store/integrity', 'store/integrity-file', 'store/logical-digest', 'store/path'],
      ...['inspect/facts', 'inspect/progress', 'inspect/settings', 'inspect/verify'],
    ],
  ],
  [
    'inspect/diff',
    [
      ...['dtype', 'ndarray', 'store/capability', 'store/container', 'store/fields', 'store/ids'],
      ...['store/logical-digest', 'store/path', 'store/walk', 'inspect/facts'],
      ...['inspect/numbers', 'inspect/progress', 'inspect/settings'],
    ],
  ],
  [
    'inspect/recode',
    [
      ...[
        'dict',
        'errors',
        'node:path',
        'signal',
        'schema',
        'store/capability',
        'store/container',
        'store/dense',
      ],
      ...['store/fields', 'store/folder'],
      ...['store/logical-digest', 'store/path', 'store/ragged', 'store/walk'],
      ...['inspect/facts', 'inspect/progress', 'inspect/settings'],
    ],
  ],
  [
    'inspect/set',
    [
      ...['errors', 'node:fs', 'node:path', 'store/container', 'store/fields', 'store/folder'],
      ...['store/integrity', 'store/logical-digest', 'store/path', 'store/set-file'],
      ...['inspect/facts', 'inspect/progress', 'inspect/settings'],
    ],
  ],

  // The command line: words in, text out. What it does is done by the rooms above.
  ['cli/text', ['inspect/plain']],
  ['cli/terminal', ['inspect/picture', 'inspect/progress', 'cli/text']],
  ['cli/output', ['node:fs', 'cli/terminal']],
  ['cli/command', ['errors', 'cli/terminal']],
  ['cli/files', ['node:fs', 'node:path', 'inspect/info', 'cli/command']],
  ['cli/several', ['errors', 'inspect/info', 'cli/terminal', 'cli/text']],
  ['cli/info', ['inspect/facts', 'inspect/info', 'cli/several', ...cliDoors]],
  [
    'cli/head',
    [
      ...['errors', 'ndarray', 'inspect/head', 'inspect/numbers', 'inspect/picture'],
      ...['importers/tokenizer', 'inspect/png', 'cli/files', 'cli/info', ...cliDoors],
    ],
  ],
  ['cli/verify', ['inspect/verify', 'cli/several', ...cliDoors]],
  ['cli/digest', ['inspect/digest', 'cli/command', 'cli/several', 'cli/text']],
  ['cli/diff', ['inspect/diff', 'cli/info', ...cliDoors]],
  ['cli/recode', ['inspect/recode', 'cli/files', ...cliDoors]],
  ['cli/concat', ['inspect/set', 'cli/command', 'cli/text']],
  ['cli/merge', ['inspect/recode', 'cli/command', 'cli/recode', 'cli/text']],
  ['cli/train-dict', ['dict', 'store/open', 'cli/command', 'cli/files', 'cli/text']],
  ['cli/part', ['errors', 'part-env', 'parts', 'cli/command', 'cli/terminal']],
  [
    'cli/convert',
    [
      ...['converter/convert', 'converter/dataset', 'converter/hub'],
      ...['converter/parquet', 'inspect/progress', 'cli/files', 'cli/part', ...cliDoors],
    ],
  ],
  [
    'exporters/pictures',
    [
      ...['errors', 'ndarray', 'node:fs/promises', 'node:path', 'signal', 'store/folder'],
      ...['store/capability', 'store/fields', 'store/open', 'store/walk', 'inspect/picture'],
      ...['inspect/png', 'inspect/progress', 'inspect/settings', 'exporters/npy'],
      ...['exporters/classes', 'exporters/target'],
    ],
  ],
  // Measuring: what a program of the user's would open.
  [
    'bench/container',
    [
      ...['errors', 'node:fs', 'node:timers/promises', 'sampler', 'signal', 'store/capability'],
      ...['store/fields', 'store/open', 'store/path', 'inspect/progress', 'inspect/settings'],
    ],
  ],
  [
    'bench/loader',
    [
      ...['errors', 'signal', 'store/capability', 'store/fields', 'store/open'],
      ...['inspect/settings', 'loader/data-loader', 'bench/container'],
    ],
  ],
  ['cli/bench', ['configure', 'inspect/info', 'bench/container', 'bench/loader', ...cliDoors]],
  ['cli/cat', ['exporters/npy', 'cli/command', 'cli/text']],
  [
    'cli/export',
    [
      ...['exporters/npy', 'exporters/parquet', 'exporters/pictures', 'inspect/progress'],
      ...['cli/command', 'cli/text'],
    ],
  ],
  ['cli/import', ['importers/import', 'node:fs', 'cli/files', 'cli/part', ...cliDoors]],
  ['cli/words', []],
  [
    'cli/main',
    [
      ...[
        'errors',
        'node:fs',
        'node:util',
        'cli/bench',
        'cli/cat',
        'cli/concat',
        'cli/convert',
        'cli/diff',
        'cli/digest',
        'cli/export',
        'cli/head',
        'cli/import',
        'cli/info',
        'cli/merge',
        'cli/recode',
      ],
      ...['cli/train-dict', 'cli/verify', 'cli/words', ...cliDoors],
    ],
  ],

  // Datasets of a hub: names, rules and cards are pure; the wire, the cache and the client do the work.
  ['converter/hub/names', ['errors']],
  ['converter/hub/glob', []],
  ['converter/hub/formats', []],
  ['converter/hub/card', ['errors', 'yaml', 'converter/hub/names']],
  [
    'converter/hub/data-files',
    [
      ...['errors', 'converter/hub/card', 'converter/hub/formats', 'converter/hub/glob'],
      'converter/hub/names',
    ],
  ],
  ['converter/hub/settings', ['errors', 'node:fs', 'node:path']],
  ['converter/hub/failure', ['errors', 'converter/hub/settings']],
  ['converter/hub/wire', ['errors', 'converter/hub/failure', 'converter/hub/settings']],
  [
    'converter/hub/client',
    [
      ...['errors', '@huggingface/hub', 'converter/hub/failure', 'converter/hub/names'],
      ...['converter/hub/settings', 'converter/hub/wire'],
    ],
  ],
  [
    'converter/hub/cache',
    [
      ...['errors', 'node:crypto', 'node:fs', 'node:os', 'node:path', 'converter/hub/client'],
      'converter/hub/names',
    ],
  ],
  [
    'converter/hub/load',
    [
      ...['errors', 'node:crypto', 'converter/hub/cache', 'converter/hub/client'],
      ...['converter/hub/failure', 'converter/hub/wire'],
    ],
  ],
  [
    'converter/hub',
    [
      ...['errors', 'node:fs', 'node:os', 'node:timers/promises', 'signal', 'store/fields'],
      ...['converter/hub/cache', 'converter/hub/card', 'converter/hub/client'],
      ...['converter/hub/data-files', 'converter/hub/formats', 'converter/hub/load'],
      ...['converter/hub/names', 'converter/hub/settings', 'converter/hub/wire'],
      ...['converter/dataset', 'converter/features', 'converter/parquet'],
    ],
  ],

  // The loader: readers are types to it, but for the door that they open to it.
  ['loader/abort', ['errors']],
  ['loader/stats', []],
  ['loader/rng', ['errors']],
  ['loader/shard', ['errors', 'variables']],
  ['loader/plan', ['errors', 'sampler', 'loader/shard']],
  ['loader/prefetch', ['errors', 'loader/abort', 'loader/stats']],
  ['loader/batch', ['store/capability', 'store/hand-over', 'store/stream']],
  [
    'loader/options',
    [
      ...['errors', 'sampler', 'signal', 'store/stream', 'loader/batch', 'loader/shard'],
      'loader/transform-module',
    ],
  ],
  ['loader/transform-module', ['errors']],
  [
    'loader/transform',
    [
      ...['node:async_hooks', 'loader/abort', 'loader/batch', 'loader/plan', 'loader/rng'],
      'loader/transform-module',
    ],
  ],
  ['loader/crossing', ['errors', 'node:util', 'store/hand-over', 'loader/batch']],
  [
    'loader/transform-pool',
    [
      ...['errors', 'node:worker_threads', 'store/hand-over', 'loader/abort', 'loader/batch'],
      ...['loader/crossing', 'loader/plan', 'loader/transform', 'loader/transform-worker'],
    ],
  ],
  [
    'loader/transform-worker',
    [
      ...['errors', 'node:worker_threads', 'store/hand-over', 'loader/batch', 'loader/crossing'],
      ...['loader/rng', 'loader/transform-module'],
    ],
  ],
  [
    'loader/data-loader',
    [
      ...['errors', 'signal', 'sampler', 'loader/batch', 'loader/options', 'loader/plan'],
      'loader/prefetch',
      ...['loader/shard', 'loader/transform', 'loader/transform-pool'],
    ],
  ],

  // Conversions in parts by a queue: those who ask, those who work, and the processes that do it.
  ['bullmq/spec', ['errors', 'parts', 'store/capability', 'store/fields']],
  ['bullmq/place', ['errors', 'store/fields']],
  ['bullmq/peers', ['errors', 'npm:bullmq', 'ioredis']],
  ['bullmq/task', ['errors', 'bullmq/spec']],
  [
    'bullmq/conversion',
    [
      ...['errors', 'signal', 'node:crypto', 'node:path', 'node:timers/promises', 'npm:bullmq'],
      ...['store/fields', 'bullmq/peers', 'bullmq/place', 'bullmq/spec', 'bullmq/task'],
    ],
  ],
  ['bullmq/child', ['errors', 'node:child_process', 'bullmq/task']],
  [
    'bullmq/worker',
    [
      ...['errors', 'parts', 'converter/staging', 'node:timers/promises', 'npm:bullmq'],
      ...['store/fields', 'bullmq/child'],
      ...['bullmq/peers', 'bullmq/place', 'bullmq/spec', 'bullmq/task'],
    ],
  ],
  ['bullmq/life-thread', ['node:net', 'bullmq/task']],
  [
    'bullmq/task-process',
    [
      ...['errors', 'node:fs', 'node:path', 'node:worker_threads', 'parts', 'store/concat'],
      ...['converter/convert', 'converter/dataset', 'converter/hub', 'converter/parquet'],
      ...['converter/staging', 'inspect/set', 'bullmq/spec', 'bullmq/task'],
    ],
  ],

  // Entries: lists of exports. Nothing imports them.
  [
    'index',
    [
      ...['bench/container', 'bench/loader', 'configure', 'dict', 'dtype', 'errors', 'ndarray'],
      ...['part-env', 'parts', 'sampler', 'schema'],
      ...['inspect/diff', 'inspect/digest', 'inspect/facts', 'inspect/head', 'inspect/info'],
      ...['inspect/png', 'inspect/progress', 'inspect/recode', 'inspect/set', 'inspect/verify'],
      ...['loader/batch', 'loader/data-loader', 'loader/rng', 'loader/shard', 'loader/transform'],
      ...['store/capability', 'store/concat', 'store/container', 'store/dense', 'store/ids'],
      ...['store/open', 'store/path', 'store/ragged', 'store/set-file'],
    ],
  ],
  [
    'converter',
    [
      'converter/hub',
      ...['converter/convert', 'converter/dataset', 'converter/features', 'converter/images'],
      ...['converter/layout', 'converter/names', 'converter/parquet'],
    ],
  ],
  ['importers', ['importers/import', 'importers/tokenizer', 'importers/webdataset']],
  ['exporters', ['exporters/npy', 'exporters/parquet', 'exporters/pictures']],
  ['bullmq', ['bullmq/conversion', 'bullmq/place', 'bullmq/spec', 'bullmq/task', 'bullmq/worker']],
  ['cli', ['cli/main', 'cli/output']],
];

const allowed = new Map(rooms);
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .map((file) => file.split(path.sep).join('/'))
  .filter((file) => file.endsWith('.ts'))
  .sort();

/** Every module a file names: imports, re-exports, `import()` and import types. */
function importsOf(file: string): readonly string[] {
  const text = readFileSync(path.join(root, file), 'utf8');
  return ts.preProcessFile(text, true, true).importedFiles.map(({ fileName }) => {
    // A package may have the name of a room.
    if (!fileName.startsWith('.')) return fileName === 'bullmq' ? 'npm:bullmq' : fileName;
    t.match(fileName, /\.js$/, `${file} names ${fileName} as it is at run time`);
    return path.posix.join(path.posix.dirname(file), fileName).replace(/\.js$/, '');
  });
}

t.test('each file imports only what its room may', async (t) => {
  t.ok(files.length > 20);
  for (const file of files) {
    const room = file.replace(/\.ts$/, '');
    const doors = allowed.get(room);
    t.ok(doors, `${file} is a room of the table`);
    for (const imported of importsOf(file)) {
      t.ok(doors?.includes(imported), `${room} may import ${imported}`);
    }
  }
});

t.test('the table has no room that is gone, and no door that nobody uses', async (t) => {
  for (const [room, doors] of rooms) {
    t.ok(files.includes(`${room}.ts`), `${room} is there`);
    const used = files.includes(`${room}.ts`) ? importsOf(`${room}.ts`) : [];
    for (const door of doors) t.ok(used.includes(door), `${room} uses ${door}`);
  }
});

t.test('imports point down: no cycle, and nothing imports an entry', async (t) => {
  const done = new Set<string>();
  const visit = (room: string, above: readonly string[]): void => {
    if (above.includes(room)) {
      t.fail(`a cycle: ${[...above, room].join(' -> ')}`);
      return;
    }
    if (done.has(room)) return;
    for (const door of allowed.get(room) ?? []) visit(door, [...above, room]);
    done.add(room);
  };
  for (const [room] of rooms) visit(room, []);
  for (const [room, doors] of rooms) {
    t.notOk(
      doors.some((door) =>
        ['index', 'converter', 'importers', 'exporters', 'bullmq', 'cli'].includes(door),
      ),
      room,
    );
  }
});

t.test('the whole areas: what each may never open', async (t) => {
  const never: readonly (readonly [RegExp, RegExp])[] = [
    [/^(errors|dtype|ndarray|schema|schema-walk)$/, /^(native\/|store\/|node:)/],
    [/^native\//, /^(store\/|dtype|ndarray|schema|sampler|dict|loader\/|converter\/)/],
    [/^(store\/|sampler|dict)/, /^(loader\/|converter\/|index|converter|cli)/],
    [/^loader\//, /^(native\/|converter\/|store\/(?!capability$|hand-over$|stream$))/],
    [/^converter\//, /^(native|loader)\//],
    [/^(importers|exporters)\//, /^(native|loader|cli)\//],
    [/^(store\/|sampler|dict|loader\/|converter\/|inspect\/)/, /^(importers|exporters)\//],
    [/^(store\/|sampler|dict|loader\/)/, /^(inspect|cli)\//],
    [/^inspect\//, /^(loader|converter|cli)\//],
    [/^cli\//, /^(native|loader)\/|^store\/(?!open$)/],
  ];
  for (const file of files) {
    const room = file.replace(/\.ts$/, '');
    for (const [from, to] of never) {
      if (!from.test(room)) continue;
      for (const imported of importsOf(file)) t.notMatch(imported, to, `${room} and ${imported}`);
    }
  }
  for (const file of files) {
    t.notMatch(
      file,
      /(^|\/)(utils?|common|types|helpers)(\/|\.)/,
      `${file} is named for what it hides`,
    );
  }
});
