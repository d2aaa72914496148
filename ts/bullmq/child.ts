/** A task in a child process: started, told to stop, and always over before its promise settles. */
import { type ChildProcess, fork } from 'node:child_process';
import { type ErrorRecord, errorCodes, LoaderxError } from '../errors.js';
import type { Answer, MadePart, MadeSet, Order, PartProgress, Task } from './task.js';

/** What a task's process is given. */
export interface ChildOptions {
  readonly execArgv: readonly string[];
  /** Ends the task: it is asked to, and killed when that takes too long. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PartProgress) => void;
}

/** How long a task that was told to stop may take to leave nothing behind. */
const stopMsMax = 5000;

/**
 * Runs a task.
 *
 * @throws LoaderxError as the task; ABORTED after the signal; BUILD_FAILED when the process died
 */
export function runTask(
  task: Task,
  { execArgv, signal, onProgress }: ChildOptions,
): Promise<MadePart | readonly MadeSet[]> {
  const name = taskName(task);
  return new Promise((resolve, reject) => {
    let answer: Exclude<Answer, { kind: 'progress' | 'ready' }> | undefined;
    let child: ChildProcess;
    try {
      child = fork(new URL('./task-process.js', import.meta.url), [task.spec.target, name], {
        // The last one stays open as long as this process lives: the child ends when it closes.
        stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'],
        execArgv: [...process.execArgv, ...execArgv],
      });
    } catch (cause) {
      reject(new LoaderxError('IO', `the process for ${name} cannot be started`, {}, { cause }));
      return;
    }
    let killing: NodeJS.Timeout | undefined;
    const send = (order: Order): void => {
      // It may be gone; its exit says so.
      if (child.connected) child.send(order, () => {});
    };
    const stop = (): void => {
      send({ kind: 'abort', reason: String(signal.reason) });
      killing ??= setTimeout(() => child.kill('SIGKILL'), stopMsMax);
    };
    child.on('message', (message: Answer) => {
      // What is sent earlier may come before it listens.
      if (message.kind === 'ready') send({ kind: 'run', task });
      else if (message.kind === 'progress') onProgress(message);
      else answer = message;
    });
    child.once('error', (cause) => {
      if (child.pid !== undefined) return;
      reject(new LoaderxError('IO', `the process for ${name} cannot be started`, {}, { cause }));
    });
    child.once('exit', (code, killer) => {
      clearTimeout(killing);
      signal.removeEventListener('abort', stop);
      if (answer?.kind === 'done') resolve(answer.result);
      else if (signal.aborted) {
        const cause: unknown = signal.reason;
        reject(new LoaderxError('ABORTED', `${name} was stopped`, {}, { cause }));
      } else if (answer?.kind === 'failed') reject(revived(answer.error));
      else {
        const how = killer === null ? `ended with exit code ${code}` : `was ended by ${killer}`;
        reject(new LoaderxError('BUILD_FAILED', `its process ${how}`));
      }
    });
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}

/** `part 3 of 8`. */
export function taskName(task: Task): string {
  return task.kind === 'part' ? `part ${task.part} of ${task.spec.parts}` : 'the sets';
}

/** The child's error. What is none of the family is a defect, and named so. */
function revived(error: ErrorRecord | Pick<ErrorRecord, 'name' | 'message'>): LoaderxError {
  if (!('code' in error) || !errorCodes.includes(error.code)) {
    return new LoaderxError('UNEXPECTED', `${error.name}: ${error.message}`);
  }
  const { code, message, path } = error;
  return new LoaderxError(code, message, path === undefined ? {} : { path });
}
