/** Numbers and tables as lines of text. */

export { plain, plainJson } from '../inspect/plain.js';

/** A number with its thousands apart. */
export function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Bytes with three digits that matter. */
export function bytesText(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const text = unit === 0 ? String(value) : digits3(value);
  return `${text} ${units[unit]}`;
}

/** Three digits that matter. */
export function digits3(value: number): string {
  if (value >= 99.95) return value.toFixed(0);
  return value.toFixed(value >= 9.995 ? 1 : 2);
}

/** Seconds as a person says them. */
export function secondsText(seconds: number): string {
  if (seconds < 99.5) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

export function countText(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** A table: texts to the left, numbers (columns that `right` names) to the right. */
export function tableLines(
  rows: readonly (readonly string[])[],
  right: ReadonlySet<number>,
): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, lettersOf(cell));
    }
  }
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const gap = ' '.repeat((widths[column] ?? 0) - lettersOf(cell));
        return right.has(column) ? gap + cell : cell + gap;
      })
      .join('  ')
      .trimEnd(),
  );
}

function lettersOf(text: string): number {
  return [...text].length;
}

const bars = '▁▂▃▄▅▆▇█';

/** Counts as a row of bars; the smallest bar is some, a blank is none. */
export function barsText(counts: readonly number[]): string {
  const most = Math.max(...counts, 1);
  return counts
    .map((count) => {
      if (count === 0) return ' ';
      return bars[Math.min(bars.length - 1, Math.floor((count / most) * bars.length))] ?? '█';
    })
    .join('');
}
