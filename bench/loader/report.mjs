// @ts-check
// From samples to rows, goals, and the tables of docs/benchmarks.md.
import { goalTable, grouped, table } from '../report.mjs';
import { median } from '../statistics.mjs';
import { loaders } from './catalogue.mjs';

/** @typedef {import('./run.mjs').Sample} Sample */
/** @typedef {import('./run.mjs').RowMemory} RowMemory */
/** @typedef {import('../goals.mjs').Goal} Goal */

/**
 * What a run leaves in .bench/results.
 *
 * @typedef {object} Result
 * @property {string} date
 * @property {Record<string, string>} machine
 * @property {Record<string, number> | null} machineLimits
 * @property {Record<string, any>} options
 * @property {{records: number, payloadBytes: number, batch: number, batchMib: number}} facts
 * @property {Record<string, Record<string, string>>} versions
 * @property {Sample[]} samples
 * @property {{workload: string, what: string, reason: string}[]} missing
 */

/**
 * The medians of one row's rounds; peaks are the largest of any round.
 *
 * @typedef {object} Row
 * @property {Sample['part']} part
 * @property {string} backend
 * @property {string} variant
 * @property {string} mode
 * @property {number} rounds
 * @property {number} disturbed rounds in which others took more than the bound
 * @property {number} batchesPerS
 * @property {number} batchesPerSMin
 * @property {number} batchesPerSMax
 * @property {number} p95Ms
 * @property {RowMemory | undefined} memory
 * @property {number} delayP99Ms the largest
 * @property {number} delayMaxMs
 * @property {number} statsOffShare the most that the stages' sum was off the clock
 * @property {number} orderCost share of the batches that step order costs
 * @property {number} completionBatchesPerS
 */

/** Wanted, and how the issue words it. */
const wanted = {
  loaderx: { raw: 1.2, zstd: 1.15 },
  torch: 2.5,
  orderCostMax: 0.03,
  poolShareMin: 0.85,
  delayP99MsMax: 20,
  statsOffShareMax: 0.02,
};

/** @param {Result} result @returns {Row[]} */
export function rowsOf({ samples, options }) {
  /** @type {Map<string, Sample[]>} */
  const groups = new Map();
  for (const sample of samples) {
    if (!sample.isUsed) continue;
    const { part, backend, variant, mode } = sample;
    const key = [part, backend, variant, mode].join(' ');
    groups.set(key, [...(groups.get(key) ?? []), sample]);
  }
  return [...groups.values()].map((group) => {
    const { part, backend, variant, mode } = /** @type {Sample} */ (group[0]);
    const of = (/** @type {(sample: Sample) => number | undefined} */ pick) =>
      group.map((sample) => pick(sample) ?? Number.NaN);
    const rates = of((sample) => sample.batchesPerS);
    return {
      ...{ part, backend, variant, mode },
      rounds: group.length,
      disturbed: group.filter((each) => (each.foreignCores ?? 0) > options.disturbedCores).length,
      batchesPerS: median(rates),
      batchesPerSMin: Math.min(...rates),
      batchesPerSMax: Math.max(...rates),
      p95Ms: median(of((sample) => sample.p95Ms)),
      memory: memoryOfAll(group.flatMap(({ memory }) => memory ?? [])),
      delayP99Ms: Math.max(...of((sample) => sample.delays?.p99Ms)),
      delayMaxMs: Math.max(...of((sample) => sample.delays?.maxMs)),
      statsOffShare: Math.max(...of(statsOffShare)),
      orderCost: median(
        of(({ batchesPerS, completionBatchesPerS }) =>
          completionBatchesPerS === undefined ? undefined : 1 - batchesPerS / completionBatchesPerS,
        ),
      ),
      completionBatchesPerS: median(of((sample) => sample.completionBatchesPerS)),
    };
  });
}

/** The sum of the stages beside the clock on the wall. @param {Sample} sample */
function statsOffShare({ stats }) {
  const { sumMs, wallMs } = stats ?? {};
  if (sumMs === undefined || wallMs === undefined) return undefined;
  return Math.abs(sumMs - wallMs) / wallMs;
}

