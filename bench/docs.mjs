// @ts-check
// Writes what a run found into docs/benchmarks.md: each bench has a place of its own there.
import fs from 'node:fs';
import { Failure, inRoot, shown } from '../scripts/script.mjs';

/** @param {string} name of the place @param {string} text */
export function writeDocs(name, text) {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
  const file = inRoot('docs', 'benchmarks.md');
  const page = fs.existsSync(file)
    ? fs.readFileSync(file, 'utf8')
    : `# Benchmarks\n\n${begin}\n${end}\n`;
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) {
    throw new Failure(
      `${shown(file)} has no place for tables`,
      `It must have ${begin} and ${end}.`,
    );
  }
  fs.writeFileSync(file, `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`);
  process.stdout.write(`tables written into ${shown(file)}\n`);
}
