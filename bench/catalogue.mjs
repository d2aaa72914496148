// @ts-check
// Which backends there are, what each is measured in, and what is left out and why.

/** @typedef {'mnist_dense' | 'tokens_dense' | 'tokens_ragged' | 'vision_dense' | 'vision_ragged'} WorkloadName */

/** In the order of the tables. */
export const workloads = /** @type {const} */ ({
  tokens_dense: 'tokens, dense int32[512]',
  tokens_ragged: 'tokens, ragged int32[16..512]',
  mnist_dense: 'digits, dense uint8[28,28]',
  vision_dense: 'photos, dense uint8[3,224,224]',
  vision_ragged: 'photos, ragged uint8[3,H,W]',
});

/** @param {WorkloadName} name */
export const isRagged = (name) => name.endsWith('_ragged');

/**
 * @typedef {object} Entry
 * @property {string} name
 * @property {'node' | 'peers' | 'loaderx-2.4' | 'loaderx-2.8'} runtime what runs `file`
 * @property {string} file in backends/
 * @property {readonly string[]} variants codecs, mostly
 * @property {(workload: WorkloadName, variant: string) => readonly string[]} modes
 * @property {(workload: WorkloadName, variant: string) => string | null} [leftOut] why there is no such row
 * @property {readonly string[]} [writeModes] `['']` unless given
 * @property {boolean} [isWrittenEachRound] its append is a figure that is compared
 * @property {boolean} [isPeer] needs the npm packages of .bench/node
 */

const fresh = () => ['fresh'];
const ownKinds = ['await-disposed', 'await-dropped', 'await-out', 'sync-disposed', 'sync-dropped'];

/** @param {WorkloadName} workload @param {string} variant */
function ownModes(workload, variant) {
  const kinds =
    variant === 'raw' ? [...ownKinds, 'sync-out'] : [...ownKinds.slice(0, 3), 'sync-out'];
  if (isRagged(workload)) return [...kinds.map((kind) => `${kind}-views`), ...kinds];
  return variant === 'raw' ? [...kinds, 'await-out-own'] : kinds;
}

/** @type {readonly Entry[]} */
export const entries = [
  {
    name: 'ours',
    runtime: 'node',
    file: 'ours.mjs',
    variants: ['raw', 'zstd', 'zstd_dict'],
    modes: ownModes,
    writeModes: ['async', 'sync'],
    isWrittenEachRound: true,
  },
  {
    name: 'loaderx-2.4.6',
    runtime: 'loaderx-2.4',
    file: 'loaderx_2_4.py',
    variants: ['raw', 'zstd', 'zstd_dict'],
    modes: fresh,
    isWrittenEachRound: true,
  },
  {
    name: 'loaderx-2.8.19',
    runtime: 'loaderx-2.8',
    file: 'loaderx_2_8.py',
    variants: ['raw', 'zstd', 'zstd_dict'],
    modes: fresh,
    isWrittenEachRound: true,
  },
  {
    name: 'npy-mmap',
    runtime: 'peers',
    file: 'npy_mmap.py',
    variants: ['raw'],
    modes: (workload) => (isRagged(workload) ? ['fresh'] : ['fresh', 'kept']),
    isWrittenEachRound: true,
  },
  { name: 'h5py', runtime: 'peers', file: 'hdf5.py', variants: ['raw', 'gzip'], modes: fresh },
  { name: 'lmdb-python', runtime: 'peers', file: 'lmdb_store.py', variants: ['raw'], modes: fresh },
  {
    name: 'arrow-ipc',
    runtime: 'peers',
    file: 'arrow_ipc.py',
    variants: ['raw', 'zstd'],
    modes: fresh,
  },
  {
    name: 'parquet',
    runtime: 'peers',
    file: 'parquet.py',
    variants: ['raw', 'zstd'],
    modes: fresh,
  },
  {
    name: 'arrayrecord',
    runtime: 'peers',
    file: 'arrayrecord.py',
    variants: ['raw', 'zstd'],
    modes: fresh,
  },
  {
    name: 'node-fs',
    runtime: 'node',
    file: 'node-fs.mjs',
    variants: ['raw'],
    modes: () => ['fresh', 'kept', 'await-fresh'],
  },
  {
    name: 'npm-mmap-io',
    runtime: 'node',
    file: 'npm-mmap-io.mjs',
    variants: ['raw'],
    modes: () => ['fresh', 'kept'],
    isPeer: true,
  },
  ...['lmdb', 'better-sqlite3', 'apache-arrow', 'hyparquet', 'h5wasm', 'zarrita'].map(
    (name) =>
      /** @type {Entry} */ ({
        name: `npm-${name}`,
        runtime: 'node',
        file: `npm-${name}.mjs`,
        variants: ['raw'],
        modes: fresh,
        isPeer: true,
      }),
  ),
];

/** The stores whose frames the limits decode. */
export const limitsStore = 'ours';

/**
 * The limits are no store: they read the source, or the containers of `limitsStore`.
 *
 * @param {WorkloadName} workload
 * @param {number} threads all that may run
 * @param {boolean} hasGcc
 * @returns {{variant: string, mode: string}[]}
 */
export function limitRows(workload, threads, hasGcc) {
  const counts = threads === 1 ? [1] : [1, threads];
  const targets = workload.startsWith('vision') ? ['kept', 'fresh', 'huge'] : ['kept', 'fresh'];
  const rows = [];
  for (const count of counts) {
    for (const target of targets) rows.push({ variant: 'copy', mode: `${target}-${count}` });
    if (workload.startsWith('vision')) rows.push({ variant: 'stream', mode: `kept-${count}` });
    for (const target of ['kept', 'fresh']) {
      rows.push({ variant: 'pread', mode: `${target}-${count}` });
    }
    for (const variant of ['zstd', 'zstd_dict']) {
      rows.push({ variant, mode: `kept-${count}` });
      if (hasGcc) rows.push({ variant, mode: `gcc-kept-${count}` });
    }
  }
  return rows;
}

/** What `--quick` measures. */
export const quick = {
  backends: ['ours', 'loaderx-2.4.6', 'npy-mmap', 'lmdb-python'],
  modes: [
    'await-disposed',
    'await-dropped',
    'await-disposed-views',
    'await-dropped-views',
    'fresh',
  ],
};

/** Left out of the whole bench, and why: named in every run. */
export const neverMeasured = [
  ['hyparquet zstd', 'hyparquet-writer writes no zstd'],
  [
    'h5py gzip of single ragged records',
    'HDF5 filters do not reach variable-length data: the items are one chunked array instead',
  ],
];