/** @param {readonly RowMemory[]} list @returns {RowMemory | undefined} */
function memoryOfAll(list) {
  if (list.length === 0) return undefined;
  const all = (/** @type {keyof RowMemory} */ field) => list.map((each) => each[field]);
  return {
    bareMib: median(all('bareMib')),
    baseMib: median(all('baseMib')),
    steadyPss: median(all('steadyPss')),
    peakPss: Math.max(...all('peakPss')),
    peakRss: Math.max(...all('peakRss')),
    peakAnonymous: Math.max(...all('peakAnonymous')),
    peakFiles: Math.max(...all('peakFiles')),
  };
}

/** @param {Result} result @returns {Goal[]} */
export function goals(result) {
  const rows = rowsOf(result);
  const parts = new Set(rows.map(({ part }) => part));
  return [
    ...(parts.has('loader') ? loaderGoals(rows) : []),
    ...(parts.has('order') ? orderGoals(rows) : []),
    ...(parts.has('transform') ? transformGoals(rows) : []),
    ...(parts.has('loader') ? statsGoals(rows) : []),
  ];
}

/** @param {readonly Row[]} rows @param {Sample['part']} part @param {string} backend @param {string} variant @param {string} mode */
function find(rows, part, backend, variant, mode) {
  return rows.find(
    (row) =>
      row.part === part && row.backend === backend && row.variant === variant && row.mode === mode,
  );
}

/** @param {readonly Row[]} rows @returns {Goal[]} */
function loaderGoals(rows) {
  /** @type {Goal[]} */
  const list = [];
  for (const codec of /** @type {const} */ (['raw', 'zstd'])) {
    const [disposed, dropped] = ['step-disposed', 'step-dropped'].map((mode) =>
      find(rows, 'loader', 'ours', codec, mode),
    );
    const loaderx = find(rows, 'loader', 'loaderx-2.4.6', codec, 'threads-4');
    const rate = (/** @type {Row | undefined} */ row) => row?.batchesPerS;
    const droppedNote = (/** @type {Row | undefined} */ other) =>
      dropped === undefined || other === undefined
        ? ''
        : `dropped ${times(dropped.batchesPerS / other.batchesPerS)}`;
    list.push(
      goal(`${codec}, step order, disposed`, 'loaderx-2.4.6', '≥', wanted.loaderx[codec], '×', {
        value: ratio(rate(disposed), rate(loaderx)),
        rows: [disposed, loaderx],
        note: droppedNote(loaderx),
      }),
    );
    if (codec === 'raw') {
      for (const context of ['fork', 'spawn']) {
        const best = rows
          .filter((row) => row.backend === 'torch' && row.mode.startsWith(context))
          .sort((one, other) => other.batchesPerS - one.batchesPerS)[0];
        const against = `torch, best of ${context}${best === undefined ? '' : ` (${best.mode})`}`;
        list.push(
          goal('raw, step order, disposed', against, '≥', wanted.torch, '×', {
            value: ratio(rate(disposed), rate(best)),
            rows: [disposed, best],
            note: droppedNote(best),
          }),
        );
      }
    }
    for (const [kind, row] of /** @type {const} */ ([
      ['disposed', disposed],
      ['dropped', dropped],
    ])) {
      const [own, other] = [row, loaderx].map(aboveBare);
      const what = `${codec}, step order, ${kind}: peak anonymous memory above the bare runtime`;
      const limit = other === undefined ? Number.NaN : Math.round(other);
      list.push(goal(what, 'loaderx-2.4.6', '≤', limit, ' MiB', { value: own, rows: [] }));
    }
  }
  return list;
}

/** @param {Row | undefined} row */
function aboveBare(row) {
  return row?.memory === undefined ? undefined : row.memory.peakAnonymous - row.memory.bareMib;
}

/** @param {readonly Row[]} rows @returns {Goal[]} */
function orderGoals(rows) {
  return rows
    .filter(({ part }) => part === 'order')
    .map((row) =>
      goal(
        `${row.variant}, what step order costs`,
        'completion',
        '≤',
        wanted.orderCostMax * 100,
        ' %',
        {
          value: row.orderCost * 100,
          rows: [row],
        },
      ),
    );
}

