// @ts-check
// What is to be shown, and what was reached: ratios of medians of one run.
import { isRagged, workloads } from './catalogue.mjs';
import { median } from './statistics.mjs';

/** @typedef {import('./catalogue.mjs').WorkloadName} WorkloadName */
/** @typedef {import('./report.mjs').Row} Row */

/**
 * @typedef {object} Goal
 * @property {string} what
 * @property {string} against
 * @property {string} wanted
 * @property {string} reached
 * @property {string} atMedianCall the same ratio of median calls, where there is one
 * @property {'yes' | 'NO' | 'not measured'} verdict
 * @property {string} note
 */

/**
 * Finds a row of the run.
 *
 * @typedef {(workload: string, op: 'write' | 'gather', backend: string, variant: string, mode: string) => Row | undefined} Find
 */

const loaderx = { backend: 'loaderx-2.4.6', mode: 'fresh' };
const npy = { backend: 'npy-mmap', mode: 'fresh' };

/**
 * `kept`: the batch is disposed of; what `out` reached is beside it, and counts when that is what
 * reaches the goal. `dropped`: the batch is just dropped.
 *
 * @type {readonly {workload: WorkloadName, variant: string, kept: {loaderx: number, npy?: number, bare?: number}, dropped: {loaderx?: number, bare?: number}}[]}
 */
const gathers = [
  {
    workload: 'tokens_dense',
    variant: 'raw',
    kept: { loaderx: 5, npy: 1.3 },
    dropped: { loaderx: 2.5 },
  },
  {
    workload: 'tokens_ragged',
    variant: 'raw',
    kept: { loaderx: 8, npy: 2.5 },
    dropped: { loaderx: 6 },
  },
  { workload: 'mnist_dense', variant: 'raw', kept: { loaderx: 8 }, dropped: { loaderx: 4 } },
  {
    workload: 'vision_dense',
    variant: 'raw',
    kept: { loaderx: 2, npy: 2 },
    dropped: { loaderx: 1 },
  },
  {
    workload: 'vision_ragged',
    variant: 'raw',
    kept: { loaderx: 2, npy: 2 },
    dropped: { loaderx: 1 },
  },
  {
    workload: 'vision_dense',
    variant: 'zstd',
    kept: { loaderx: 1.1, bare: 0.9 },
    dropped: { bare: 0.8 },
  },
  {
    workload: 'vision_ragged',
    variant: 'zstd',
    kept: { loaderx: 1.1, bare: 0.9 },
    dropped: { bare: 0.8 },
  },
  {
    workload: 'tokens_dense',
    variant: 'zstd',
    kept: { loaderx: 1.6, bare: 0.9 },
    dropped: { loaderx: 1.5 },
  },
  {
    workload: 'tokens_dense',
    variant: 'zstd_dict',
    kept: { loaderx: 1.6, bare: 0.9 },
    dropped: { loaderx: 1.5 },
  },
  {
    workload: 'tokens_ragged',
    variant: 'zstd',
    kept: { loaderx: 2, bare: 0.85 },
    dropped: { loaderx: 1.8 },
  },
  {
    workload: 'tokens_ragged',
    variant: 'zstd_dict',
    kept: { loaderx: 2.5, bare: 0.85 },
    dropped: { loaderx: 2.2 },
  },
];

const appends = { raw: 1.1, zstd: 1, zstd_dict: 1 };

/** What `ts/store/memory.ts` keeps at most, and what is allowed above that and the batch. */
const poolMib = 256;
const slackMib = 16;

/**
 * @param {Find} find
 * @param {readonly Row[]} rows
 * @param {Record<string, any>} extras
 * @returns {Goal[]}
 */
export function goalsOf(find, rows, extras) {
  const names = /** @type {WorkloadName[]} */ (Object.keys(workloads));
  const measured = names.filter((name) => rows.some((row) => row.workload === name));
  return [
    ...gathers
      .filter(({ workload }) => measured.includes(workload))
      .flatMap((goal) => gatherGoals(find, rows, goal)),
    ...measured.flatMap((workload) => appendGoals(find, workload)),
    ...measured.flatMap((workload) => peerGoals(find, rows, workload)),
    ...(Object.keys(extras).length === 0 ? [] : extraGoals(extras)),
  ];
}

