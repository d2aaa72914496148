// @ts-check
// From samples to rows, and from rows to the tables of docs/benchmarks.md.
import { entries, isRagged, neverMeasured, workloads } from './catalogue.mjs';
import { coldPairs, goalsOf } from './goals.mjs';
import { median } from './statistics.mjs';

/** @typedef {import('./run.mjs').Sample} Sample */
/** @typedef {import('./run.mjs').Store} Store */
/** @typedef {import('./run.mjs').Missing} Missing */
/** @typedef {import('./goals.mjs').Goal} Goal */

/**
 * What a run leaves in .bench/results.
 *
 * @typedef {object} Result
 * @property {string} date
 * @property {Record<string, string>} machine
 * @property {Record<string, number> | null} machineLimits
 * @property {Record<string, any>} options
 * @property {{date: string, options: Record<string, any>}[]} [runs] those that were merged
 * @property {Record<string, any>} workloads what was gathered
 * @property {Record<string, Record<string, string>>} versions
 * @property {Sample[]} samples
 * @property {Store[]} stores
 * @property {Missing[]} missing
 * @property {Record<string, any>} extras
 */

/**
 * The medians of one row's rounds.
 *
 * @typedef {object} Row
 * @property {string} workload
 * @property {'write' | 'gather'} op
 * @property {string} backend
 * @property {string} variant
 * @property {string} mode
 * @property {number} rounds
 * @property {number} disturbed rounds in which others took more than the bound
 * @property {number} mibPerS
 * @property {number} mibPerSMin
 * @property {number} mibPerSMax
 * @property {number} krecPerS
 * @property {number} [p50MibPerS]
 * @property {number} [p50Ms]
 * @property {number} [p95Ms]
 */

/** @param {Result} result @returns {Row[]} */
export function rowsOf({ samples, options }) {
  /** @type {Map<string, Sample[]>} */
  const groups = new Map();
  for (const sample of samples) {
    if (!sample.isUsed) continue;
    const key = keyOf(sample);
    groups.set(key, [...(groups.get(key) ?? []), sample]);
  }
  return [...groups.values()].map((group) => {
    const first = /** @type {Sample} */ (group[0]);
    const { workload, op, backend, variant, mode } = first;
    const of = (/** @type {(sample: Sample) => number} */ pick) => median(group.map(pick));
    const rates = group.map((sample) => sample.mibPerS);
    /** @type {Row} */
    const row = {
      ...{ workload, op, backend, variant, mode },
      rounds: group.length,
      disturbed: group.filter((each) => (each.foreignCores ?? 0) > options.disturbedCores).length,
      mibPerS: median(rates),
      mibPerSMin: Math.min(...rates),
      mibPerSMax: Math.max(...rates),
      krecPerS: of((sample) => sample.krecPerS),
    };
    if (op === 'gather') {
      row.p50MibPerS = of((sample) => sample.p50MibPerS ?? Number.NaN);
      row.p50Ms = of((sample) => sample.p50Ms ?? Number.NaN);
      row.p95Ms = of((sample) => sample.p95Ms ?? Number.NaN);
    }
    return row;
  });
}

/** @param {{workload: string, op: string, backend: string, variant: string, mode: string}} row */
function keyOf({ workload, op, backend, variant, mode }) {
  return [workload, op, backend, variant, mode].join(' ');
}

/** @param {Result} result @returns {Goal[]} */
export function goals(result) {
  const rows = rowsOf(result);
  const byKey = new Map(rows.map((row) => [keyOf(row), row]));
  return goalsOf(
    (workload, op, backend, variant, mode) =>
      byKey.get(keyOf({ workload, op, backend, variant, mode })),
    rows,
    result.extras,
  );
}

/** An option of all runs, from the least to the most. @param {Result} result @param {string} name */
function optionOf({ date, options, runs = [{ date, options }] }, name) {
  const values = runs.map((run) => run.options[name]);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? `${least}` : `${least} to ${most}`;
}

/** @param {Result} result */
function datesOf({ date, runs = [] }) {
  const dates = runs.map((run) => run.date).sort();
  return dates.length < 2 ? `Run of ${date}` : `Runs of ${dates[0]} to ${dates.at(-1)}`;
}

