// docs/cli.md shows what the commands print now, and all of them.
import { readFileSync } from 'node:fs';
import t from 'tap';
import { document, renewed } from '../scripts/transcripts.mjs';
import { commands } from '../ts/cli/main.js';

const markdown = readFileSync(document, 'utf8');

t.test('every transcript is current', async (t) => {
  const [shown, now] = [markdown, await renewed(markdown)].map((text) => text.split('\n'));
  t.strictSame(shown, now, 'npm run transcripts writes it anew');
  t.ok(markdown.includes('$ npx loaderx'), 'there are some');
});

t.test('every command has its chapter: help, and what it prints', async (t) => {
  for (const { name } of commands) {
    const chapter = markdown.split(/^## /m).find((part) => part.startsWith(`${name}\n`)) ?? '';
    t.match(chapter, `$ npx loaderx ${name} --help\n`, name);
    const shown = [...chapter.matchAll(/^\$ npx loaderx (\S+) (?!--help)/gm)];
    t.ok(
      shown.some(([, command]) => command === name),
      `${name} is shown at work`,
    );
  }
});
