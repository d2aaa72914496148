/**
 * A container begun or opened: path, lock and schema, before anybody cares about records.
 */
import path from 'node:path';
import { ArgumentTypeError, fromNative, LoaderxError, show } from '../errors.js';
import type { StoreHandle, StoreInfo } from '../native/binding.js';
import { native } from '../native/load.js';
import { type Dialect, decodeSchema, dimBytesOf, encodeSchema, type Schema } from '../schema.js';
import type { Codec } from './capability.js';
import { isRegularFile } from './folder.js';
import { Handle } from './handle.js';
import { attachIntegrity, hasIntegrity } from './integrity.js';
import { noContainerError } from './listing.js';
import { type CreateSettings, codecs } from './options.js';
import { type Location, locate } from './path.js';
import { readSetFile, type SetFile, type SetForm } from './set-file.js';

/** Begins a build. Nothing is at the path before it is published. */
export function createStore(location: Location, settings: CreateSettings, schema: Schema): Handle {
  const addon = native();
  const bytes = encodeSchema(schema);
  try {
    const store = addon.storeCreate(
      location.native,
      codecs.indexOf(settings.codec),
      settings.dataShards,
      bytes,
      settings.dict,
    );
    return new Handle(addon, store, location.shown, 'writer');
  } catch (error) {
    throw fromNative(error, location.shown);
  }
}

/** An opened container whose page and schema were checked. */
export interface OpenedStore {
  readonly handle: Handle;
  readonly schema: Schema;
  readonly recordCount: number;
  /** Bytes in the data files. */
  readonly storedBytes: number;
  readonly codec: Codec;
  readonly dataShards: number;
  /** Of a set: what is joined. `codec`, `dataShards` and the schema's dialect are those of the first then. */
  readonly parts?: readonly JoinedPart[];
}

/** A container that is read as one with others. */
export interface JoinedPart {
  /** The container, as it was named, or as its set's file leads to it. */
  readonly path: string;
  /** Records in it. */
  readonly length: number;
  /** How its records are stored. */
  readonly codec: Codec;
  /** Its data files, 1 .. 255. */
  readonly dataShards: number;
  /** Which Python loaderx reads it. */
  readonly dialect: Dialect;
}

/** What is read shall be held against the integrity file: of no container, of all, or of those with one. */
export type Verifying = 'none' | 'all' | 'present';

/** Names the door of a reader to its store, for this package's own rooms. */
export const openedOf = Symbol('loaderx.opened');

/** A reader with this door. */
export interface OpenedReader {
  readonly [openedOf]: OpenedStore;
}

/**
 * Opens a container for reading, or the containers of a set whose file is at the path.
 *
 * @throws LoaderxError NOT_FOUND, NOT_PUBLISHED, LOCKED, MALFORMED, DICTIONARY, IO, UNSUPPORTED; INTEGRITY;
 *   of a set also SCHEMA
 */
export function openStore(path: unknown, verifying: Verifying = 'none'): OpenedStore {
  const location = locate(path);
  try {
    return openContainer(location, verifying);
  } catch (error) {
    const set = isNoFolder(error) ? readSetFile(location.native, location.shown) : undefined;
    if (set === undefined) throw error;
    return openSet(location, set, verifying);
  }
}

/**
 * Opens containers and joins them, in this order. A path of a set's file stands for its parts.
 *
 * @throws as `openStore`; TypeError for what is no list, or empty; LoaderxError SCHEMA for the first that
 *   holds something else than the first of all
 */
export function openParts(paths: unknown, verifying: Verifying = 'none'): OpenedStore {
  const opened = openEach(paths, verifying);
  try {
    assertAlike(opened);
    return joined(opened, nameOf(opened));
  } finally {
    // The joined one keeps their files open.
    for (const { handle } of opened) handle.closeSync();
  }
}

function openEach(paths: unknown, verifying: Verifying): OpenedStore[] {
  if (!Array.isArray(paths) || paths.length === 0) {
    throw new ArgumentTypeError('parts', `parts must be a list of paths, got ${show(paths)}`);
  }
  const opened: OpenedStore[] = [];
  try {
    for (const location of paths.flatMap(partsAt)) opened.push(openContainer(location, verifying));
    return opened;
  } catch (error) {
    for (const { handle } of opened) handle.closeSync();
    throw error;
  }
}

