// @ts-check
// The pictures: loss curve, latent scatter by digit, and a grid of test digits, each as SVG and PNG, and
// report.html with all of them.
import fs from 'node:fs';
import path from 'node:path';
import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';
import sharp from 'sharp';

/** @typedef {import('./project.mjs').Projection} Projection */

/**
 * @typedef {object} Results
 * @property {readonly number[]} losses of each step
 * @property {readonly (readonly [number, number])[]} accuracies step and part read rightly
 * @property {Uint8Array} labels of the test digits
 * @property {readonly number[]} reads what the network takes them for
 * @property {import('loaderx').DenseBatch<'uint8'>} pictures the test digits, [n, 28, 28]
 * @property {readonly Projection[]} projections
 * @property {number} steps
 * @property {string} hash of the state
 */

// Ten colours that are told apart, also by most who are colour-blind; digits are named in the legend too.
const colours = [
  ...['#4269d0', '#efb118', '#ff725c', '#6cc5b0', '#3ca951'],
  ...['#b0468b', '#a463f2', '#5cb6f0', '#9c6b4e', '#7d8590'],
];
const style = { fontFamily: 'DejaVu Sans, Helvetica, Arial, sans-serif', fontSize: '12px' };

/** A plot as an SVG that stands alone. @param {Parameters<typeof Plot.plot>[0]} options */
function svgOf(options) {
  const { document } = parseHTML('<html><body></body></html>');
  const svg = Plot.plot({ document, style: { ...style, background: 'white' }, ...options });
  svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  svg.setAttribute('xmlns:xlink', 'http://www.w3.org/1999/xlink');
  return svg.outerHTML;
}