/** @param {Result} result @returns {string} GitHub's Markdown */
export function markdown(result) {
  const { options, machine, machineLimits } = result;
  const rows = rowsOf(result);
  const parts = [
    `${datesOf(result)}: ${optionOf(result, 'rounds')} rounds, ${optionOf(result, 'seconds')} s of timed calls in each row and round${options.isQuick ? ' (quick)' : ''}. MiB/s are of payload bytes; medians over the rounds, of each round's total bytes by total time. \`*\`: a row in which other programs took more than ${options.disturbedCores} of a core in some round, after ${optionOf(result, 'repeats')} repeats.`,
    table(['machine', ''], Object.entries(machine)),
  ];
  if (machineLimits !== null) {
    const { threads, copyMibPerS, copyAllMibPerS, read16Ns, pageFaultNs } = machineLimits;
    parts.push(
      table(
        ['the machine alone', ''],
        [
          ['copy of 256 MiB, 1 thread', `${rate(copyMibPerS)} MiB/s`],
          [`copy of 256 MiB, ${threads} threads`, `${rate(copyAllMibPerS)} MiB/s`],
          ['positional read of 16 bytes', `${read16Ns} ns`],
          ['first touch of a new page', `${pageFaultNs} ns`],
        ],
      ),
    );
  }
  const reached = goals(result);
  if (reached.length > 0) parts.push('### Goals', goalTable(reached));
  for (const [name, title] of Object.entries(workloads)) {
    const own = rows.filter((row) => row.workload === name);
    if (own.length === 0) continue;
    const facts = result.workloads[name] ?? {};
    parts.push(
      `### ${title}`,
      `${count(facts.records)} records, ${(facts.payloadBytes / 2 ** 20).toFixed(1)} MiB; batches of ${facts.batch}.${isRagged(/** @type {any} */ (name)) ? ' `views`: an array of each of the records is made within the call.' : ''}`,
      workloadTable(
        own,
        result.stores.filter((store) => store.workload === name),
      ),
    );
    const limits = own.filter((row) => row.backend === 'limits');
    if (limits.length > 0) parts.push('Limits, from the same run:', limitTable(limits));
  }
  if (Object.keys(result.extras).length > 0) parts.push(...extraTables(result.extras));
  parts.push('### Versions', versionTable(result.versions));
  const missing = [
    ...grouped(result.missing).map(({ workload, what, reason }) => [
      `${what} (${workload})`,
      reason,
    ]),
    ...neverMeasured,
  ];
  parts.push('### Not measured', table(['what', 'why'], missing));
  return parts.join('\n\n');
}

/** @param {readonly Goal[]} list */
export function goalTable(list) {
  return table(
    ['goal', 'against', 'wanted', 'reached', 'median call', '', 'note'],
    list.map((goal) => [
      goal.what,
      goal.against,
      goal.wanted,
      goal.reached,
      goal.atMedianCall,
      goal.verdict,
      goal.note,
    ]),
    ['l', 'l', 'r', 'r', 'r', 'l', 'l'],
  );
}

/** @param {readonly Row[]} rows @param {readonly Store[]} stores */
function workloadTable(rows, stores) {
  const order = entries.map(({ name }) => name);
  const gathers = rows.filter((row) => row.op === 'gather' && row.backend !== 'limits');
  const writes = rows.filter((row) => row.op === 'write');
  const cells = [];
  const backends = [...new Set(rows.map((row) => row.backend))].filter((name) => name !== 'limits');
  for (const backend of backends.sort((a, b) => order.indexOf(a) - order.indexOf(b))) {
    const variants = entries.find(({ name }) => name === backend)?.variants ?? [];
    for (const variant of variants) {
      const is = (/** @type {{backend: string, variant: string}} */ row) =>
        row.backend === backend && row.variant === variant;
      const store = stores.find(is);
      const disk = [
        store === undefined ? '' : `${(store.diskBytes / 2 ** 20).toFixed(1)} MiB`,
        store === undefined ? '' : `${store.ratio.toFixed(2)}`,
      ];
      const swept =
        store?.sweptRecords === undefined ? '' : `swept ${count(store.sweptRecords)} records`;
      for (const row of writes.filter(is)) {
        const name = row.mode === '' ? 'append' : `append, ${row.mode}`;
        cells.push([
          `${backend}-${variant}`,
          name,
          rateOf(row),
          span(row),
          rate(row.krecPerS),
          '',
          ...disk,
          '',
        ]);
      }
      for (const row of gathers.filter(is)) {
        const spread = [rateOf(row), span(row), rate(row.krecPerS), milliseconds(row.p95Ms)];
        cells.push([`${backend}-${variant}`, row.mode, ...spread, ...disk, swept]);
      }
    }
  }
  return table(
    ['backend', 'kind', 'MiB/s', 'min–max', 'krec/s', 'p95', 'disk', 'ratio', 'note'],
    cells,
    ['l', 'l', 'r', 'r', 'r', 'r', 'r', 'r', 'l'],
  );
}

