// A folder for one test file, removed when its tests have ended.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Test } from 'tap';

export class Scratch {
  readonly root: string;
  #count = 0;

  constructor(t: Test) {
    this.root = mkdtempSync(path.join(tmpdir(), 'loaderx-test-'));
    t.teardown(() => rmSync(this.root, { recursive: true, force: true }));
  }

  /** A path in a folder of its own that is there; nothing is at the path. */
  fresh(name = 'store'): string {
    this.#count += 1;
    return path.join(mkdtempSync(path.join(this.root, `${this.#count}-`)), name);
  }

  /** A new empty folder. */
  folder(): string {
    return path.dirname(this.fresh());
  }
}

/** Names of everything in the folder that holds `container`, sorted. */
export function beside(container: string): string[] {
  return readdirSync(path.dirname(container)).sort();
}