/** @param {readonly Row[]} rows @returns {Goal[]} */
function transformGoals(rows) {
  const bare = find(rows, 'transform', 'bare threads', 'raw', 'threads-2');
  const pools = rows.filter(
    (row) => row.part === 'transform' && row.backend === 'ours' && row.mode === 'pool-2',
  );
  const others = find(rows, 'transform', 'ours', 'raw', 'pool-4');
  const raw = pools.find(({ variant }) => variant === 'raw');
  const moved = find(rows, 'transform', 'bare threads', 'raw', 'threads-2-moved');
  const notes = [
    ['pool of 4', ratio(others?.batchesPerS, bare?.batchesPerS)],
    ['of bare threads that move memory', ratio(raw?.batchesPerS, moved?.batchesPerS)],
  ].flatMap(([what, share]) => (typeof share === 'number' ? [`${what} ${times(share)}`] : []));
  return [
    goal('pool of 2, raw', '2 bare threads', '≥', wanted.poolShareMin, '×', {
      value: ratio(raw?.batchesPerS, bare?.batchesPerS),
      rows: [raw, bare],
      note: notes.join(', '),
    }),
    ...pools.map((row) =>
      goal(
        `pool of 2, ${row.variant}, event-loop delay p99`,
        '',
        '<',
        wanted.delayP99MsMax,
        ' ms',
        {
          value: row.delayP99Ms,
          rows: [row],
        },
      ),
    ),
  ];
}

/** @param {readonly Row[]} rows @returns {Goal[]} */
function statsGoals(rows) {
  const own = rows.filter((row) => row.backend === 'ours' && !Number.isNaN(row.statsOffShare));
  const most = Math.max(...own.map((row) => row.statsOffShare));
  return [
    goal(
      'stats(): stages against the clock',
      'wall time',
      '≤',
      wanted.statsOffShareMax * 100,
      ' %',
      {
        value: own.length === 0 ? undefined : most * 100,
        rows: [],
        note: `the most of ${own.length} rows`,
      },
    ),
  ];
}

/**
 * @param {string} what
 * @param {string} against
 * @param {'≥' | '≤' | '<'} sign
 * @param {number} limit
 * @param {string} unit
 * @param {{value: number | undefined, rows: readonly (Row | undefined)[], note?: string}} found
 * @returns {Goal}
 */
function goal(what, against, sign, limit, unit, { value, rows, note = '' }) {
  const head = { what, against, wanted: `${sign} ${limit}${unit}`, atMedianCall: '' };
  if (value === undefined || Number.isNaN(value) || Number.isNaN(limit)) {
    const isKnown = !Number.isNaN(limit);
    return {
      ...{ ...head, wanted: isKnown ? head.wanted : sign, reached: '–' },
      ...{ verdict: 'not measured', note },
    };
  }
  const isReached = sign === '≥' ? value >= limit : sign === '≤' ? value <= limit : value < limit;
  const isDisturbed = rows.some((row) => (row?.disturbed ?? 0) > 0);
  return {
    ...head,
    reached: `${short(value)}${unit}`,
    verdict: isReached ? 'yes' : 'NO',
    note: [note, isDisturbed ? 'disturbed' : ''].filter(Boolean).join(', '),
  };
}

/** @param {number | undefined} one @param {number | undefined} other */
function ratio(one, other) {
  return one === undefined || other === undefined ? undefined : one / other;
}

