// @ts-check
// Builds for publish.test.ts, in a process of their own:
//
//     node builder.mjs COMMAND ARGUMENT…
import { readdirSync, writeSync } from 'node:fs';
import path from 'node:path';
import { batchOf, holds, loaderx } from './package.mjs';

const { Dense } = loaderx;
const open = (/** @type {string} */ at) => Dense.open(at, { dtype: 'uint32' });
const items = 12;

/** @param {unknown} line */
const say = (line) => writeSync(1, `${typeof line === 'string' ? line : JSON.stringify(line)}\n`);

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** @param {string} at @param {number} dataShards */
const create = (at, dataShards = 3) =>
  Dense.create(at, { codec: 'raw', dtype: 'uint32', itemShape: [items], dataShards });

/** An error as its code, its system code and its file. @param {unknown} error */
function facts(error) {
  const { code, osCode, file, message } = /** @type {Record<string, unknown>} */ (error);
  return { code, osCode, file, message };
}

/** @param {() => unknown} act */
async function codeOf(act) {
  try {
    await act();
    return 'ok';
  } catch (error) {
    return facts(error).code ?? String(error);
  }
}

/** @type {Record<string, (...args: string[]) => unknown>} */
const commands = {
  /** Small builds L-0, L-1, … in each lane L, until somebody kills the process. */
  async loop(folder, laneCount) {
    await codeOf(() => loaderx.open(folder)); // Loads the addon, which takes longer than a build.
    say('ready');
    /** @param {number} lane */
    const build = async (lane) => {
      for (let index = 0; ; index += 1) {
        const writer = create(path.join(folder, `${lane}-${index}`));
        await writer.append(batchOf(0, 5, items));
        writer.appendSync(batchOf(5, 5, items));
        await writer.append(batchOf(10, 10, items));
        if ((index + lane) % 2 === 0) await writer.close();
        else writer.closeSync();
      }
    };
    await Promise.all(Array.from({ length: Number(laneCount) }, (_, lane) => build(lane)));
  },

  /** A build that ends itself. @param {string} at @param {string} when */
  async suicide(at, when) {
    const end = () => process.kill(process.pid, 'SIGKILL');
    const writer = create(at);
    for (let append = 0; append < 4; append += 1) {
      await writer.append(batchOf(append * 25, 25, items));
      if (when === `append ${append}`) end();
    }
    if (when === 'inside append') {
      void writer.append(batchOf(100, 20_000, items));
      end();
    }
    if (when === 'inside close') {
      void writer.close();
      end();
    }
    if (when === 'inside durable close') {
      void writer.close({ durable: true });
      setImmediate(end);
      return;
    }
    end();
  },

  /** @param {string} at */
  async slow(at) {
    const writer = create(at);
    say('begun');
    for (let append = 0; append < 15; append += 1) {
      await writer.append(batchOf(append * 10, 10, items));
      await sleep(10);
    }
    await writer.close();
    say('closed');
  },

  /** Begins a build and holds it until it is killed. @param {string} at */
  hold(at) {
    const writer = create(at);
    writer.appendSync(batchOf(0, 10, items));
    say('holding');
    setInterval(() => writer.length, 1000);
  },

  /** Takes part in rounds of two processes that create one path; told on stdin. */
  async race() {
    await codeOf(() => loaderx.open('nowhere'));
    say('ready');
    for await (const line of lines()) {
      /** @type {{at: string, first: number, waitUs: number, buildUs: number}} */
      const { at, first, waitUs, buildUs } = JSON.parse(line);
      spin(waitUs);
      let stage = 'create';
      try {
        const writer = create(at, 2);
        stage = 'append';
        writer.appendSync(batchOf(first, 3, items));
        spin(buildUs);
        stage = 'close';
        if (buildUs % 2 === 0) writer.closeSync();
        else await writer.close();
        say({ won: true });
      } catch (error) {
        say({ won: false, stage, ...facts(error) });
      }
    }
  },

  /** A disk or a file size limit that is too small. @param {string} at */
  async full(at, how = 'async') {
    // As a host that ends on every signal that would end it.
    process.on('SIGXFSZ', () => process.exit(9));
    const bytes = 120_000;
    const batch = batchOf(0, bytes / (items * 4), items);
    /** @type {unknown} */
    let failure;
    /** @type {unknown[]} */
    const after = [];
    const writer = create(at, 1);
    try {
      for (let append = 0; append < 3; append += 1) {
        if (how === 'sync') writer.appendSync(batch);
        else await writer.append(batch);
      }
    } catch (error) {
      failure = facts(error);
      for (const act of [
        () => writer.append(batch),
        () => writer.appendSync(batch),
        () => writer.close(),
        () => writer.closeSync(),
      ]) {
        after.push(await codeOf(act));
      }
    } finally {
      await writer[Symbol.asyncDispose]();
    }
    const left = readdirSync(path.dirname(at));
    const opened = await codeOf(() => loaderx.open(at));
    const smaller = create(at, 1);
    await smaller.append(batchOf(0, 100, items));
    await smaller.close();
    const reader = open(at);
    const again = holds(reader.gatherSync([0, 99]).data, [0, 99], items);
    say({ failure, after, left, opened, again });
  },

  /** @param {string} at @param {string} count */
  async readers(at, count) {
    const readers = Array.from({ length: Number(count) }, () => open(at));
    let right = 0;
    for (const reader of readers) {
      const ids = [0, reader.length - 1];
      if (holds((await reader.gather(ids)).data, ids, items)) right += 1;
    }
    say({ right });
    for await (const _ of lines()) break;
    for (const reader of readers) await reader.close();
    process.exit(0);
  },

  /** Descriptors run out: 300 of them, and containers of 255 shards. @param {string} at */
  async descriptors(at) {
    const first = open(at);
    const before = countDescriptors();
    const codes = new Set();
    for (let attempt = 0; attempt < 20; attempt += 1) {
      codes.add(await codeOf(() => open(at)));
      codes.add(await codeOf(() => create(`${at}-new`, 255)));
    }
    const leaked = countDescriptors() - before;
    const left = readdirSync(path.dirname(at));
    const works = holds(first.gatherSync([3]).data, [3], items);
    first.closeSync();
    const second = open(at);
    const worksAgain = holds(second.gatherSync([3]).data, [3], items);
    second.closeSync();
    const writer = create(`${at}-new`, 255);
    writer.abort();
    say({ codes: [...codes], leaked, left, works, worksAgain });
  },

  /** @param {string} at */
  async durable(at) {
    const writer = create(at, 2);
    await writer.append(batchOf(0, 10, items));
    await writer.close({ durable: true });
  },
};

/** Open descriptors of this process. */
function countDescriptors() {
  return readdirSync('/proc/self/fd').length;
}

/** @param {number} us */
function spin(us) {
  const end = performance.now() + us / 1000;
  while (performance.now() < end);
}

/** Lines of stdin. */
async function* lines() {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      yield text.slice(0, end);
      text = text.slice(end + 1);
    }
  }
}

const [command = '', ...args] = process.argv.slice(2);
const run = commands[command];
if (run === undefined) throw new Error(`there is no command ${command}`);
await run(...args);