/** @param {readonly Row[]} limits */
function limitTable(limits) {
  const names = {
    copy: 'copy from memory',
    stream: 'copy from memory, streaming stores',
    pread: 'positional reads',
    zstd: 'libzstd 1.5.7, from memory',
    zstd_dict: 'libzstd 1.5.7 with a dictionary, from memory',
  };
  const targets = { kept: 'kept target', fresh: 'fresh target', huge: 'fresh target, huge pages' };
  return table(
    ['limit', 'target', 'threads', 'MiB/s', 'min–max', 'p95'],
    limits.map((row) => {
      const [, gcc, target = '', threads = ''] = /^(gcc-)?(\w+)-(\d+)$/.exec(row.mode) ?? [];
      const name = names[/** @type {keyof typeof names} */ (row.variant)] ?? row.variant;
      return [
        `${name}${gcc === undefined ? '' : ', built by gcc'}`,
        targets[/** @type {keyof typeof targets} */ (target)] ?? target,
        threads,
        rateOf(row),
        span(row),
        milliseconds(row.p95Ms),
      ];
    }),
    ['l', 'l', 'r', 'r', 'r', 'r'],
  );
}

/** @param {Record<string, any>} extras */
function extraTables(extras) {
  const parts = ['### Beside the tables'];
  const one = extras['one record']?.us;
  if (one !== undefined) {
    parts.push(table(['one record of 4 bytes', 'µs per call'], entriesFixed(one, 2), ['l', 'r']));
  }
  const us = { ...extras.sampler?.us, ...extras['sampler python']?.us };
  if (Object.keys(us).length > 0) {
    const sizes = [...new Set(Object.keys(us).map((key) => key.split(' ').at(-1) ?? ''))];
    const names = [...new Set(Object.keys(us).map((key) => key.replace(/ \d+$/, '')))].sort();
    const cells = names.map((name) => [
      name,
      ...sizes.map((size) => fixed(us[`${name} ${size}`], 2)),
    ]);
    parts.push(
      'Index sequences over a million records, µs per batch (cyclic of NumPy and plain JavaScript: a whole shuffle spread over its batches):',
      table(['sampler', ...sizes], cells, ['l', ...sizes.map(() => 'r')]),
    );
  }
  const loops = named(extras, 'event loop ').filter(([, { loaded }]) => loaded !== undefined);
  if (loops.length > 0) {
    parts.push(
      'How late a timer of 1 ms fires while batches of photos (36.75 MiB) are gathered, ms:',
      table(
        ['batches', 'idle p99', 'p50', 'p99', 'max'],
        loops.map(([name, { idle, loaded }]) => [
          name,
          fixed(idle.p99Ms, 2),
          fixed(loaded.p50Ms, 2),
          fixed(loaded.p99Ms, 2),
          fixed(loaded.maxMs, 2),
        ]),
        ['l', 'r', 'r', 'r', 'r'],
      ),
    );
  }
  const memory = named(extras, 'memory ').filter(
    ([, { peakAboveBaseMib }]) => peakAboveBaseMib !== undefined,
  );
  if (memory.length > 0) {
    parts.push(
      'Memory while gathering, MiB above what the process had before opening; pages of mapped files, which the system takes back at will, apart:',
      table(
        ['container and kind', 'batch', 'anonymous, peak', 'mapped files'],
        memory.map(([name, each]) => [
          name,
          fixed(each.requestedMib, 1),
          fixed(each.peakAboveBaseMib, 1),
          fixed(each.filesAboveBaseMib, 1),
        ]),
        ['l', 'r', 'r', 'r'],
      ),
    );
  }
  const integrity = named(extras, 'integrity ').filter(([, { mibPerS }]) => mibPerS !== undefined);
  if (integrity.length > 0) {
    parts.push(
      'Integrity, MiB/s of items: random batches of 256, the same held to `integrity.zr`, and `verify` of the whole container without and with the file:',
      table(
        ['records', 'gather', 'checked', '', 'verify', '', 'with the file', ''],
        integrity.map(([name, { mibPerS, ...ratios }]) => [
          name,
          fixed(mibPerS.gather, 0),
          fixed(mibPerS.checked, 0),
          `${fixed(ratios.checkedToGather, 2)}×`,
          fixed(mibPerS.verify, 0),
          `${fixed(ratios.verifyToGather, 2)}×`,
          fixed(mibPerS.verifyFile, 0),
          `${fixed(ratios.verifyFileToGather, 2)}×`,
        ]),
        ['l', 'r', 'r', 'r', 'r', 'r', 'r', 'r'],
      ),
    );
  }
  const { open, 'small records': small } = extras;
  const lines = [];
  if (open?.firstMs !== undefined) {
    lines.push(
      ['opening 10 million records, the first time', `${fixed(open.firstMs, 2)} ms`],
      ['opening it again', `${fixed(open.medianMs, 3)} ms`],
      [
        'anonymous memory after opening / after a gather',
        `${fixed(open.openedMib, 2)} / ${fixed(open.gatheredMib, 2)} MiB`,
      ],
    );
  }
  if (small?.nsPerRecord !== undefined) {
    lines.push([
      '64-byte records, 10⁴ / 10⁷ in the container',
      `${small.nsPerRecord.map((/** @type {number} */ ns) => fixed(ns, 1)).join(' / ')} ns per record`,
    ]);
  }
  for (const [key, { map, reads }] of coldPairs(extras)) {
    lines.push([
      `cold files, ${key}: map / positional reads`,
      `${fixed(map, 2)} / ${fixed(reads, 2)} ms per batch`,
    ]);
  }
  for (const [name, each] of named(extras, 'busy pool ')) {
    if (each.gatherBusy === undefined) continue;
    const { gatherIdle, gatherBusy, readIdle, readBusy } = each;
    lines.push(
      [
        `pool of one thread, ${name}: gather, pool idle / busy`,
        `${fixed(gatherIdle.p50Ms, 3)} / ${fixed(gatherBusy.p50Ms, 3)} ms (p50)`,
      ],
      [
        `pool of one thread, ${name}: file read, alone / while gathering`,
        `${fixed(readIdle.p95Ms, 3)} / ${fixed(readBusy.p95Ms, 3)} ms (p95)`,
      ],
    );
  }
  if (lines.length > 0) parts.push(table(['', ''], lines));
  const absent = Object.entries(extras).filter(([, each]) => each.missing !== undefined);
  if (absent.length > 0) {
    parts.push(
      table(
        ['missing', 'why'],
        absent.map(([name, { missing }]) => [name, missing]),
      ),
    );
  }
  return parts;
}

