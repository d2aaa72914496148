/**
 * What a column would become, from its declaration or from its rows, without anything being written.
 */
import { dtypeOf } from '../dtype.js';
import { LoaderxError, show } from '../errors.js';
import { unlikeFirst } from './images/settling.js';
import type { ImageLimits } from './images.js';
import type { Layout } from './layout.js';
import { bytesOf, type CheckedRows } from './rows.js';

/** What a column would become. */
export interface SurveyedColumn {
  /** Its name. */
  readonly column: string;
  /** Whether its records have one shape. */
  readonly kind: 'dense' | 'ragged';
  /** Of its items. */
  readonly dtype: string;
  /** Of a dense record; the rank of ragged ones. */
  readonly shape: readonly number[] | number;
  /** How many there are. */
  readonly records: number;
  /** Bytes of the items of all records. */
  readonly itemBytes: number;
}

export class Surveyor {
  readonly #column: string;
  readonly #layout: Layout;
  readonly #limits: ImageLimits | undefined;
  #itemBytes = 0;
  /** Of pictures and arrays, whose first one says what the others are. */
  #first: { readonly dtype: string; readonly shape: readonly number[] } | undefined;
  #isRagged = false;

  constructor(column: string, layout: Layout, limits: ImageLimits | undefined) {
    this.#column = column;
    this.#layout = layout;
    this.#limits = limits;
  }

  /** What so many rows become; of a dense layout. */
  ofRows(records: number): SurveyedColumn {
    const layout = this.#layout;
    if (layout.kind !== 'dense') throw new TypeError('only dense rows have one size');
    const { dtype, itemShape } = layout;
    const { itemBytes } = dtypeOf(dtype);
    const recordBytes = itemShape.reduce((product, size) => product * size, itemBytes);
    return {
      column: this.#column,
      kind: 'dense',
      dtype,
      shape: itemShape,
      records,
      itemBytes: recordBytes * records,
    };
  }

  /** Takes checked rows into account. */
  async add(rows: CheckedRows, firstRow: number): Promise<void> {
    switch (rows.kind) {
      case 'numbers':
      case 'file':
        this.#itemBytes += bytesOf(rows);
        return;
      case 'arrays':
        for (const [index, { dtype, shape, data }] of rows.arrays.entries()) {
          this.#take(dtype, shape, data.byteLength, firstRow + index);
        }
        return;
      case 'bytes':
        if (this.#layout.kind === 'image') await this.#pictures(rows, firstRow);
        else this.#texts(rows.bytes, firstRow);
    }
  }

  /** What all rows become that were added. */
  found(records: number): SurveyedColumn {
    const layout = this.#layout;
    const column = this.#column;
    const itemBytes = this.#itemBytes;
    switch (layout.kind) {
      case 'dense':
        return this.ofRows(records);
      case 'ragged': {
        const { dtype, sizes } = layout;
        return { column, kind: 'ragged', dtype, shape: sizes.length, records, itemBytes };
      }
      case 'text':
        return { column, kind: 'ragged', dtype: 'uint8', shape: 1, records, itemBytes };
      case 'arrays':
      case 'image': {
        const { dtype, shape } = this.#first ?? { dtype: 'uint8', shape: [] };
        return this.#isRagged
          ? { column, kind: 'ragged', dtype, shape: shape.length, records, itemBytes }
          : { column, kind: 'dense', dtype, shape, records, itemBytes };
      }
    }
  }

  #texts(texts: readonly (Uint8Array | null)[], firstRow: number): void {
    for (const [index, text] of texts.entries()) {
      if (text === null)
        throw this.#fault(firstRow + index, 'is null, and containers hold no nulls');
      if (text.length === 0) {
        throw this.#fault(firstRow + index, 'is empty, and a record of a container has an item');
      }
      this.#itemBytes += text.length;
    }
  }

  /** By their headers: nothing is decoded. */
  async #pictures(rows: CheckedRows & { readonly kind: 'bytes' }, firstRow: number): Promise<void> {
    const { pictureForm } = await import('./images.js');
    const { starts, bytes } = rows;
    for (let row = 0; row < rows.rowCount; row += 1) {
      const first = starts?.[row] ?? row;
      const last = starts?.[row + 1] ?? row + 1;
      const picture = bytes[first];
      if (picture === null || picture === undefined) {
        throw this.#fault(firstRow + row, 'there is no picture (null): fill or drop the row');
      }
      const mode = this.#layout.kind === 'image' ? this.#layout.mode : undefined;
      const { dtype, shape, byteLength } = pictureForm(picture, mode, this.#limits, {
        column: this.#column,
        row: firstRow + row,
        name: rows.names?.[first],
      });
      const count = last - first;
      const own = starts === undefined ? shape : [count, ...shape];
      this.#take(dtype, own, byteLength * count, firstRow + row, rows.names?.[first]);
    }
  }

  #take(dtype: string, shape: readonly number[], bytes: number, row: number, name?: string): void {
    this.#first ??= { dtype, shape };
    const first = this.#first;
    if (dtype !== first.dtype || shape.length !== first.shape.length) {
      throw unlikeFirst({ column: this.#column, row, name }, { dtype, shape }, first);
    }
    if (shape.some((size, axis) => size !== first.shape[axis])) this.#isRagged = true;
    this.#itemBytes += bytes;
  }

  #fault(row: number, what: string): LoaderxError {
    return new LoaderxError('SOURCE', `column ${show(this.#column)}, row ${row}: ${what}`, {
      field: this.#column,
      record: row,
    });
  }
}