/** @param {Find} find @param {readonly Row[]} rows @param {(typeof gathers)[number]} goal @returns {Goal[]} */
function gatherGoals(find, rows, { workload, variant, kept, dropped }) {
  const views = isRagged(workload) ? '-views' : '';
  const threads = rows
    .filter((row) => row.backend === 'limits' && /^kept-\d+$/.test(row.mode))
    .map((row) => Number(row.mode.slice('kept-'.length)));
  const bareMode = `kept-${Math.max(1, ...threads)}`;
  const ours = (/** @type {string} */ mode) => find(workload, 'gather', 'ours', variant, mode);
  /** @type {Goal[]} */
  const goals = [];
  const add = (
    /** @type {'disposed' | 'dropped'} */ kind,
    /** @type {string} */ against,
    /** @type {number | undefined} */ wanted,
    /** @type {Row | undefined} */ other,
    /** @type {string} */ suffix,
  ) => {
    if (wanted === undefined) return;
    const name = `${workloads[workload]}, ${variant}${suffix === '' ? '' : ', views made'}, ${kind}`;
    const out = kind === 'disposed' ? ours(`await-out${suffix}`) : undefined;
    goals.push(ratioGoal(name, against, wanted, ours(`await-${kind}${suffix}`), other, out));
  };
  const peer = (
    /** @type {{backend: string, mode: string}} */ { backend, mode },
    codec = variant,
  ) => find(workload, 'gather', backend, codec, mode);
  const bare = find(workload, 'gather', 'limits', variant, bareMode);
  add('disposed', loaderx.backend, kept.loaderx, peer(loaderx), views);
  add('disposed', npy.backend, kept.npy, peer(npy), views);
  // Bare libzstd makes no views: the packed batch is compared with it.
  add('disposed', `libzstd, ${bareMode}`, kept.bare, bare, '');
  add('dropped', loaderx.backend, dropped.loaderx, peer(loaderx), views);
  add('dropped', `libzstd, ${bareMode}`, dropped.bare, bare, '');
  return goals;
}

/** @param {Find} find @param {WorkloadName} workload @returns {Goal[]} */
function appendGoals(find, workload) {
  return Object.entries(appends).map(([variant, wanted]) => {
    const ours =
      find(workload, 'write', 'ours', variant, 'async') ??
      find(workload, 'write', 'ours', variant, '');
    const other = find(workload, 'write', loaderx.backend, variant, '');
    const sync = find(workload, 'write', 'ours', variant, 'sync');
    const goal = ratioGoal(
      `${workloads[workload]}, ${variant}, append`,
      loaderx.backend,
      wanted,
      ours,
      other,
      undefined,
    );
    if (sync !== undefined && other !== undefined) {
      goal.note = `appendSync ${times(sync.mibPerS / other.mibPerS)}`;
    }
    return goal;
  });
}

/** @param {Find} find @param {readonly Row[]} rows @param {WorkloadName} workload @returns {Goal[]} */
function peerGoals(find, rows, workload) {
  const views = isRagged(workload) ? '-views' : '';
  /** @type {Goal[]} */
  const goals = [];
  for (const row of rows) {
    const isPeer = row.backend.startsWith('npm-') || row.backend === 'node-fs';
    if (row.workload !== workload || row.op !== 'gather' || !isPeer) continue;
    for (const kind of row.mode === 'kept' ? ['disposed'] : ['disposed', 'dropped']) {
      const ours = find(workload, 'gather', 'ours', row.variant, `await-${kind}${views}`);
      const out =
        kind === 'disposed'
          ? find(workload, 'gather', 'ours', row.variant, `await-out${views}`)
          : undefined;
      const name = `${workloads[workload]}, ${row.variant}, ${kind}`;
      goals.push(ratioGoal(name, `${row.backend} ${row.mode}`, 1, ours, row, out));
    }
  }
  return goals;
}

/**
 * @param {string} what
 * @param {string} against
 * @param {number} wanted
 * @param {Row | undefined} ours
 * @param {Row | undefined} other
 * @param {Row | undefined} out
 * @returns {Goal}
 */
function ratioGoal(what, against, wanted, ours, other, out) {
  const goal = {
    what,
    against,
    wanted: `≥ ${times(wanted)}`,
    reached: '–',
    atMedianCall: '',
    note: '',
  };
  if (ours === undefined || other === undefined) return { ...goal, verdict: 'not measured' };
  const ratio = ours.mibPerS / other.mibPerS;
  const outRatio = out === undefined ? undefined : out.mibPerS / other.mibPerS;
  const atMedianCall =
    ours.p50MibPerS === undefined || other.p50MibPerS === undefined
      ? ''
      : times(ours.p50MibPerS / other.p50MibPerS);
  const notes = [];
  if (outRatio !== undefined) notes.push(`out ${times(outRatio)}`);
  if (ours.disturbed > 0 || other.disturbed > 0) notes.push('disturbed');
  if (ratio < wanted && (outRatio ?? 0) >= wanted) notes.push('by out only');
  const isReached = Math.max(ratio, outRatio ?? 0) >= wanted;
  return {
    ...goal,
    reached: times(ratio),
    atMedianCall,
    note: notes.join(', '),
    verdict: isReached ? 'yes' : 'NO',
  };
}