/** @param {Result} result @returns {string} GitHub's Markdown */
export function markdown(result) {
  const { options, facts } = result;
  const rows = rowsOf(result);
  const { batch, batchMib } = facts;
  const parts = [
    `Run of ${result.date}: ${options.rounds} rounds, ${options.seconds} s of timed batches in each row and round${options.isQuick ? ' (quick)' : ''}; medians over the rounds, peaks of all. ${facts.records.toLocaleString('en')} photos, batches of ${batch} (${batchMib.toFixed(2)} MiB). \`*\`: other programs took more than ${options.disturbedCores} of a core in some round, after ${options.repeats} repeats.`,
    table(['machine', ''], Object.entries(result.machine)),
  ];
  const reached = goals(result);
  if (reached.length > 0) parts.push('## Goals of loaders', goalTable(reached));
  const limits = rows.filter(({ part }) => part === 'limits');
  for (const codec of ['raw', 'zstd']) {
    const own = rows.filter((row) => row.part === 'loader' && row.variant === codec);
    if (own.length === 0) continue;
    parts.push(`## Loaders, ${codec}`, loaderTable(own, limitOf(limits, codec)));
  }
  if (limits.length > 0) {
    parts.push(
      'Limits, from the same run: copies of the same records from memory into a kept target (`stream`: by stores around the cache), and libzstd decoding the frames of our container from memory into it, by one thread and by one per processor.',
      table(
        ['limit', 'batches/s', 'MiB/s'],
        limits.map((row) => [
          `${row.variant} ${row.mode}`,
          rateOf(row),
          (row.batchesPerS * batchMib).toFixed(0),
        ]),
        ['l', 'r', 'r'],
      ),
    );
  }
  const transforms = rows.filter(({ part }) => part === 'transform');
  if (transforms.length > 0) {
    parts.push(
      '## A transform that costs processor time',
      'Every pixel corrected in linear light, in place: the same bytes from all. `bare threads` run it on batches that lie in their memory and do nothing else, `-moved` after they have moved memory to another thread once, as a pool must; `pool-N` is the transform as a module, `function` on the main thread. `numpy` works record by record; `numba` compiles the loop, with and without holding the GIL. The delay is what a timer of 1 ms is late by on the main thread.',
      transformTable(transforms),
    );
  }
  const orders = rows.filter(({ part }) => part === 'order');
  if (orders.length > 0) {
    parts.push(
      '## What step order costs',
      'Loaders of both orders by turns in one process.',
      table(
        ['codec', 'step', 'completion', 'cost'],
        orders.map((row) => [
          row.variant,
          rateOf(row),
          short(row.completionBatchesPerS),
          `${(row.orderCost * 100).toFixed(1)} %`,
        ]),
        ['l', 'r', 'r', 'r'],
      ),
    );
  }
  const stats = result.samples.filter(({ isUsed, stats: each }) => isUsed && each !== undefined);
  if (stats.length > 0) parts.push('## stats()', ...statsTable(stats));
  parts.push(
    '## Versions of loaders',
    table(
      ['loader', 'versions'],
      Object.entries(result.versions).map(([name, each]) => [
        name,
        Object.entries(each)
          .map((pair) => pair.join(' '))
          .join(', '),
      ]),
    ),
  );
  if (result.missing.length > 0) {
    parts.push(
      '## Loaders not measured',
      table(
        ['what', 'why'],
        grouped(result.missing).map(({ what, reason }) => [what, reason]),
      ),
    );
  }
  return parts.join('\n\n');
}

/** The fastest way to the same bytes that the machine has. @param {readonly Row[]} limits @param {string} codec */
function limitOf(limits, codec) {
  const rates = limits
    .filter(({ variant }) => (variant === 'zstd') === (codec === 'zstd'))
    .map(({ batchesPerS }) => batchesPerS);
  return rates.length === 0 ? undefined : Math.max(...rates);
}

/** @param {readonly Row[]} rows @param {number | undefined} limit */
function loaderTable(rows, limit) {
  const cells = inOrder(rows).map((row) => {
    const { memory } = row;
    const whole = (/** @type {number | undefined} */ value) => value?.toFixed(0) ?? '–';
    return [
      row.backend,
      `${row.mode}`,
      storageOf(row),
      rateOf(row),
      row.rounds === 1 ? '' : `${short(row.batchesPerSMin)}–${short(row.batchesPerSMax)}`,
      limit === undefined ? '–' : `${((row.batchesPerS / limit) * 100).toFixed(0)} %`,
      `${short(row.p95Ms)} ms`,
      whole(memory?.steadyPss),
      whole(memory?.peakPss),
      whole(memory?.peakRss),
      whole(aboveBare(row)),
      whole(memory === undefined ? undefined : memory.peakAnonymous - memory.baseMib),
      whole(memory?.peakFiles),
    ];
  });
  return [
    'Memory in MiB, of all processes of a loader. Anonymous: of no file, shared memory included, above what the runtime had bare, and above what it had with its packages loaded. Mapped: pages of mapped files, which the system takes back at will.',
    table(
      [
        ...['loader', 'mode', 'storage', 'batches/s', 'min–max', 'of the limit', 'p95'],
        ...['steady PSS', 'peak PSS', 'peak RSS', 'anonymous above bare', 'above loaded', 'mapped'],
      ],
      cells,
      ['l', 'l', 'l', ...Array.from({ length: 10 }, () => 'r')],
    ),
  ].join('\n\n');
}

