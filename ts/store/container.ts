/**
 * A container begun or opened: path, lock and schema, before anybody cares about records.
 */
import { fromNative, LoaderxError } from '../errors.js';
import type { StoreInfo } from '../native/binding.js';
import { native } from '../native/load.js';
import { decodeSchema, encodeSchema, type Schema } from '../schema.js';
import type { Codec } from './capability.js';
import { Handle } from './handle.js';
import { attachIntegrity } from './integrity.js';
import { type CreateSettings, codecs } from './options.js';
import { type Location, locate } from './path.js';

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
}

/**
 * Opens a container for reading.
 *
 * @param verifies what is read shall be held against the integrity file
 * @throws LoaderxError NOT_FOUND, NOT_PUBLISHED, LOCKED, MALFORMED, DICTIONARY, IO, UNSUPPORTED; INTEGRITY
 */
export function openStore(path: unknown, verifies = false): OpenedStore {
  const location = locate(path);
  const addon = native();
  let handle: Handle;
  try {
    handle = new Handle(addon, addon.storeOpen(location.native), location.shown, 'reader');
  } catch (error) {
    throw fromNative(error, location.shown);
  }
  try {
    const opened = described(
      handle,
      handle.call((calls, store) => calls.storeInfo(store)),
    );
    if (verifies) attachIntegrity(location, handle, opened.recordCount);
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
