// The command line in this process: what it prints, and its exit code.
import { main } from '../../ts/cli/main.js';

export interface Told {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs `loaderx ARGS`, with no terminal and an empty environment. */
export async function told(...args: string[]): Promise<Told> {
  let out = '';
  let err = '';
  const code = await main(args, {
    stdout: { write: (text) => (out += String(text)) },
    stderr: { write: (text) => (err += String(text)) },
    env: {},
  });
  return { code, out, err };
}