/** @param {Record<string, any>} extras @returns {Goal[]} */
function extraGoals(extras) {
  /** @type {Goal[]} */
  const goals = [];
  const at = (
    /** @type {string} */ what,
    /** @type {string} */ unit,
    /** @type {'≤' | '≥'} */ sign,
    /** @type {number} */ limit,
    /** @type {number | undefined} */ value,
    against = '',
    note = '',
  ) => {
    const goal = { what, against, wanted: `${sign} ${limit}${unit}`, atMedianCall: '', note };
    if (value === undefined || Number.isNaN(value)) {
      goals.push({ ...goal, reached: '–', verdict: 'not measured' });
      return;
    }
    const isReached = sign === '≤' ? value <= limit : value >= limit;
    goals.push({ ...goal, reached: `${short(value)}${unit}`, verdict: isReached ? 'yes' : 'NO' });
  };
  const one = extras['one record']?.us;
  at('one 4-byte record, await gather', ' µs', '≤', 15, one?.['await gather']);
  at('one 4-byte record, gatherSync', ' µs', '≤', 1.5, one?.gatherSync);

  const [own, python] = [extras.sampler?.us, extras['sampler python']?.us];
  for (const [mode, wanted] of /** @type {const} */ ([
    ['iid', { 256: 0.9, 1024: 1, 8192: 1 }],
    ['cyclic', { 256: 0.9, 1024: 2, 8192: 2 }],
  ])) {
    for (const [batch, limit] of Object.entries(wanted)) {
      const ratio = python?.[`loaderx ${mode} ${batch}`] / own?.[`ours ${mode} ${batch}`];
      at(`sampler, ${mode} ${batch}`, '×', '≥', limit, ratio, loaderx.backend);
    }
  }
  at('opening 10 million records', ' ms', '≤', 5, extras.open?.firstMs);
  at('opening 10 million records, anonymous memory', ' MiB', '≤', 1, extras.open?.openedMib);
  const small = extras['small records'];
  at('64-byte records, 10⁷ against 10⁴', '×', '≤', 2, small?.ratio);
  for (const name of Object.keys(extras)) {
    if (name.startsWith('event loop')) {
      at(`${name}, delay p99`, ' ms', '≤', 10, extras[name]?.loaded?.p99Ms);
    }
    const memory = /^memory (\S+) (\S+) \S+-(disposed|out)$/.exec(name);
    if (memory !== null) {
      const { requestedMib, peakAboveBaseMib } = extras[name];
      const limit = Math.round((requestedMib ?? 0) + slackMib + poolMib);
      at(`${name}, peak above base`, ' MiB', '≤', limit, peakAboveBaseMib);
    }
    if (name.startsWith('integrity ')) {
      const { verifyToGather, verifyFileToGather, checkedToGather } = extras[name];
      at(`${name}, verify`, '×', '≥', 0.8, verifyToGather, 'gather');
      at(`${name}, verify with the file`, '×', '≥', 0.8, verifyFileToGather, 'gather');
      // Of the others only how much it is.
      if (name.includes(' vision_')) {
        at(`${name}, checked gather`, '×', '≥', 0.9, checkedToGather, 'gather');
      }
    }
    if (name.startsWith('busy pool')) {
      const { gatherBusy, gatherIdle, readBusy, readIdle } = extras[name];
      const note = 'the pool also takes one of the processors';
      at(
        `${name}, gather against an idle pool`,
        '×',
        '≤',
        3,
        gatherBusy?.p50Ms / gatherIdle?.p50Ms,
        '',
        note,
      );
      at(
        `${name}, fs read p95 while gathering, more than alone`,
        ' ms',
        '≤',
        10,
        readBusy?.p95Ms - readIdle?.p95Ms,
      );
    }
  }
  for (const [key, { map, reads }] of coldPairs(extras)) {
    at(`cold ${key}, map against reads`, '×', '≤', 1, map / reads, 'positional reads');
  }
  return goals;
}

/** Mean ms of a cold batch, the median over rounds. @param {Record<string, any>} extras @returns {Map<string, {map: number, reads: number}>} */
export function coldPairs(extras) {
  /** @type {Map<string, {map: number[], reads: number[]}>} */
  const found = new Map();
  for (const [name, result] of Object.entries(extras)) {
    const [, key, way] = /^cold (\S+ \S+) (map|reads) \d+$/.exec(name) ?? [];
    if (key === undefined || result.meanMs === undefined) continue;
    const pair = found.get(key) ?? { map: [], reads: [] };
    pair[/** @type {'map' | 'reads'} */ (way)].push(result.meanMs);
    found.set(key, pair);
  }
  return new Map(
    [...found].map(([key, { map, reads }]) => [key, { map: median(map), reads: median(reads) }]),
  );
}

/** @param {number} value */
const times = (value) => `${short(value)}×`;

/** @param {number} value */
function short(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
