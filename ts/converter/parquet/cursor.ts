/**
 * Rows of one column of one row group, taken in order.
 *
 * Levels become offsets. An entry of a list column is `(repetition, definition)`: the first says at which
 * level of lists it goes on (0: a new row), the second how much of its path is there. For `list<list<int>>`
 * with optional everything:
 *
 * ```text
 * [[1, 2], [3]]   (0,5) (2,5) (1,5)      list definitions 2 and 4: an element of the outer, inner list is there
 * [[]]            (0,3)                  4 - 1: the inner list is there and empty
 * []              (0,1)                  2 - 1: the outer list is there and empty
 * null            (0,0)                  less: something is null
 * ```
 */
import { LoaderxError, show } from '../../errors.js';
import { Unfit } from './numbers.js';
import type { Page, Pages, Reading } from './pages.js';

/** Rows as they lie in memory: bytes of numbers, or one array for each value. */
export interface Rows {
  readonly numbers: Uint8Array | undefined;
  readonly bytes: readonly (Uint8Array | null)[];
  readonly offsets: readonly Uint32Array[];
}

export class Cursor {
  readonly #pages: Pages;
  readonly #reading: Reading;
  /** The split's row that the next one is: for messages. */
  #row: number;
  #page: Page | undefined;
  /** Entries and values of the page that are taken. */
  #entry = 0;
  #value = 0;
  /** Rows of the batch that is taken that were begun before the page. */
  #rowsBegun = 0;

  readonly #valuesPerRow: number;

  /** @param valuesPerRow the mean, so that memory is made once */
  constructor(pages: Pages, reading: Reading, firstRow: number, valuesPerRow: number) {
    this.#valuesPerRow = valuesPerRow;
    this.#pages = pages;
    this.#reading = reading;
    this.#row = firstRow;
  }