/** @param {readonly Row[]} rows */
function transformTable(rows) {
  const bare = find(rows, 'transform', 'bare threads', 'raw', 'threads-2');
  return table(
    [
      'loader',
      'mode',
      'codec',
      'batches/s',
      'of 2 bare threads',
      'p95',
      'peak PSS',
      'delay p99',
      'delay max',
    ],
    inOrder(rows).map((row) => {
      const share = ratio(row.batchesPerS, bare?.batchesPerS);
      const ms = (/** @type {number} */ value) => (Number.isNaN(value) ? '' : `${short(value)} ms`);
      return [
        row.backend,
        row.mode,
        row.backend === 'bare threads' ? '' : row.variant,
        rateOf(row),
        share === undefined ? '–' : `${(share * 100).toFixed(0)} %`,
        ms(row.p95Ms),
        row.memory === undefined ? '' : `${row.memory.peakPss.toFixed(0)} MiB`,
        ms(row.delayP99Ms),
        ms(row.delayMaxMs),
      ];
    }),
    ['l', 'l', 'l', 'r', 'r', 'r', 'r', 'r', 'r'],
  );
}

/** The last round of each row. @param {readonly Sample[]} samples */
function statsTable(samples) {
  const last = new Map(
    samples.map((sample) => [`${sample.part} ${sample.variant} ${sample.mode}`, sample]),
  );
  const share = (/** @type {number | undefined} */ part, /** @type {number | undefined} */ whole) =>
    `${(((part ?? Number.NaN) / (whole ?? Number.NaN)) * 100).toFixed(1)} %`;
  return [
    'What each row of ours says of itself, in shares of the wall time that the bench measured; their sum must be within 2 % of it.',
    table(
      ['codec', 'mode', 'draw', 'gather', 'transform', 'consumer', 'data', 'sum'],
      [...last.values()].map(({ variant, mode, stats = {} }) => [
        ...[variant, mode],
        ...['drawMs', 'gatherMs', 'transformMs', 'consumerMs', 'dataMs', 'sumMs'].map((name) =>
          share(stats[name], stats.wallMs),
        ),
      ]),
      ['l', 'l', 'r', 'r', 'r', 'r', 'r', 'r'],
    ),
  ];
}

/** As the catalogue has them: rounds begin at different rows. @param {readonly Row[]} rows */
function inOrder(rows) {
  const at = (/** @type {Row} */ { part, backend, variant, mode }) => {
    const number = loaders.findIndex(
      (each) => each.part === part && each.name === backend && each.modes.includes(mode),
    );
    const loader = loaders[number];
    return (
      number * 1000 +
      (loader?.variants.indexOf(variant) ?? 0) * 100 +
      (loader?.modes.indexOf(mode) ?? 0)
    );
  };
  return [...rows].sort((one, other) => at(one) - at(other));
}

/** @param {Row} row */
function storageOf({ backend, variant }) {
  if (backend === 'torch') return 'npy, mapped';
  return backend === 'grain' ? `ArrayRecord ${variant}` : `zrecord ${variant}`;
}

/** @param {Row} row */
const rateOf = (row) => `${short(row.batchesPerS)}${row.disturbed > 0 ? ' \\*' : ''}`;

/** @param {number} value */
const times = (value) => `${short(value)}×`;

/** @param {number} value */
function short(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
