// What tests look at in a Markdown document: its blocks of code, its headings' anchors, its links.

/** A fenced block. */
export interface Block {
  /** What stands behind the fence; empty where nothing does. */
  readonly language: string;
  /** Of the fence, counted from 1. */
  readonly line: number;
  readonly code: string;
}

/** Fenced blocks, in order. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  const lines = markdown.split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    const opening = /^```(\S*)$/.exec(lines[at] ?? '');
    if (opening === null) continue;
    const end = lines.indexOf('```', at + 1);
    if (end < 0) throw new Error(`line ${at + 1}: the block does not end`);
    const code = `${lines.slice(at + 1, end).join('\n')}\n`;
    blocks.push({ language: opening[1] ?? '', line: at + 1, code });
    at = end;
  }
  return blocks;
}

/** The text without its blocks. */
export const withoutBlocks = (markdown: string): string =>
  markdown.replace(/^```[^\n]*\n.*?^```$/gms, '');

/** The anchors of all headings. */
export function anchorsOf(markdown: string): string[] {
  return [...withoutBlocks(markdown).matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s-]/gu, '')
      .trim()
      .replace(/\s/g, '-'),
  );
}

/** What links and pictures lead to, those to other sites not counted. */
export const targetsOf = (markdown: string): string[] =>
  [...withoutBlocks(markdown).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
