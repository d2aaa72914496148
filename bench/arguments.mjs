// @ts-check
// What both benches take on their command lines alike, and how a run of either ends.
import fs from 'node:fs';
import path from 'node:path';
import { Failure, shown } from '../scripts/script.mjs';
import { writeDocs } from './docs.mjs';
import { dataFolder, inBench } from './paths.mjs';
import { goalLines, grouped } from './report.mjs';
import { say } from './run.mjs';

/** Arguments one after the other; what is wrong with one is said with the usage. */
export class Arguments {
  #rest;
  #usage;

  /** @param {readonly string[]} args @param {string} usage */
  constructor(args, usage) {
    this.#rest = [...args];
    this.#usage = usage;
  }

  /** @returns {string | undefined} */
  next() {
    return this.#rest.shift();
  }

  /** The value of the option before it, if there is one. @returns {string | undefined} */
  optional() {
    const next = this.#rest[0];
    return next === undefined || next.startsWith('--') ? undefined : this.#rest.shift();
  }

  /** The value of the option `name`. @param {string} name */
  value(name) {
    const next = this.optional();
    if (next === undefined) throw new Failure(`${name} wants a value`, this.#usage);
    return next;
  }

  /** @param {string} name */
  number(name) {
    const text = this.value(name);
    if (!/^\d+(\.\d+)?$/.test(text)) throw new Failure(`${name} ${text} is no number`, this.#usage);
    return Number(text);
  }

  /** Comma-separated names, each of `known`. @param {string} name @param {readonly string[]} known @param {string} what */
  names(name, known, what) {
    const names = this.value(name).split(',');
    const strange = names.filter((each) => !known.includes(each));
    if (strange.length > 0) throw new Failure(`there is no ${what} ${strange}`, known.join(', '));
    return names;
  }
}

/** What both benches can be told. Undefined: the bench decides. */
export const commonDefaults = {
  isQuick: false,
  rounds: /** @type {number | undefined} */ (undefined),
  seconds: /** @type {number | undefined} */ (undefined),
  repeats: /** @type {number | undefined} */ (undefined),
  disturbedCores: 0.15,
  data: dataFolder,
  docs: false,
};

/**
 * Takes `arg` if it is one of the options that both benches have.
 *
 * @param {string} arg
 * @param {Arguments} args
 * @param {typeof commonDefaults} options
 */
export function takeCommon(arg, args, options) {
  if (arg === '--quick') options.isQuick = true;
  else if (arg === '--docs') options.docs = true;
  else if (arg === '--rounds') options.rounds = Math.max(1, Math.floor(args.number(arg)));
  else if (arg === '--seconds') options.seconds = args.number(arg);
  else if (arg === '--repeats') options.repeats = Math.floor(args.number(arg));
  else if (arg === '--disturbed') options.disturbedCores = args.number(arg);
  else if (arg === '--data') options.data = path.resolve(args.value(arg));
  else return false;
  return true;
}

/** Where the results of a run that begins now go: `prefix` and the date. @param {string} prefix */
export function resultFile(prefix) {
  const folder = inBench('results');
  fs.mkdirSync(folder, { recursive: true });
  const date = new Date().toISOString();
  const file = path.join(folder, `${prefix}${date.replaceAll(/[:.]/g, '-')}.json`);
  return {
    ...{ date, folder },
    name: shown(file),
    /** @param {object} result */
    save: (result) => fs.writeFileSync(file, `${JSON.stringify(result, null, 1)}\n`),
  };
}

/**
 * Says what a run came to, and writes its tables into docs/benchmarks.md if that is wanted.
 *
 * @param {readonly import('./report.mjs').Goal[]} reached
 * @param {Parameters<typeof grouped>[0]} missing
 * @param {{name: Parameters<typeof writeDocs>[0], markdown: () => string} | undefined} docs
 */
export function conclude(reached, missing, docs) {
  for (const line of goalLines(reached)) say(line);
  for (const { workload, what, reason } of grouped(missing)) {
    say(`not measured: ${what}${workload ? ` (${workload})` : ''}: ${reason}`);
  }
  const of = (/** @type {string} */ verdict) =>
    reached.filter((goal) => goal.verdict === verdict).length;
  say(`goals: ${of('yes')} reached, ${of('NO')} not reached, ${of('not measured')} not measured`);
  if (docs !== undefined) writeDocs(docs.name, docs.markdown());
}
