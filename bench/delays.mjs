// @ts-check
// How long the event loop is held up: a timer of 1 ms fires late, and the delay is what it is late by.

const intervalMs = 1;

/** @param {() => Promise<unknown>} body */
export async function delaysDuring(body) {
  /** @type {number[]} */
  const delays = [];
  let due = performance.now() + intervalMs;
  const timer = setInterval(() => {
    const now = performance.now();
    delays.push(Math.max(0, now - due));
    due = now + intervalMs;
  }, intervalMs);
  await body();
  // What the body held up until its end counts too.
  await new Promise((resolve) => setTimeout(resolve, intervalMs * 2));
  clearInterval(timer);
  delays.sort((a, b) => a - b);
  const at = (/** @type {number} */ share) => delays[Math.floor((delays.length - 1) * share)] ?? 0;
  return { ticks: delays.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
}
