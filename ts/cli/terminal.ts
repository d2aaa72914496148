/**
 * Where a command writes: its answer to stdout, progress and complaints to stderr. Colours and progress
 * are for terminals alone, progress for what takes longer than a second.
 */

import type { Colours } from '../inspect/picture.js';
import type { LongOptions, Progress } from '../inspect/progress.js';
import { bytesText, plainJson, secondsText } from './text.js';

/** A stream to write to, as `process.stdout` is one. */
export interface Output {
  write(bytes: string | Uint8Array): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  getColorDepth?(): number;
  /** Whether nobody reads it any more. */
  readonly isClosed?: boolean | undefined;
  /** When all that was written has left; of streams that take more than they have sent. */
  settled?(): Promise<void>;
}

/** What a program is run with, as `process` has it. */
export interface Surroundings {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  on?(event: 'SIGINT', listener: () => void): unknown;
  off?(event: 'SIGINT', listener: () => void): unknown;
}

export type ColourWish = 'auto' | 'always' | 'never';

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow';

const codes: Readonly<Record<Style, readonly [on: number, off: number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
};

const quietMs = 1000;
const redrawMs = 200;
const columnsDefault = 80;

export class Terminal {
  /** Whether the answer is to be JSON. */
  readonly json: boolean;
  readonly colours: Colours;
  readonly #around: Surroundings;

  constructor(around: Surroundings, json: boolean, wish: ColourWish) {
    this.#around = around;
    this.json = json;
    this.colours = coloursOf(around, wish);
  }

  /** The variables of the environment. */
  get env(): Surroundings['env'] {
    return this.#around.env;
  }

  /** Letters of a line. */
  get columns(): number {
    // Some terminals that do not know say 0.
    return this.#around.stdout.columns || columnsDefault;
  }

  /** A line of the answer. */
  line(text = ''): void {
    this.#around.stdout.write(`${text}\n`);
  }

  /** The whole answer, where it is to be JSON. */
  answer(value: unknown): void {
    this.line(plainJson(JSON.stringify(value, undefined, 2)));
  }

  /**
   * Waits until what was written has left, so that a long answer is not piled up. Whether anybody reads on:
   * who only prints may end where nobody does.
   */
  async isRead(): Promise<boolean> {
    const { stdout } = this.#around;
    await stdout.settled?.();
    return stdout.isClosed !== true;
  }

  /** Whether a person looks at the answer. */
  get isTTY(): boolean {
    return this.#around.stdout.isTTY === true;
  }

  /** Bytes of an answer that is no text. They may change when it resolves; whether anybody reads on. */
  async bytes(bytes: Uint8Array): Promise<boolean> {
    this.#around.stdout.write(bytes);
    return this.isRead();
  }

  /** A line that is no part of the answer. */
  note(text: string): void {
    this.#around.stderr.write(`${text}\n`);
  }

  style(style: Style, text: string): string {
    if (this.colours === 'none') return text;
    const [on, off] = codes[style];
    return `\u001b[${on}m${text}\u001b[${off}m`;
  }

  /**
   * Runs something that may take long, and shows how far it has come. Ctrl-C ends it in good order.
   *
   * @throws Interrupted after Ctrl-C
   */
  async long<T>(label: string, run: (options: LongOptions) => Promise<T>): Promise<T> {
    const stop = new AbortController();
    const interrupt = (): void => stop.abort();
    this.#around.on?.('SIGINT', interrupt);
    const meter = new Meter(this.#around.stderr, label);
    try {
      return await run({
        signal: stop.signal,
        onProgress: (progress) => meter.tell(progress),
      });
    } catch (error) {
      if (stop.signal.aborted) throw new Interrupted();
      throw error;
    } finally {
      meter.end();
      this.#around.off?.('SIGINT', interrupt);
    }
  }

  /** Waits for something that cannot tell how far it is. Ctrl-C ends the program, as ever. */
  async brief<T>(label: string, work: Promise<T>): Promise<T> {
    const meter = new Meter(this.#around.stderr, label);
    try {
      return await work;
    } finally {
      meter.end();
    }
  }
}

/** What {@link Terminal.long} throws after Ctrl-C. */
export class Interrupted extends Error {}

function coloursOf({ stdout, env }: Surroundings, wish: ColourWish): Colours {
  if (wish === 'never') return 'none';
  if (wish === 'auto') {
    if (env.NO_COLOR !== undefined && env.NO_COLOR !== '') return 'none';
    if (stdout.isTTY !== true) return 'none';
  }
  const depth = stdout.getColorDepth?.() ?? (wish === 'always' ? 24 : 1);
  if (depth >= 24) return 'true';
  if (depth >= 8) return '256';
  // Sixteen colours do for words, and 256 are asked for by nobody then.
  return depth >= 4 || wish === 'always' ? '256' : 'none';
}

/** One line on a terminal that is written over and over, and is gone at the end. */
class Meter {
  readonly #output: Output;
  readonly #label: string;
  readonly #startMs = performance.now();
  readonly #timer: NodeJS.Timeout | undefined;
  #last: { readonly progress: Progress; readonly atMs: number } | undefined;
  #drawnMs = 0;
  #isDrawn = false;

  constructor(output: Output, label: string) {
    this.#output = output;
    this.#label = label;
    if (output.isTTY !== true) return;
    this.#timer = setInterval(() => this.#draw(), redrawMs);
    // The work keeps the program alive, not its clock.
    this.#timer.unref();
  }

  tell(progress: Progress): void {
    this.#last = { progress, atMs: performance.now() };
    this.#draw();
  }

  end(): void {
    clearInterval(this.#timer);
    if (this.#isDrawn) this.#output.write('\r\u001b[K');
  }

  #draw(): void {
    if (this.#output.isTTY !== true) return;
    const nowMs = performance.now();
    if (nowMs - this.#startMs < quietMs || nowMs - this.#drawnMs < redrawMs) return;
    this.#drawnMs = nowMs;
    this.#isDrawn = true;
    const last = this.#last;
    const line =
      last === undefined
        ? `${this.#label} … ${secondsText((nowMs - this.#startMs) / 1000)}`
        : progressLine(this.#label, last.progress, (last.atMs - this.#startMs) / 1000);
    const room = (this.#output.columns ?? columnsDefault) - 1;
    this.#output.write(`\r${[...line].slice(0, room).join('')}\u001b[K`);
  }
}

const barLetters = 20;

/** How far something has come, how fast it goes, and how long it will yet take. */
export function progressLine(label: string, progress: Progress, seconds: number): string {
  const { recordsDone, recordsTotal, bytesDone } = progress;
  const share = recordsTotal === 0 ? 1 : recordsDone / recordsTotal;
  const filled = Math.round(share * barLetters);
  const bar = '█'.repeat(filled) + '░'.repeat(barLetters - filled);
  const percent = `${Math.floor(share * 100)} %`.padStart(5);
  const rate = `${bytesText(Math.round(bytesDone / seconds))}/s`;
  const left = share === 0 ? '' : `, ${secondsText((seconds / share) * (1 - share))} left`;
  return `${label} ${bar} ${percent}  ${rate}${left}`;
}