/** Means of `span` values around each. @param {readonly number[]} values @param {number} span */
function smooth(values, span) {
  return values.map((_, at) => {
    const part = values.slice(Math.max(0, at - span), at + span + 1);
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

const lossTicks = [0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 1, 2];

/** @param {Results} results */
function curves({ losses, accuracies }) {
  const steps = losses.map((loss, at) => ({ step: at + 1, loss }));
  const means = smooth(losses, 25).map((loss, at) => ({ step: at + 1, loss }));
  const marks = accuracies.map(([step, accuracy]) => ({
    ...{ step, loss: means[step - 1].loss, text: `${(accuracy * 100).toFixed(1)} %` },
  }));
  return svgOf({
    ...{
      width: 900,
      height: 380,
      marginLeft: 50,
      marginRight: 40,
      marginTop: 28,
      marginBottom: 36,
    },
    x: { label: 'step', grid: true },
    y: { type: 'log', label: 'loss', grid: true, ticks: lossTicks, tickFormat: String },
    marks: [
      Plot.line(steps, { x: 'step', y: 'loss', stroke: '#c6d0ee', strokeWidth: 1 }),
      Plot.line(means, { x: 'step', y: 'loss', stroke: colours[0], strokeWidth: 2.5 }),
      Plot.dot(marks, { x: 'step', y: 'loss', fill: colours[2], r: 4, stroke: 'white' }),
      Plot.text(marks, {
        ...{ x: 'step', y: 'loss', text: 'text', dy: -14, fontWeight: 'bold', fill: '#b3402e' },
        ...{ stroke: 'white', strokeWidth: 4 },
      }),
    ],
  });
}

/** Of numbers, the one in the middle. @param {number[]} values */
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** How near two names may be, where a panel is 1 wide and 1 high. */
const nearest = 0.062;

/**
 * Where each digit's name goes in one panel: to the middle of its points, and away from other names.
 *
 * @template {{digit: number, x: number, y: number}} Point
 * @param {Point[]} points
 */
function namesOf(points) {
  const labels = Array.from({ length: 10 }, (_, digit) => {
    const own = points.filter((point) => point.digit === digit);
    return { ...own[0], x: median(own.map(({ x }) => x)), y: median(own.map(({ y }) => y)) };
  });
  for (let round = 0; round < 100; round += 1) {
    labels.forEach((one, at) => {
      for (const other of labels.slice(at + 1)) {
        const [across, up] = [other.x - one.x, other.y - one.y];
        const distance = Math.hypot(across, up) || 1e-9;
        const push = Math.max(0, nearest - distance) / distance / 2;
        one.x -= across * push;
        one.y -= up * push;
        other.x += across * push;
        other.y += up * push;
      }
    });
  }
  return labels;
}

/** All projections, each stretched to its panel: what their axes count means nothing. @param {Results} results */
function latent({ projections, labels }) {
  const points = projections.flatMap(({ layer, method, points }) => {
    const [across, up] = [0, 1].map((axis) => {
      const values = points.map((point) => point[axis]);
      const least = Math.min(...values);
      const span = Math.max(...values) - least;
      return (/** @type {number[]} */ point) => (point[axis] - least) / span;
    });
    return points.map((point, at) => ({
      ...{ layer, method, digit: labels[at], x: across(point), y: up(point) },
    }));
  });
  const names = { x: 'x', y: 'y', fx: 'layer', fy: 'method' };
  const digits = Array.from({ length: 10 }, (_, digit) => digit);
  return svgOf({
    ...{
      width: 1120,
      height: 620,
      marginLeft: 52,
      marginRight: 10,
      marginTop: 34,
      marginBottom: 10,
    },
    x: { axis: null, inset: 10 },
    y: { axis: null, inset: 10 },
    fx: {
      domain: [...new Set(points.map(({ layer }) => layer))],
      axis: 'top',
      label: null,
      padding: 0.03,
    },
    fy: { domain: ['PCA', 'UMAP'], axis: 'left', label: null, padding: 0.03 },
    color: { domain: digits, range: colours },
    marks: [
      Plot.frame({ stroke: '#d0d4da' }),
      Plot.dot(points, { ...names, fill: 'digit', r: 1.8, fillOpacity: 0.7 }),
      // Each digit's name where the middle of its points is.
      Plot.text(
        projections.flatMap(({ layer, method }) =>
          namesOf(points.filter((point) => point.layer === layer && point.method === method)),
        ),
        {
          ...{ ...names, text: 'digit', fontSize: 15, fontWeight: 'bold' },
          ...{ fill: '#16181d', stroke: 'white', strokeWidth: 5 },
        },
      ),
    ],
  });
}

/**
 * Test digits, each with what it was read as; red and with the label where that is wrong.
 *
 * @param {Results} results
 * @param {readonly number[]} ids
 * @param {number} columns
 */
async function grid({ pictures, labels, reads }, ids, columns) {
  const cells = await Promise.all(
    ids.map(async (id, at) => {
      const ink = pictures.data.subarray(id * 784, (id + 1) * 784);
      const paper = Buffer.from(ink.map((grey) => 255 - grey));
      const png = await sharp(paper, { raw: { width: 28, height: 28, channels: 1 } })
        .resize(56, 56, { kernel: 'nearest' })
        .png()
        .toBuffer();
      const isRight = reads[id] === labels[id];
      return {
        ...{ x: at % columns, y: Math.floor(at / columns), isRight },
        source: `data:image/png;base64,${png.toString('base64')}`,
        text: isRight ? `${reads[id]}` : `${reads[id]}, is ${labels[id]}`,
      };
    }),
  );
  const rows = Math.ceil(ids.length / columns);
  return svgOf({
    ...{ width: columns * 70 + 20, height: rows * 84 + 10, margin: 0 },
    ...{ marginLeft: 10, marginRight: 10, marginTop: 5, marginBottom: 5 },
    x: { axis: null, domain: [-0.5, columns - 0.5] },
    y: { axis: null, domain: [rows - 0.5, -0.5] },
    marks: [
      Plot.image(cells, { x: 'x', y: 'y', src: 'source', width: 56, height: 56, dy: -9 }),
      Plot.text(cells, {
        ...{ x: 'x', y: 'y', text: 'text', dy: 29, fontSize: 13 },
        fill: (/** @type {{isRight: boolean}} */ cell) => (cell.isRight ? '#3b4048' : '#c02d1c'),
        fontWeight: 'bold',
      }),
    ],
  });
}

const samplesShown = 48;
const mistakesShown = 64;

/** @param {string} folder @param {Results} results */
export async function writeReport(folder, results) {
  const { labels, reads, accuracies, steps, hash } = results;
  const count = labels.length;
  const wrong = Array.from(labels, (_, id) => id).filter((id) => reads[id] !== labels[id]);
  // Test digits lie in the order of their labels: one of each stretch shows them all.
  const spread = Array.from({ length: samplesShown }, (_, at) =>
    Math.floor(((at + 0.5) * count) / samplesShown),
  );
  const pictures = {
    loss: curves(results),
    latent: latent(results),
    samples: await grid(results, spread, 16),
    mistakes: await grid(results, wrong.slice(0, mistakesShown), 16),
  };
  for (const [name, svg] of Object.entries(pictures)) {
    fs.writeFileSync(path.join(folder, `${name}.svg`), svg);
    const png = sharp(Buffer.from(svg), { density: 96 }).png({ palette: true, colours: 64 });
    await png.toFile(path.join(folder, `${name}.png`));
  }
  const accuracy = ((accuracies.at(-1)?.[1] ?? 0) * 100).toFixed(2);
  const shown = wrong.length > mistakesShown ? `the first ${mistakesShown} of them` : 'all of them';
  const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>What a small network makes of digits</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; color: #16181d; max-width: 1160px; margin: 2rem auto; padding: 0 1rem; }
  h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
  figure { margin: 0; overflow-x: auto; } svg { max-width: 100%; height: auto; }
  code { font-size: 0.85em; overflow-wrap: anywhere; }
</style>
<h1>What a small network makes of digits</h1>
<p>Trained for ${steps} steps; of ${count} test digits it reads ${accuracy} % rightly.
State after the last step: <code>sha256 ${hash}</code></p>
<h2>Loss of each batch, and its mean over 51; part of the test digits read rightly at each checkpoint</h2>
<figure>${pictures.loss}</figure>
<h2>The test digits, layer by layer</h2>
<p>Each point is a digit, where PCA or UMAP puts what the layer makes of it. What overlaps in the pixels is apart in the logits.</p>
<figure>${pictures.latent}</figure>
<h2>Test digits, and what each is read as</h2>
<figure>${pictures.samples}</figure>
<h2>${wrong.length} are read wrongly: ${shown}</h2>
<figure>${pictures.mistakes}</figure>
</html>
`;
  fs.writeFileSync(path.join(folder, 'report.html'), page);
}