  /**
   * The next `rowCount` rows.
   *
   * @throws LoaderxError SOURCE for a null or a value that does not fit, with column and row; MALFORMED where
   *   the column has fewer
   */
  async take(rowCount: number): Promise<Rows> {
    const { leaf, number } = this.#reading;
    const bytes = Math.ceil(rowCount * this.#valuesPerRow * 1.02) * (number?.width ?? 0);
    const batch = new Batch(number?.width ?? 0, leaf.listDefinitions.length, rowCount, bytes);
    let rows = 0;
    for (;;) {
      this.#rowsBegun = rows;
      const page = await this.#current();
      if (page === undefined) break;
      const depth = leaf.listDefinitions.length;
      const before = this.#entry;
      if (depth === 0) rows = this.#takeFlat(page, rows, rowCount, batch);
      else if (depth === 1) rows = this.#takeLists(page, rows, rowCount, batch);
      else rows = this.#takeNested(page, rows, rowCount, batch);
      // The page goes on with a row that was not asked for.
      if (this.#entry < page.entryCount) break;
      if (this.#entry === before) throw this.#pages.damaged('a page of it does not end');
      if (depth === 0 && rows === rowCount) break;
    }
    if (rows !== rowCount) throw this.#pages.damaged(`it ends ${rowCount - rows} rows too early`);
    this.#row += rowCount;
    return batch.rows();
  }

  /** Throws MALFORMED where the column goes on behind the last row that its row group has. */
  async assertEnd(): Promise<void> {
    if ((await this.#current()) !== undefined) {
      throw this.#pages.damaged('it has more rows than its row group');
    }
  }

  async #current(): Promise<Page | undefined> {
    const page = this.#page;
    if (page !== undefined && this.#entry < page.entryCount) return page;
    const next = await this.#pages.next();
    this.#page = next === undefined ? undefined : this.#cast(next);
    this.#entry = 0;
    this.#value = 0;
    return this.#page;
  }

  /** Values as the declared dtype has them, all of a page at once. */
  #cast(page: Page): Page {
    const { number } = this.#reading;
    const { values } = page;
    if (number === undefined || page.isCast) return page;
    if (!(values instanceof Uint8Array)) throw this.#pages.damaged('its values are no numbers');
    try {
      return { ...page, values: number.cast(values) };
    } catch (error) {
      if (!(error instanceof Unfit)) throw error;
      throw this.#sourceError(this.#rowOfValue(page, error.index), error.message);
    }
  }

  #takeFlat(page: Page, rows: number, rowCount: number, batch: Batch): number {
    const { definition } = page;
    const { maxDefinition } = this.#reading.leaf;
    const count = Math.min(rowCount - rows, page.entryCount - this.#entry);
    if (page.valueCount === page.entryCount) {
      this.#moveValues(page, count, batch);
      this.#entry += count;
      return rows + count;
    }
    for (let index = 0; index < count; index += 1) {
      const level = typeof definition === 'number' ? definition : definition[this.#entry + index];
      if (level === maxDefinition) continue;
      throw this.#nullError(rows + index, 'is null');
    }
    this.#moveValues(page, count, batch);
    this.#entry += count;
    return rows + count;
  }

  #takeLists(page: Page, rows: number, rowCount: number, batch: Batch): number {
    const { repetition, definition, entryCount } = page;
    const { maxDefinition, listDefinitions } = this.#reading.leaf;
    const there = listDefinitions[0] ?? 0;
    const allValues = page.valueCount === entryCount;
    const countBefore = batch.counts[0] as number;
    const first = this.#entry;
    let row = rows;
    let absent = 0;
    let index = first;
    if (row === 0 && levelAt(repetition, index) !== 0) {
      throw this.#pages.damaged('it begins in the middle of a row');
    }
    if (allValues && typeof repetition !== 'number') {
      // Nothing is empty or null: only where rows begin has to be seen.
      for (;;) {
        const begins = repetition.indexOf(0, index);
        index = begins < 0 ? entryCount : begins;
        if (begins < 0 || row === rowCount) break;
        row += 1;
        batch.begin(0, countBefore + index - first);
        index += 1;
      }
      batch.counts[0] = countBefore + index - first;
      this.#moveValues(page, index - first, batch);
      this.#entry = index;
      return row;
    }
    for (; index < entryCount; index += 1) {
      const level = typeof repetition === 'number' ? repetition : (repetition[index] as number);
      if (level === 0) {
        if (row === rowCount) break;
        row += 1;
        batch.begin(0, countBefore + index - first - absent);
      }
      const defined = typeof definition === 'number' ? definition : (definition[index] as number);
      if (defined === maxDefinition) continue;
      // An element that is null, or no element: an empty list, or none.
      if (defined >= there) throw this.#nullError(row - 1, 'has a null in its list');
      if (defined < there - 1) throw this.#nullError(row - 1, 'is null');
      if (level !== 0) throw this.#pages.damaged('an empty list goes on');
      absent += 1;
    }
    const values = index - first - absent;
    batch.counts[0] = countBefore + values;
    this.#moveValues(page, values, batch);
    this.#entry = index;
    return row;
  }

  #takeNested(page: Page, rows: number, rowCount: number, batch: Batch): number {
    const { repetition, definition, entryCount } = page;
    const { maxDefinition, listDefinitions } = this.#reading.leaf;
    const depth = listDefinitions.length;
    const { counts } = batch;
    let row = rows;
    let values = 0;
    let index = this.#entry;
    const allValues = page.valueCount === entryCount;
    if (row === 0 && levelAt(repetition, index) !== 0) {
      throw this.#pages.damaged('it begins in the middle of a row');
    }
    if (allValues && typeof repetition !== 'number') {
      // Nothing is empty or null: only where lists begin has to be seen.
      const first = index;
      const innermost = depth - 1;
      const itemsBefore = counts[innermost] as number;
      for (; index < entryCount; index += 1) {
        const level = repetition[index] as number;
        if (level === depth) continue;
        if (level === 0) {
          if (row === rowCount) break;
          row += 1;
        } else counts[level - 1] = (counts[level - 1] as number) + 1;
        for (let list = level; list < innermost; list += 1) {
          batch.begin(list, counts[list] as number);
          counts[list] = (counts[list] as number) + 1;
        }
        batch.begin(innermost, itemsBefore + index - first);
      }
      counts[innermost] = itemsBefore + index - first;
      this.#moveValues(page, index - first, batch);
      this.#entry = index;
      return row;
    }
    for (; index < entryCount; index += 1) {
      const level = typeof repetition === 'number' ? repetition : (repetition[index] as number);
      const defined = typeof definition === 'number' ? definition : (definition[index] as number);
      if (level === 0) {
        if (row === rowCount) break;
        row += 1;
      } else {
        if (defined < (listDefinitions[level - 1] as number)) {
          throw this.#pages.damaged('an element is none');
        }
        counts[level - 1] = (counts[level - 1] as number) + 1;
      }
      // Lists that begin here, from the outside in, up to the first that is empty.
      let isValue = true;
      for (let list = level; list < depth; list += 1) {
        const there = listDefinitions[list] as number;
        if (defined < there - 1)
          throw this.#nullError(row - 1, list === 0 ? 'is null' : 'has a null in its list');
        batch.begin(list, counts[list] as number);
        if (defined < there) {
          isValue = false;
          break;
        }
        counts[list] = (counts[list] as number) + 1;
      }
      if (!isValue) continue;
      if (defined !== maxDefinition) throw this.#nullError(row - 1, 'has a null in its list');
      values += 1;
    }
    this.#moveValues(page, values, batch);
    this.#entry = index;
    return row;
  }

  #moveValues(page: Page, count: number, batch: Batch): void {
    const { values } = page;
    const first = this.#value;
    this.#value += count;
    if (values instanceof Uint8Array && this.#reading.number !== undefined) {
      const { width } = this.#reading.number;
      batch.addNumbers(values.subarray(first * width, (first + count) * width));
    } else if (values instanceof Uint8Array) {
      // Bytes of a fixed length.
      const { width } = this.#reading.leaf.physical;
      for (let index = first; index < first + count; index += 1) {
        batch.bytes.push(values.subarray(index * width, (index + 1) * width));
      }
    } else {
      for (let index = first; index < first + count; index += 1) {
        batch.bytes.push(values[index] as Uint8Array);
      }
    }
  }

  /** The row, of the batch that is taken, that a page's value belongs to. The page is not begun. */
  #rowOfValue(page: Page, value: number): number {
    const { repetition, definition } = page;
    const { maxDefinition, listDefinitions } = this.#reading.leaf;
    const isFlat = listDefinitions.length === 0;
    let rows = 0;
    let seen = 0;
    for (let index = 0; index < page.entryCount; index += 1) {
      const level = typeof repetition === 'number' ? repetition : repetition[index];
      if (isFlat || level === 0) rows += 1;
      const defined = typeof definition === 'number' ? definition : definition[index];
      if (defined !== maxDefinition) continue;
      if (seen === value) break;
      seen += 1;
    }
    return this.#rowsBegun + rows - 1;
  }