/** The containers that a path stands for: those of a set, where a set's file is there. */
export function partsAt(path: unknown): Location[] {
  const location = locate(path);
  const set = setAt(location);
  if (set === undefined) return [location];
  return set.parts.map((part) => partLocation(location, part.path));
}

/** Throws SCHEMA for the first that holds something else than the first of all. */
export function assertAlike(opened: readonly OpenedStore[]): void {
  const [first] = opened;
  if (first === undefined) return;
  for (const { handle, schema } of opened) {
    const difference = differenceOf(setFormOf(first.schema), setFormOf(schema));
    if (difference === undefined) continue;
    const { field, found, wanted } = difference;
    const text = `holds ${field} ${found}, and ${first.handle.path} ${wanted}`;
    throw schemaError(handle.path, field, text);
  }
}

/** What errors call joined containers that are about none of them alone. */
export function nameOf([first, ...others]: readonly OpenedStore[]): string {
  const name = first?.handle.path ?? '';
  return others.length === 0 ? name : `${name} and ${others.length} more`;
}

/** As `openStore`, for a path that must be a set's file. */
export function openSetStore(path: unknown, verifying: Verifying): OpenedStore {
  const location = locate(path);
  const set = readSetFile(location.native, location.shown);
  if (set === undefined) {
    const reason = 'it is no file of a set; npx loaderx concat makes one';
    throw new LoaderxError('MALFORMED', `${location.shown}: ${reason}`, { path: location.shown });
  }
  return openSet(location, set, verifying);
}

/** The set whose file is at a path; undefined where no such file is. Throws MALFORMED, IO. */
export function setAt(location: Location): SetFile | undefined {
  return isRegularFile(location) ? readSetFile(location.native, location.shown) : undefined;
}

function isNoFolder(error: unknown): boolean {
  return error instanceof LoaderxError && error.code === 'IO' && error.osCode === 'ENOTDIR';
}

/** Where a part of a set is: as it is shown, with the folder of the set's file before it. */
export function partLocation({ native, shown }: Location, part: string): Location {
  const name = path.basename(shown);
  const folder = shown.slice(0, shown.lastIndexOf(name));
  const own = locate(`${folder}${part}`);
  if (typeof native === 'string') return { ...own, native: path.join(path.dirname(native), part) };
  const slash = native.lastIndexOf(0x2f);
  return { ...own, native: Buffer.concat([native.subarray(0, slash + 1), Buffer.from(part)]) };
}

function openSet(location: Location, set: SetFile, verifying: Verifying): OpenedStore {
  const opened: OpenedStore[] = [];
  try {
    for (const { path: part, length, logicalDigest } of set.parts) {
      const one = openContainer(partLocation(location, part), verifying, logicalDigest);
      opened.push(one);
      const at = one.handle.path;
      const difference = differenceOf(set.form, setFormOf(one.schema));
      if (difference !== undefined) {
        const { field, found, wanted } = difference;
        const text = `${at} holds ${field} ${found}, and the set ${wanted}`;
        throw schemaError(location.shown, field, text);
      }
      if (one.recordCount !== length) {
        throw new LoaderxError(
          'MALFORMED',
          `${location.shown}: ${at} has ${one.recordCount} records, and the set says ${length}`,
          { path: location.shown, field: 'length' },
        );
      }
    }
    return joined(opened, location.shown);
  } finally {
    // The joined one keeps their files open.
    for (const { handle } of opened) handle.closeSync();
  }
}

/**
 * Opened containers of one form, none joined itself, as one. Their handles stay what they are, and what is
 * closed of them stays open for this one.
 *
 * @throws LoaderxError OUT_OF_MEMORY; TOO_LARGE over 2^53 - 1 records
 */
