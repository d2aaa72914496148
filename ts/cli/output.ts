/**
 * stdout and stderr of the program, which may close or fail while a command is at work. The work goes on
 * all the same: what a command does and its exit code do not depend on who listens.
 *
 * A closed output (`loaderx … | head -1`) is silent. Any other failure, such as a full disk, is kept for
 * whoever ends the program.
 */
import fs from 'node:fs';
import type { Output } from './terminal.js';

/** A stream of the process, as an output that never throws. */
export class SafeOutput implements Output {
  readonly #stream: NodeJS.WriteStream;
  /** Of a file or device, which is written to without the stream: that takes a part for the whole. */
  readonly #descriptor: number | undefined;
  #isClosed = false;
  #failure: string | undefined;
  #pending = 0;
  #onSettled: (() => void)[] = [];

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
    this.#descriptor = descriptorOf(stream);
    stream.on('error', (error) => this.#failed(error));
  }

  /** Whether nobody listens any more, or nothing can be written. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** What the operating system said when it refused to write, such as `ENOSPC`; not of a closed output. */
  get failure(): string | undefined {
    return this.#failure;
  }

  get isTTY(): boolean {
    return this.#stream.isTTY === true;
  }

  get columns(): number | undefined {
    return this.#stream.columns;
  }

  getColorDepth(): number {
    return this.isTTY ? this.#stream.getColorDepth() : 1;
  }

  write(bytes: string | Uint8Array): void {
    if (this.#isClosed) return;
    try {
      if (this.#descriptor === undefined) this.#send(bytes);
      else writeWhole(this.#descriptor, typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** When all that was written has left, or cannot leave any more. */
  async settled(): Promise<void> {
    if (this.#pending === 0 || this.#isClosed) return;
    await new Promise<void>((resolve) => {
      this.#onSettled.push(resolve);
    });
  }

  #send(bytes: string | Uint8Array): void {
    this.#pending += 1;
    this.#stream.write(bytes, (error) => {
      this.#pending -= 1;
      if (error !== undefined && error !== null) this.#failed(error);
      else if (this.#pending === 0) this.#wake();
    });
  }

  #failed(error: unknown): void {
    if (!this.#isClosed) {
      this.#isClosed = true;
      const code = (error as { readonly code?: unknown } | null)?.code;
      if (code !== 'EPIPE') this.#failure = typeof code === 'string' ? code : 'EUNKNOWN';
    }
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#onSettled.splice(0)) resolve();
  }
}

function descriptorOf(stream: NodeJS.WriteStream): number | undefined {
  const { fd, isTTY } = stream as { readonly fd?: unknown; readonly isTTY?: boolean };
  if (typeof fd !== 'number' || isTTY === true) return undefined;
  try {
    const stat = fs.fstatSync(fd);
    return stat.isFile() || stat.isCharacterDevice() ? fd : undefined;
  } catch {
    return undefined;
  }
}

function writeWhole(descriptor: number, bytes: Uint8Array): void {
  let done = 0;
  while (done < bytes.byteLength) done += fs.writeSync(descriptor, bytes, done);
}
