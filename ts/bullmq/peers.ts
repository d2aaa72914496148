/** BullMQ and its client of Redis: optional peers, loaded when a queue is first asked for. */
import { LoaderxError } from '../errors.js';

/** The versions that this package is tested with. */
export const bullmqVersion = '6.7.0';
export const ioredisVersion = '6.0.0';

type Bullmq = typeof import('bullmq');

let loading: Promise<Bullmq> | undefined;

/** @throws LoaderxError UNSUPPORTED without the peers */
export async function loadBullmq(): Promise<Bullmq> {
  loading ??= Promise.all([import('bullmq'), import('ioredis')]).then(([bullmq]) => bullmq);
  try {
    return await loading;
  } catch (cause) {
    loading = undefined;
    const said = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
    throw new LoaderxError(
      'UNSUPPORTED',
      `loaderx/bullmq works with bullmq and ioredis, which cannot be loaded (${said}): npm install bullmq@${bullmqVersion} ioredis@${ioredisVersion}`,
      {},
      { cause },
    );
  }
}