/** @param {Record<string, any>} extras @param {string} prefix @returns {[string, any][]} */
function named(extras, prefix) {
  return Object.entries(extras)
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, each]) => [name.slice(prefix.length), each]);
}

/** @param {Record<string, number>} record @param {number} digits */
function entriesFixed(record, digits) {
  return Object.entries(record).map(([key, value]) => [key, fixed(value, digits)]);
}

/** @param {Record<string, Record<string, string>>} versions */
function versionTable(versions) {
  return table(
    ['backend', 'versions'],
    Object.entries(versions).map(([name, each]) => [
      name,
      Object.entries(each)
        .map((pair) => pair.join(' '))
        .join(', '),
    ]),
  );
}

/**
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} cells
 * @param {readonly string[]} [sides] `l` or `r` for each column
 */
export function table(head, cells, sides = head.map(() => 'l')) {
  const line = (/** @type {readonly string[]} */ row) => `| ${row.join(' | ')} |`;
  const rule = `|${sides.map((side) => (side === 'r' ? '--:' : '---')).join('|')}|`;
  return [
    line(head),
    rule,
    ...cells.map((row) => line(row.map((cell) => cell.replaceAll('|', '\\|')))),
  ].join('\n');
}

/** @param {Row} row */
const rateOf = (row) => `${rate(row.mibPerS)}${row.disturbed > 0 ? ' \\*' : ''}`;

/** @param {Row} row */
const span = (row) => (row.rounds === 1 ? '' : `${rate(row.mibPerSMin)}–${rate(row.mibPerSMax)}`);

/** @param {number | undefined} value @param {number} digits */
const fixed = (value, digits) => (value === undefined ? '–' : value.toFixed(digits));

/** @param {number | undefined} value */
const count = (value) => (value ?? 0).toLocaleString('en');

/** @param {number | undefined} value */
function rate(value) {
  if (value === undefined || Number.isNaN(value)) return '–';
  return value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : count(Math.round(value));
}

/** @param {number | undefined} ms */
function milliseconds(ms) {
  if (ms === undefined) return '';
  return `${ms < 1 ? ms.toFixed(3) : ms.toFixed(2)} ms`;
}

/** Plain text for a terminal: the goals, one line each. @param {readonly Goal[]} list */
export function goalLines(list) {
  const cells = list.map((goal) => [
    goal.verdict,
    goal.reached,
    goal.wanted,
    goal.what,
    goal.against === '' ? '' : `against ${goal.against}`,
    goal.note === '' ? '' : `(${goal.note})`,
  ]);
  const widths = [0, 1, 2].map((column) =>
    Math.max(0, ...cells.map((row) => (row[column] ?? '').length)),
  );
  return cells.map((row) =>
    row
      .map((cell, column) => (column < 3 ? cell.padEnd(widths[column] ?? 0) : cell))
      .join('  ')
      .trimEnd(),
  );
}

/** What is missing in one workload for one reason, as one line. @param {readonly Missing[]} missing @returns {Missing[]} */
export function grouped(missing) {
  /** @type {Map<string, Missing>} */
  const groups = new Map();
  for (const each of missing) {
    const key = `${each.workload} ${each.reason}`;
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { ...each });
    else if (!known.what.split(', ').includes(each.what)) known.what += `, ${each.what}`;
  }
  return [...groups.values()];
}
