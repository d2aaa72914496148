// @ts-check
// The network: 784 pixels, two hidden layers with ReLU, ten logits; and one step of SGD with momentum.
//
// jax-js counts references: a function consumes the arrays it is given, and `.ref` is one more use.

// Node 20 has no `navigator`, which jax-js asks for a GPU.
if (!('navigator' in globalThis)) Object.assign(globalThis, { navigator: {} });
const jax = await import('@jax-js/jax');
const { jit, nn, random, valueAndGrad } = jax;
export const np = jax.numpy;

/** @typedef {import('@jax-js/jax').Array} Tensor */

/** What each layer makes of a picture; the pixels are the first. */
export const layers = [
  { name: 'pixels', width: 784 },
  { name: 'hidden-1', width: 256 },
  { name: 'hidden-2', width: 64 },
  { name: 'logits', width: 10 },
];

const parameterShapes = [
  [784, 256],
  [1, 256],
  [256, 64],
  [1, 64],
  [64, 10],
  [1, 10],
];
const parameterCount = parameterShapes.length;

/** Of all that a step changes: weights and biases in turn, then the velocity of each. */
export const stateShapes = [...parameterShapes, ...parameterShapes];

await jax.init('wasm');
jax.defaultDevice('wasm');

/** Weights at random, after He; all else zero. @param {number} seed @returns {Tensor[]} */
export function initialState(seed) {
  return stateShapes.map(([rows = 1, columns = 1], at) => {
    if (at >= parameterCount || rows === 1) return np.zeros([rows, columns]);
    const key = random.key(seed * 100 + at);
    return random.normal(key, [rows, columns]).mul(Math.sqrt(2 / rows));
  });
}

/** @param {Float32Array | Int32Array} data @param {readonly number[]} shape @returns {Tensor} */
export function tensor(data, shape) {
  const dtype = data instanceof Int32Array ? np.int32 : np.float32;
  return np.array(data, { dtype }).reshape([...shape]);
}

/** A tensor's values, in memory of their own. @param {Tensor} one @returns {Promise<Float32Array>} */
export async function valuesOf(one) {
  return Float32Array.from(await one.ref.data());
}

/** @param {Tensor[]} parameters @param {Tensor} pixels [n, 784] @returns {Tensor[]} each layer's */
function forward([w1, b1, w2, b2, w3, b3], pixels) {
  const hidden1 = nn.relu(np.dot(pixels, w1).add(b1));
  const hidden2 = nn.relu(np.dot(hidden1.ref, w2).add(b2));
  const logits = np.dot(hidden2.ref, w3).add(b3);
  return [hidden1, hidden2, logits];
}

/** Mean cross entropy. @param {Tensor[]} parameters @param {Tensor} pixels @param {Tensor} labels int32[n] */
function lossOf(parameters, pixels, labels) {
  const [count] = pixels.shape;
  const [hidden1, hidden2, logits] = forward(parameters, pixels);
  hidden1.dispose();
  hidden2.dispose();
  return nn
    .logSoftmax(logits)
    .mul(nn.oneHot(labels, 10))
    .sum()
    .mul(-1 / count);
}

const momentum = 0.9;

/** One step. Consumes its arguments; gives the next state and the loss before it. */
export const trainStep = jit((state, pixels, labels, rate) => {
  const parameters = state.slice(0, parameterCount);
  const [loss, gradients] = valueAndGrad(lossOf)(
    parameters.map((one) => one.ref),
    pixels,
    labels,
  );
  const velocities = state
    .slice(parameterCount)
    .map((velocity, at) => velocity.mul(momentum).add(gradients[at]));
  const moved = parameters.map((one, at) => one.sub(velocities[at].ref.mul(rate.ref)));
  rate.dispose();
  return { state: [...moved, ...velocities], loss };
});

const forwardOnce = jit(forward);

/** What each layer after the pixels makes of a batch. Leaves the state alone. @param {Tensor[]} state @param {Float32Array} pixels @param {number} count @returns {Promise<Float32Array[]>} */
export async function represent(state, pixels, count) {
  const parameters = state.slice(0, parameterCount).map((one) => one.ref);
  const made = forwardOnce(parameters, tensor(pixels, [count, 784]));
  const values = await Promise.all(made.map(valuesOf));
  for (const one of made) one.dispose();
  return values;
}
