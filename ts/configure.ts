/** Settings of the process: what all containers, loaders and worker threads share. */
import { ArgumentRangeError, ArgumentTypeError, show } from './errors.js';
import { lanesMax, native } from './native/load.js';

/** What {@link configure} takes. What is left out stays as it is. */
export interface Settings {
  /**
   * Native threads that may work at one time, 1 .. 1024. Unless given, or named by `LOADERX_LANES` when
   * the package is loaded (a process warning tells of one that is no number from 1 to 1024, and is ignored):
   * the larger of the physical cores and three quarters of the logical ones, both
   * within the process's affinity and cgroup quota.
   */
  readonly lanes?: number | undefined;
}

/**
 * Changes settings of the process and returns those that hold now; without an argument it only tells
 * them. Work that runs is finished as it was begun.
 *
 * @throws TypeError (INVALID_ARGUMENT) for what is no object, an unknown name or no integer
 * @throws RangeError (INVALID_ARGUMENT) for lanes outside of 1 .. 1024
 */
export function configure(settings: Settings = {}): {
  /** Native threads that may work at one time. */
  readonly lanes: number;
} {
  if (typeof settings !== 'object' || settings === null) {
    throw new ArgumentTypeError('settings', `settings must be an object, got ${show(settings)}`);
  }
  const unknown = Object.keys(settings).find((name) => name !== 'lanes');
  if (unknown !== undefined) {
    throw new ArgumentTypeError(unknown, `there is no setting ${show(unknown)}; there is lanes`);
  }
  const { lanes } = settings;
  if (lanes !== undefined) {
    if (typeof lanes !== 'number' || !Number.isInteger(lanes)) {
      throw new ArgumentTypeError('lanes', `lanes must be an integer, got ${show(lanes)}`);
    }
    if (lanes < 1 || lanes > lanesMax) {
      throw new ArgumentRangeError('lanes', `lanes must be 1 to ${lanesMax}, got ${lanes}`);
    }
    native().setLaneCount(lanes);
  }
  return { lanes: native().laneCount() };
}
