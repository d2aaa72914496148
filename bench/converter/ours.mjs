// @ts-check
// This package's part of bench/converter.mjs:
//
//     node ours.mjs FILE OUT CODEC      converts a Parquet file; one line of JSON with seconds and memory
const [file = '', out = '', codec = 'raw'] = process.argv.slice(2);

/** @type {typeof import('../../ts/converter.js')} */
const { convert, parquetFolder } = await import(
  new URL('../../dist/converter.js', import.meta.url).href
);

const peak = () => process.resourceUsage().maxRSS * 1024;
const base = peak();
const used = process.cpuUsage();
const start = performance.now();
await convert(await parquetFolder(file), out, { codec: /** @type {'raw' | 'zstd'} */ (codec) });
const seconds = (performance.now() - start) / 1000;
const { user, system } = process.cpuUsage(used);
const cpuSeconds = (user + system) / 1e6;
process.stdout.write(`${JSON.stringify({ seconds, cpuSeconds, memoryBytes: peak() - base })}\n`);