  #nullError(row: number, what: string): LoaderxError {
    return this.#sourceError(row, `${what}, and containers hold no nulls`);
  }

  #sourceError(row: number, what: string): LoaderxError {
    const { column } = this.#reading;
    const record = this.#row + row;
    return new LoaderxError('SOURCE', `column ${show(column)}, row ${record}: ${what}`, {
      field: column,
      record,
    });
  }
}

function levelAt(levels: Uint8Array | number, index: number): number {
  return typeof levels === 'number' ? levels : (levels[index] as number);
}

/** What is taken, as it grows. */
class Batch {
  readonly bytes: Uint8Array[] = [];
  /** Elements of each level of lists so far. */
  readonly counts: number[];
  readonly #offsets: Uint32Array[];
  readonly #listCounts: number[];
  #numbers: Uint8Array;
  #numberBytes = 0;
  readonly #width: number;

  constructor(width: number, depth: number, rowCount: number, bytes: number) {
    this.#width = width;
    this.counts = new Array<number>(depth).fill(0);
    this.#listCounts = new Array<number>(depth).fill(0);
    this.#offsets = Array.from({ length: depth }, () => new Uint32Array(rowCount + 2));
    this.#numbers = Buffer.allocUnsafeSlow(Math.min(bytes, growthBytes));
  }

  /** A list of this level begins at the level's element `position`. */
  begin(level: number, position: number): void {
    let offsets = this.#offsets[level] as Uint32Array;
    const count = this.#listCounts[level] as number;
    // One more for the end of the last list.
    if (count + 2 > offsets.length) {
      const longer = new Uint32Array(offsets.length * 2);
      longer.set(offsets);
      this.#offsets[level] = longer;
      offsets = longer;
    }
    offsets[count] = position;
    this.#listCounts[level] = count + 1;
  }

  addNumbers(numbers: Uint8Array): void {
    const wanted = this.#numberBytes + numbers.length;
    if (wanted > this.#numbers.length) {
      const longer = Buffer.allocUnsafeSlow(
        Math.max(wanted, Math.min(this.#numbers.length * 2, wanted + growthBytes)),
      );
      longer.set(this.#numbers.subarray(0, this.#numberBytes));
      this.#numbers = longer;
    }
    this.#numbers.set(numbers, this.#numberBytes);
    this.#numberBytes = wanted;
  }

  rows(): Rows {
    const offsets = this.#offsets.map((list, level) => {
      const count = this.#listCounts[level] as number;
      list[count] = this.counts[level] as number;
      return list.subarray(0, count + 1);
    });
    const numbers = this.#width === 0 ? undefined : this.#numbers.subarray(0, this.#numberBytes);
    return { numbers, bytes: this.bytes, offsets };
  }
}

const growthBytes = 64 * 1024 * 1024;
