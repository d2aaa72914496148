// @ts-check
// Throws something else at each odd step.
class Odd extends Error {
  /** @param {string} message @param {number} extra */
  constructor(message, extra) {
    super(message, { cause: new TypeError('why', { cause: 'text' }) });
    this.name = 'Odd';
    this.extra = extra;
    this.handler = () => extra;
  }
}

/** @type {(() => unknown)[]} */
const thrown = [
  () => new Odd('odd', 7),
  () => undefined,
  () => null,
  () => 'text',
  () => Object.freeze({ frozen: true }),
  () => Object.freeze(new Error('frozen')),
  () => new Proxy(new RangeError('behind a proxy'), {}),
  () => new AggregateError([new TypeError('one'), 2], 'several'),
  () => Symbol('symbol'),
  () => () => 1,
  () => new Proxy({}, {}),
  () => new DOMException('gone', 'AbortError'),
];

/**
 * @param {unknown} _
 * @param {import('../../../ts/index.js').TransformContext} context
 */
export default async function throws(_, { step }) {
  if (step % 2 === 0) return step;
  throw thrown[(step - 1) / 2]?.();
}