export function joined(members: readonly OpenedStore[], shown: string): OpenedStore {
  const [first] = members;
  if (first === undefined) throw new RangeError('nothing to join');
  const addon = native();
  const { schema } = first;
  const isRagged = schema.kind === 'ragged';
  const dimBytes = Uint8Array.from(members, (one) =>
    isRagged ? dimBytesOf(one.schema.dialect) : 0,
  );
  const recordCount = members.reduce((sum, one) => sum + one.recordCount, 0);
  if (!Number.isSafeInteger(recordCount)) {
    throw new LoaderxError('TOO_LARGE', `${shown}: more than 2^53 - 1 records`, { path: shown });
  }
  const parts = members.map(({ handle, recordCount: length, codec, dataShards, schema: own }) => ({
    ...{ path: handle.path, length, codec, dataShards, dialect: own.dialect },
  }));
  const stores: StoreHandle[] = [];
  for (const { handle } of members) handle.call((_, store) => stores.push(store));
  try {
    const store = addon.storeJoin(stores, dimBytes, isRagged ? schema.ndim : 0);
    const paths = parts.map((part) => part.path);
    return {
      handle: new Handle(addon, store, shown, 'reader', paths),
      schema,
      recordCount,
      storedBytes: members.reduce((sum, one) => sum + one.storedBytes, 0),
      codec: first.codec,
      dataShards: first.dataShards,
      parts,
    };
  } catch (error) {
    throw fromNative(error, shown);
  }
}

/** What all containers of a set have in common. */
export function setFormOf(schema: Schema): SetForm {
  const dtype = schema.dtype.name;
  return schema.kind === 'dense'
    ? { kind: 'dense', dtype, itemShape: schema.itemShape }
    : { kind: 'ragged', dtype, ndim: schema.ndim };
}

/** The first thing in which a container differs from what a set holds. */
export function differenceOf(
  wanted: SetForm,
  found: SetForm,
): { readonly field: string; readonly wanted: string; readonly found: string } | undefined {
  for (const field of ['kind', 'dtype', 'itemShape', 'ndim'] as const) {
    const values = [wanted, found].map(
      (form) => (form as Partial<Record<typeof field, unknown>>)[field],
    );
    const [one, other] = values.map((value) => JSON.stringify(value));
    if (one !== other) return { field, wanted: show(values[0]), found: show(values[1]) };
  }
  return undefined;
}

/** As `openStore`, no set. `logicalDigest`: what the integrity file must say, where one is read. */
export function openContainer(
  location: Location,
  verifying: Verifying = 'none',
  logicalDigest?: string,
): OpenedStore {
  const addon = native();
  let handle: Handle;
  try {
    handle = new Handle(addon, addon.storeOpen(location.native), location.shown, 'reader');
  } catch (error) {
    throw noContainerError(fromNative(error, location.shown), location);
  }
  try {
    const opened = described(
      handle,
      handle.call((calls, store) => calls.storeInfo(store)),
    );
    if (verifying === 'all' || (verifying === 'present' && hasIntegrity(location))) {
      attachIntegrity(location, handle, opened.recordCount, logicalDigest);
    }
    return opened;
  } catch (error) {
    handle.closeSync();
    throw error;
  }
}

function described(handle: Handle, info: StoreInfo): OpenedStore {
  const place = { path: handle.path, file: 'meta.zr' };
  const codec = codecs[info.codec];
  if (codec === undefined) {
    throw new LoaderxError('MALFORMED', `${handle.path}: codec ${info.codec} is not known`, {
      ...place,
      field: 'codec',
    });
  }
  const recordCount = Number(info.recordCount);
  if (!Number.isSafeInteger(recordCount)) {
    throw new LoaderxError(
      'MALFORMED',
      `${handle.path}: a length of ${info.recordCount} records is over the limit of 2^53 - 1`,
      { ...place, field: 'length' },
    );
  }
  const schema = decodeSchema(info.schema, place);
  return {
    handle,
    schema,
    recordCount,
    storedBytes: Number(info.storedBytes),
    codec,
    dataShards: info.dataShards,
  };
}

/** Where a container holds something else than the caller expects. */
export function schemaError(path: string, field: string, text: string): LoaderxError {
  return new LoaderxError('SCHEMA', `${path}: ${text}`, { path, field });
}
