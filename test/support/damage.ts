// Every kind of damage that a container can have, by name, and what this package does with it.
//
// Two sets of containers go through this one table. A test damages containers of our own writer with
// `damage`; and where the project's shared fixtures lie beside the repository, the containers of the
// same names there, which the original wrote, must come to the same. `recommended` is what the
// fixtures advise a new reader to do; where we do otherwise, `differs` says why.
import { gzipSync } from 'node:zlib';
import type { ErrorCode } from '../../ts/index.js';
import type { BaseName } from './bases.js';
import { bytesOf, type Edit, type Files, type Odd } from './files.mjs';
import {
  blockHeader,
  frame,
  repeatedBlocks,
  skippable,
  storedBlocks,
  storedFrame,
} from './frames.mjs';
import {
  locationAt,
  makeLocation,
  pageBytes,
  readLocation,
  readPage,
  schemaAt,
  tailAt,
  u32,
  u64,
} from './page.mjs';

/** What a record of a damaged container is: as it was, other data without an error, or refused. */
export type Record = 'same' | 'other' | ErrorCode;

/** What comes of a damaged container. */
export type Expected =
  | { readonly open: ErrorCode }
  | {
      readonly open: 'accepts';
      /** Of each record that is not as it was. */
      readonly records: ReadonlyMap<number, Record>;
      /** Of every record. */
      readonly every: Record;
      /** Records, where damage changed their number. */
      readonly length?: number;
    };

export interface Damage {
  readonly name: string;
  readonly base: BaseName;
  readonly what: string;
  readonly edits: (files: Files) => readonly Edit[];
  readonly expected: Expected;
  /** What the fixture of this name comes to, where its bytes make another outcome. */
  readonly ofFixture?: Expected;
  /** Opened as this kind; `open()` unless given. */
  readonly openAs?: 'dense' | 'ragged';
  /** Why the fixtures' advice is not followed, or which of two ways it leaves open was taken. */
  readonly differs?: string;
  /** Needs links, pipes or devices, which not every platform has. */
  readonly isPosix?: boolean;
}

// ---- outcomes ----

const refused = (open: ErrorCode): Expected => ({ open });

const reads = (records: Readonly<{ [id: number]: Record }>, length?: number): Expected => ({
  open: 'accepts',
  records: new Map(Object.entries(records).map(([id, record]) => [Number(id), record])),
  every: 'same',
  ...(length === undefined ? {} : { length }),
});

const everyRecord = (every: Record): Expected => ({
  open: 'accepts',
  records: new Map(),
  every,
});

const intact = everyRecord('same');
const malformed = refused('MALFORMED');

// ---- edits ----

const meta = 'meta.zr';

function put(file: string, at: number, bytes: Buffer | string): Edit {
  return { file, at, bytes: typeof bytes === 'string' ? bytes : bytes.toString('hex') };
}

function length(value: bigint): Edit {
  return put(meta, 0, u64(value));
}

function tail(shard: number, value: bigint): Edit {
  return put(meta, tailAt(shard), u64(value));
}

function tailOf(files: Files, shard: number): bigint {
  const found = readPage(bytesOf(files, meta)).tails[shard];
  if (found === undefined) throw new RangeError(`there is no shard ${shard}`);
  return found;
}

function schemaLength(value: number): Edit {
  return put(meta, 8, Buffer.from([value & 0xff, value >> 8]));
}

function schemaOf(files: Files): Buffer {
  return readPage(bytesOf(files, meta)).schema;
}

/** Another schema; the room behind it is cleared. */
function schema(bytes: Buffer): Edit[] {
  const room = Buffer.alloc(pageBytes - schemaAt);
  bytes.copy(room);
  return [schemaLength(bytes.length), put(meta, schemaAt, room)];
}

interface LocationChange {
  readonly offset?: bigint;
  readonly stored?: number;
  readonly logical?: number;
}

/** Fields of a record's location, the others as they are. */
function location(files: Files, id: number, change: LocationChange): Edit {
  const before = readLocation(bytesOf(files, meta), id);
  return put(meta, locationAt(id), makeLocation({ ...before, ...change }));
}

/** The bytes of a record as they are stored. */
function storedOf(files: Files, id: number): Buffer {
  const page = readPage(bytesOf(files, meta));
  const { offset, stored } = readLocation(bytesOf(files, meta), id);
  const data = bytesOf(files, `data_${id % page.dataShards}.zr`);
  return data.subarray(Number(offset), Number(offset) + stored);
}

/** Other stored bytes for a record: behind the tail, which grows; the record's location names them. */
function replaced(files: Files, id: number, stored: Buffer, logical?: number): Edit[] {
  const shard = id % readPage(bytesOf(files, meta)).dataShards;
  const offset = tailOf(files, shard);
  return [
    put(`data_${shard}.zr`, Number(offset), stored),
    tail(shard, offset + BigInt(stored.length)),
    location(files, id, {
      offset,
      stored: stored.length,
      ...(logical === undefined ? {} : { logical }),
    }),
  ];
}

/** A byte of a record's stored bytes. */
function storedByte(files: Files, id: number, at: number, change: (byte: number) => number): Edit {
  const shard = id % readPage(bytesOf(files, meta)).dataShards;
  const { offset } = readLocation(bytesOf(files, meta), id);
  const before = storedOf(files, id)[at];
  if (before === undefined) throw new RangeError(`record ${id} has no byte ${at}`);
  return put(`data_${shard}.zr`, Number(offset) + at, Buffer.from([change(before) & 0xff]));
}

function becomes(file: string, odd: Odd | 'missing'): Edit {
  return { file, becomes: odd };
}

// ---- MsgPack by hand ----

function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([0xa0 | value.length]), Buffer.from(value)]);
}

const hex = (digits: string): Buffer => Buffer.from(digits, 'hex');
const itemShape3 = hex('9103');

interface Fields {
  readonly head?: Buffer;
  readonly dtype?: Buffer;
  readonly ndim?: Buffer;
  readonly itemShape?: Buffer;
}

/** The schema of dense int32 [3] with some of its parts replaced. */
function denseSchema(fields: Fields): Edit[] {
  const {
    head = hex('83'),
    dtype = text('<i4'),
    ndim = hex('01'),
    itemShape = itemShape3,
  } = fields;
  return schema(
    Buffer.concat([head, text('dtype'), dtype, text('ndim'), ndim, text('item_shape'), itemShape]),
  );
}

function schemaCase(
  name: string,
  what: string,
  edits: (files: Files) => readonly Edit[],
  expected: Expected = malformed,
  more: Partial<Damage> = {},
): Damage {
  return { name, base: 'base_dense_raw', what, edits, expected, ...more };
}

function dtypeCase(
  name: string,
  dtype: string,
  expected: Expected,
  more: Partial<Damage> = {},
): Damage {
  const edits = (): Edit[] => denseSchema({ dtype: text(dtype) });
  return schemaCase(name, `dtype ${JSON.stringify(dtype)}`, edits, expected, more);
}

/** A JSON schema in place of the one that is there. */
function jsonCase(name: string, json: string | Buffer, expected: Expected = malformed): Damage {
  const bytes = typeof json === 'string' ? Buffer.from(json) : json;
  return {
    name,
    base: 'base28_dense_raw',
    what: `schema ${bytes.toString('latin1').slice(0, 60)}`,
    edits: () => schema(bytes),
    expected,
  };
}

// ---- ragged records by hand ----

/** Record 0 of a raw ragged container becomes these dimensions and `itemBytes` zero bytes. */
function dimensions(
  name: string,
  what: string,
  dims: readonly bigint[],
  itemBytes: number,
  record: Record = 'MALFORMED',
): Damage {
  return {
    name,
    base: 'base_ragged_raw',
    what,
    edits: (files) => rawRecord(files, Buffer.concat([...dims.map(u64), Buffer.alloc(itemBytes)])),
    expected: reads({ 0: record }),
  };
}

function rawRecord(files: Files, bytes: Buffer): Edit[] {
  return replaced(files, 0, bytes, bytes.length);
}

/** The same in the 2.8 dialect, whose dimensions are u32. */
function dimensions28(
  name: string,
  what: string,
  dims: readonly number[],
  itemBytes: number,
): Damage {
  return {
    name,
    base: 'base28_ragged_raw',
    what,
    edits: (files) => rawRecord(files, Buffer.concat([...dims.map(u32), Buffer.alloc(itemBytes)])),
    expected: reads({ 0: 'MALFORMED' }),
  };
}

// ---- frames by hand ----

/** Record 0 of a zstd container is stored as `make` says, given its bytes. */
function frameCase(
  name: string,
  what: string,
  make: (record: Buffer, stored: Buffer) => Buffer,
  expected: Expected,
  more: Partial<Damage> = {},
): Damage {
  return {
    name,
    base: 'base_dense_zstd40',
    what,
    edits: (files) => replaced(files, 0, make(record40(files), storedOf(files, 0))),
    expected,
    ...more,
  };
}

/** The content of record 0 of `base_dense_zstd40`, as bases.ts makes it. */
function record40(_files: Files): Buffer {
  return Buffer.from(Uint8Array.from({ length: 40 }, (_, index) => (index < 20 ? index : 3)));
}

function editOf(
  name: string,
  base: BaseName,
  what: string,
  edits: (files: Files) => readonly Edit[] | Edit,
  expected: Expected,
  more: Partial<Damage> = {},
): Damage {
  return {
    name,
    base,
    what,
    edits: (files) => {
      const made = edits(files);
      return 'file' in made ? [made] : made;
    },
    expected,
    ...more,
  };
}

const raw = 'base_dense_raw';
const zstd = 'base_dense_zstd';
const zstd40 = 'base_dense_zstd40';
const trained = 'base_dict_trained';
const content = 'base_dict_content';

const pageDamage: readonly Damage[] = [
  editOf('codec_3', raw, 'codec byte 3', () => put(meta, 11, '03'), malformed),
  editOf('codec_255', raw, 'codec byte 255', () => put(meta, 11, 'ff'), malformed),
  editOf(
    'codec_raw_as_zstd',
    raw,
    'raw payloads labelled zstd',
    () => put(meta, 11, '01'),
    everyRecord('CODEC'),
  ),
  editOf(
    'codec_zstd_as_raw',
    zstd,
    'zstd payloads labelled raw',
    () => put(meta, 11, '00'),
    everyRecord('MALFORMED'),
  ),
  editOf(
    'codec_zstd_as_dict',
    zstd,
    'the codec says dictionary and there is none',
    () => put(meta, 11, '02'),
    refused('DICTIONARY'),
  ),
  editOf(
    'codec_dict_as_zstd',
    trained,
    'the codec says zstd and there is a dictionary',
    () => put(meta, 11, '01'),
    refused('DICTIONARY'),
  ),
  ...([0, 2041, 65_535] as const).map((value) =>
    editOf(
      `schema_length_${value}`,
      raw,
      `schema_length ${value}`,
      () => schemaLength(value),
      malformed,
    ),
  ),
  editOf(
    'schema_length_short',
    raw,
    'schema_length one less than the map',
    (files) => schemaLength(schemaOf(files).length - 1),
    malformed,
  ),
  editOf(
    'schema_length_long',
    raw,
    'schema_length one more than the map',
    (files) => schemaLength(schemaOf(files).length + 1),
    malformed,
  ),
  editOf(
    'schema_length_2040',
    raw,
    'schema_length covers all of the padding',
    () => schemaLength(2040),
    malformed,
  ),
  editOf('shards_0', raw, 'data_shards 0', () => put(meta, 10, '00'), malformed),
  editOf('shards_one_more', raw, '3 shards, 2 files', () => put(meta, 10, '03'), malformed),
  editOf('shards_one_less', raw, '1 shard, 2 files', () => put(meta, 10, '01'), malformed),
  editOf('shards_255', raw, '255 shards, 2 files', () => put(meta, 10, 'ff'), malformed),
  ...[0, 1, 2, 3].map((index) =>
    editOf(
      `reserved_${index}`,
      raw,
      `reserved byte ${12 + index} is 1`,
      () => put(meta, 12 + index, '01'),
      malformed,
    ),
  ),
  editOf('length_one_more', raw, 'one record more than the table', () => length(6n), malformed),
  editOf('length_one_less', raw, 'one record less', () => length(4n), reads({}, 4)),
  editOf(
    'length_zero_with_data',
    raw,
    'length 0 with payloads and a table',
    () => length(0n),
    refused('NOT_PUBLISHED'),
    { differs: 'of the two ways, refused: no writer that closed leaves this' },
  ),
  editOf(
    'unpublished_writer',
    raw,
    'what a killed writer of the original leaves',
    () => [length(0n), tail(0, 0n), tail(1, 0n)],
    refused('NOT_PUBLISHED'),
  ),
  ...(
    [
      ['1e12', 10n ** 12n],
      ['2p59', 1n << 59n],
      ['2p60', 1n << 60n],
      ['2p63', 1n << 63n],
      ['max', (1n << 64n) - 1n],
    ] as const
  ).map(([name, value]) =>
    editOf(`length_huge_${name}`, raw, `length ${value}`, () => length(value), malformed),
  ),
  editOf(
    'tail_one_past_file',
    raw,
    'a tail one past the end of its file',
    (files) => tail(0, tailOf(files, 0) + 1n),
    malformed,
  ),
  editOf('tail_2p63', raw, 'a tail of 2^63', () => tail(0, 1n << 63n), malformed),
  editOf('tail_max', raw, 'a tail of 2^64 - 1', () => tail(1, (1n << 64n) - 1n), malformed),
  editOf(
    'tail_one_short',
    raw,
    'a tail one short: its last record crosses it',
    (files) => tail(0, tailOf(files, 0) - 1n),
    reads({ 4: 'MALFORMED' }),
  ),
  editOf(
    'tail_zero',
    raw,
    'a tail of 0 with records in the shard',
    () => tail(0, 0n),
    reads({ 0: 'MALFORMED', 2: 'MALFORMED', 4: 'MALFORMED' }),
  ),
  editOf('tail_unused_slot_2', raw, 'the first unused tail is 1', () => tail(2, 1n), malformed),
  editOf('tail_unused_slot_254', raw, 'the last tail is 1', () => tail(254, 1n), malformed),
  editOf(
    'schema_padding_nonzero',
    raw,
    'garbage behind the schema',
    () => put(meta, 4090, Buffer.from('junk')),
    intact,
  ),
  editOf(
    'meta_big_endian',
    raw,
    'integers of the header byte-swapped',
    () => [put(meta, 0, '0000000000000005001e')],
    malformed,
  ),
];

const fileDamage: readonly Damage[] = [
  ...([0, 15, 4095, 4096] as const).map((bytes) =>
    editOf(
      bytes === 0
        ? 'meta_empty'
        : bytes === 15
          ? 'meta_15_bytes'
          : bytes === 4095
            ? 'meta_4095'
            : 'meta_no_table',
      raw,
      `meta.zr cut to ${bytes} bytes`,
      () => ({ file: meta, truncate: bytes }),
      malformed,
    ),
  ),
  editOf(
    'meta_table_cut',
    raw,
    'the last location cut by a byte',
    (files) => ({ file: meta, truncate: bytesOf(files, meta).length - 1 }),
    malformed,
  ),
  editOf(
    'meta_trailing_16',
    raw,
    'a location too many',
    (files) => put(meta, bytesOf(files, meta).length, Buffer.alloc(16)),
    intact,
  ),
  editOf(
    'meta_trailing_7',
    raw,
    'stray bytes behind the table',
    (files) => put(meta, bytesOf(files, meta).length, Buffer.from('garbage')),
    intact,
  ),
  editOf('meta_missing', raw, 'no meta.zr', () => becomes(meta, 'missing'), refused('NOT_FOUND')),
  editOf('meta_is_dir', raw, 'meta.zr is a folder', () => becomes(meta, 'folder'), malformed),
  editOf(
    'not_a_container',
    raw,
    'a folder of other things',
    () => [
      becomes(meta, 'missing'),
      becomes('data_0.zr', 'missing'),
      becomes('data_1.zr', 'missing'),
      { file: 'notes.txt', content: Buffer.from('hello\n').toString('hex') },
    ],
    refused('NOT_FOUND'),
  ),
  editOf('data_missing', raw, 'no data_1.zr', () => becomes('data_1.zr', 'missing'), malformed),
  editOf(
    'data_cut_1',
    raw,
    'data_0.zr one byte short of its tail',
    (files) => ({ file: 'data_0.zr', truncate: bytesOf(files, 'data_0.zr').length - 1 }),
    malformed,
  ),
  editOf(
    'data_empty',
    raw,
    'data_0.zr empty',
    () => ({ file: 'data_0.zr', truncate: 0 }),
    malformed,
  ),
  editOf(
    'data_trailing',
    raw,
    'bytes behind the tail of data_0.zr',
    (files) => put('data_0.zr', bytesOf(files, 'data_0.zr').length, Buffer.from('trailing')),
    intact,
  ),
  editOf(
    'data_is_dir',
    raw,
    'data_0.zr is a folder',
    () => becomes('data_0.zr', 'folder'),
    malformed,
  ),
  ...(
    [
      ['data_extra_2', 'data_2.zr'],
      ['data_extra_name', 'data_notes.txt'],
      ['data_extra_padded', 'data_00.zr'],
      ['data_extra_bak', 'data_1.zr.bak'],
    ] as const
  ).map(([name, file]) =>
    editOf(name, raw, `a stray ${file}`, () => ({ file, content: '' }), malformed),
  ),
  editOf(
    'data_extra_dir',
    raw,
    'a stray folder data_5.zr',
    () => becomes('data_5.zr', 'folder'),
    malformed,
  ),
  editOf(
    'extra_unrelated',
    raw,
    'a stray notes.txt',
    () => ({ file: 'notes.txt', content: Buffer.from('hi\n').toString('hex') }),
    intact,
  ),
  editOf(
    'data_bit_flip_raw',
    raw,
    'one bit of a raw record',
    (files) => storedByte(files, 0, 0, (byte) => byte ^ 1),
    reads({ 0: 'other' }),
  ),
  ...([meta, 'data_0.zr', 'data_1.zr'] as const).flatMap((file) =>
    (
      [
        ['pipe', malformed],
        ['device', malformed],
        ['loop', refused('IO')],
        ['dangling', file === meta ? refused('NOT_FOUND') : malformed],
      ] as const
    ).map(([odd, expected]) =>
      editOf(
        `${file.split('.')[0]}_is_${odd}`,
        raw,
        `${file} is a ${odd}`,
        () => becomes(file, odd),
        expected,
        { isPosix: true },
      ),
    ),
  ),
  ...(
    [
      ['pipe', 'MALFORMED'],
      ['device', 'MALFORMED'],
      ['loop', 'IO'],
      ['dangling', 'DICTIONARY'],
    ] as const
  ).map(([odd, code]) =>
    editOf(
      `dict_is_${odd}`,
      trained,
      `dict.zr is a ${odd}`,
      () => becomes('dict.zr', odd),
      refused(code),
      { isPosix: true },
    ),
  ),
];

const dictDamage: readonly Damage[] = [
  editOf(
    'dict_missing',
    trained,
    'no dict.zr',
    () => becomes('dict.zr', 'missing'),
    refused('DICTIONARY'),
  ),
  ...(
    [
      ['dict_empty', trained],
      ['dict_empty_content', content],
    ] as const
  ).map(([name, base]) =>
    editOf(
      name,
      base,
      'dict.zr empty',
      () => ({ file: 'dict.zr', truncate: 0 }),
      refused('DICTIONARY'),
    ),
  ),
  editOf(
    'dict_half',
    trained,
    'dict.zr cut in half: some frames now reach other words, which nothing can tell',
    (files) => ({ file: 'dict.zr', truncate: bytesOf(files, 'dict.zr').length >> 1 }),
    reads({ 0: 'other', 1: 'other', 2: 'CODEC', 3: 'CODEC', 4: 'CODEC' }),
    { ofFixture: everyRecord('CODEC') },
  ),
  editOf(
    'dict_first_8',
    trained,
    'magic and id only',
    () => ({ file: 'dict.zr', truncate: 8 }),
    refused('DICTIONARY'),
  ),
  editOf(
    'dict_bad_magic',
    trained,
    'a damaged magic makes it raw content',
    () => put('dict.zr', 0, 'c8'),
    everyRecord('CODEC'),
  ),
  editOf(
    'dict_bad_entropy',
    trained,
    'garbage for entropy tables',
    () => put('dict.zr', 8, Buffer.alloc(64, 0xff)),
    refused('DICTIONARY'),
  ),
  editOf(
    'dict_other',
    trained,
    'another dictionary id',
    (files) => put('dict.zr', 4, Buffer.from([(bytesOf(files, 'dict.zr')[4] ?? 0) ^ 1])),
    everyRecord('CODEC'),
  ),
  editOf(
    'dict_content_cut',
    content,
    'raw content without its first 40 bytes',
    (files) => ({
      file: 'dict.zr',
      content: bytesOf(files, 'dict.zr').subarray(40).toString('hex'),
    }),
    everyRecord('CODEC'),
    { differs: 'refused where frames reach before its beginning, as they do here' },
  ),
  editOf(
    'dict_content_altered',
    content,
    'raw content in capitals',
    (files) => ({
      file: 'dict.zr',
      content: Buffer.from(bytesOf(files, 'dict.zr').toString('latin1').toUpperCase()).toString(
        'hex',
      ),
    }),
    everyRecord('other'),
  ),
  editOf('dict_is_dir', trained, 'a folder', () => becomes('dict.zr', 'folder'), malformed),
  ...(
    [
      ['dict_unexpected_raw', raw, 'something'],
      ['dict_unexpected_zstd', zstd, 'something'],
      ['dict_unexpected_empty', raw, ''],
    ] as const
  ).map(([name, base, bytes]) =>
    editOf(
      name,
      base,
      'a dict.zr that the codec does not use',
      () => ({ file: 'dict.zr', content: Buffer.from(bytes).toString('hex') }),
      refused('DICTIONARY'),
    ),
  ),
  editOf(
    'dict_frame_in_plain',
    zstd,
    'a frame that names a dictionary where there is none',
    (files) =>
      replaced(files, 1, storedFrame(Buffer.alloc(12), { contentSizeBytes: 1, dictionaryId: 7 })),
    reads({ 1: 'CODEC' }),
  ),
  editOf(
    'dict_too_large',
    content,
    'dict.zr of 48 MiB and a byte',
    () => ({ file: 'dict.zr', truncate: 48 * 2 ** 20 + 1 }),
    refused('TOO_LARGE'),
  ),
];

const locationDamage: readonly Damage[] = [
  ...(
    [
      ['loc_offset_past', 'an offset past the tail', { offset: 1000n }],
      ['loc_offset_wrap', 'offset + size wraps past 2^64', { offset: -4n }],
      ['loc_offset_2p63', 'an offset of 2^63', { offset: 1n << 63n }],
      ['loc_phys_0', 'stores 0 bytes', { stored: 0 }],
      ['loc_both_0', 'stores and declares 0 bytes', { stored: 0, logical: 0 }],
      ['loc_all_zero', 'all zeros', { offset: 0n, stored: 0, logical: 0 }],
      ['loc_raw_mismatch', 'declares other bytes than it stores', { logical: 8 }],
      ['loc_dense_narrow', '8 bytes where records have 12', { stored: 8, logical: 8 }],
      ['loc_dense_wide', '24 bytes where records have 12', { stored: 24, logical: 24 }],
      ['loc_stored_max', 'stores 2^32 - 1 bytes', { stored: 2 ** 32 - 1, logical: 2 ** 32 - 1 }],
    ] as const
  ).map(([name, what, change]) =>
    editOf(name, raw, what, (files) => location(files, 1, change), reads({ 1: 'MALFORMED' })),
  ),
  editOf(
    'loc_cross_by_1',
    raw,
    'the last record of a shard one byte on, across the tail',
    (files) => location(files, 4, { offset: readLocation(bytesOf(files, meta), 4).offset + 1n }),
    reads({ 4: 'MALFORMED' }),
  ),
  ...(
    [
      ['loc_logic_0', 0, 'MALFORMED'],
      ['loc_logic_2p31', 2 ** 31, 'CODEC'],
      ['loc_logic_2p31_plus1', 2 ** 31 + 1, 'MALFORMED'],
      ['loc_logic_max', 2 ** 32 - 1, 'MALFORMED'],
      ['loc_zstd_logic_less', 8, 'MALFORMED'],
      ['loc_zstd_logic_more', 16, 'MALFORMED'],
    ] as const
  ).map(([name, logical, record]) =>
    editOf(
      name,
      zstd,
      `declares ${logical} bytes where the frame holds 12`,
      (files) => location(files, 1, { logical }),
      reads({ 1: record }),
    ),
  ),
  ...(
    [
      ['loc_zstd_phys_less', -1],
      ['loc_zstd_phys_more', 1],
    ] as const
  ).map(([name, by]) =>
    editOf(
      name,
      zstd,
      `a stored size ${by > 0 ? 'one too many' : 'one short'}`,
      (files) => location(files, 1, { stored: readLocation(bytesOf(files, meta), 1).stored + by }),
      reads({ 1: 'CODEC' }),
    ),
  ),
  editOf(
    'loc_shifted',
    raw,
    'an offset inside the shard, at other bytes',
    (files) => location(files, 0, { offset: 4n }),
    reads({ 0: 'other' }),
  ),
  editOf(
    'loc_duplicate',
    raw,
    "record 2 at record 0's bytes",
    (files) => location(files, 2, { offset: 0n }),
    reads({ 2: 'other' }),
  ),
];

const frameDamage: readonly Damage[] = [
  editOf(
    'frame_magic',
    zstd40,
    'a damaged magic',
    (files) => storedByte(files, 0, 0, (byte) => byte ^ 0xff),
    reads({ 0: 'CODEC' }),
  ),
  editOf(
    'frame_block_type',
    zstd40,
    'a block of the reserved type',
    (files) => storedByte(files, 0, 6, (byte) => byte | 0x06),
    reads({ 0: 'CODEC' }),
  ),
  editOf(
    'frame_content_size',
    zstd40,
    'a content size of 41',
    (files) => storedByte(files, 0, 5, () => 41),
    reads({ 0: 'CODEC' }),
  ),
  editOf(
    'frame_reserved_bit',
    zstd40,
    'the reserved bit of the descriptor',
    (files) => storedByte(files, 0, 4, (byte) => byte | 0x08),
    reads({ 0: 'CODEC' }),
  ),
  editOf(
    'frame_literal_flip',
    zstd40,
    'one literal changed',
    (files) => storedByte(files, 0, 12, (byte) => byte ^ 0x01),
    reads({ 0: 'other' }),
  ),
  editOf(
    'frame_garbage',
    zstd40,
    'the body written over',
    (files) => [9, 10, 11, 12, 13, 14, 15, 16].map((at) => storedByte(files, 0, at, () => 0xa5)),
    reads({ 0: 'CODEC' }),
  ),
  frameCase(
    'frame_with_checksum',
    'with a right checksum',
    (record) => storedFrame(record, { contentSizeBytes: 1, checksum: true }),
    intact,
  ),
  frameCase(
    'frame_bad_checksum',
    'with a wrong checksum',
    (record) => storedFrame(record, { contentSizeBytes: 1, checksum: 7n }),
    reads({ 0: 'CODEC' }),
  ),
  frameCase(
    'frame_no_content_size',
    'without a content size',
    (record) => frame(storedBlocks(record)),
    intact,
  ),
  frameCase(
    'frame_level_19',
    'not as level 3 makes it: stored blocks',
    (record) => storedFrame(record, { contentSizeBytes: 4 }),
    intact,
  ),
  frameCase(
    'frame_two',
    'two frames that make the record together',
    (record) =>
      Buffer.concat([
        storedFrame(record.subarray(0, 10)),
        frame(storedBlocks(record.subarray(10))),
      ]),
    intact,
  ),
  frameCase(
    'frame_two_too_long',
    'the frame twice',
    (_, stored) => Buffer.concat([stored, stored]),
    reads({ 0: 'CODEC' }),
  ),
  frameCase(
    'frame_skippable_first',
    'a skippable frame before it',
    (_, stored) => Buffer.concat([skippable(Buffer.from('abcd')), stored]),
    intact,
  ),
  frameCase(
    'frame_skippable_last',
    'a skippable frame behind it',
    (_, stored) => Buffer.concat([stored, skippable(Buffer.from('abcd'))]),
    intact,
  ),
  frameCase(
    'frame_empty_last',
    'a frame of nothing behind it',
    (_, stored) => Buffer.concat([stored, storedFrame(Buffer.alloc(0), { contentSizeBytes: 1 })]),
    intact,
  ),
  frameCase(
    'frame_only_skippable',
    'only a skippable frame',
    () => skippable(Buffer.from('abcd')),
    reads({ 0: 'CODEC' }),
  ),
  frameCase(
    'frame_trailing_zero',
    'a zero byte behind it',
    (_, stored) => Buffer.concat([stored, Buffer.alloc(1)]),
    reads({ 0: 'CODEC' }),
  ),
  frameCase(
    'frame_magicless_gzip',
    'a gzip stream',
    (record) => gzipSync(record),
    reads({ 0: 'CODEC' }),
  ),
  frameCase(
    'frame_huge_window',
    'a window of 2 GiB and no content size',
    (record) => frame(storedBlocks(record), { window: 0xa8 }),
    intact,
    { differs: 'of the two ways, read: the window says nothing about memory that is used' },
  ),
  frameCase(
    'frame_window_too_large',
    'a window beyond what zstd knows',
    (record) => frame(storedBlocks(record), { window: 0xff }),
    reads({ 0: 'CODEC' }),
  ),
  frameCase(
    'frame_terabytes',
    'a content size of 2^40',
    (record) => frame(storedBlocks(record), { contentSize: 1n << 40n }),
    reads({ 0: 'CODEC' }),
  ),
  frameCase(
    'frame_repeated',
    'one byte repeated, too often',
    () => frame(repeatedBlocks(3, 41)),
    reads({ 0: 'CODEC' }),
  ),
  frameCase(
    'frame_no_last_block',
    'no last block',
    (record) =>
      frame([blockHeader(0, 40, false), record], { contentSize: 40, contentSizeBytes: 1 }),
    reads({ 0: 'CODEC' }),
  ),
];

const raggedDamage: readonly Damage[] = [
  dimensions('ragged_dims_product_less', 'dims make less than the items', [2n, 2n], 12),
  dimensions('ragged_dims_product_more', 'dims make more than the items', [2n, 4n], 12),
  dimensions('ragged_dims_swapped_ok', 'other dims of the same product', [3n, 2n], 12, 'other'),
  dimensions('ragged_dims_zero_dim', 'a dimension of 0, no items', [0n, 6n], 0),
  dimensions('ragged_dims_zero_dim_payload', 'a dimension of 0 with items', [0n, 6n], 12),
  dimensions('ragged_dims_overflow_wrap', 'a product that wraps to 0', [1n << 63n, 2n], 12),
  dimensions('ragged_dims_overflow_wrap_match', 'it wraps to 6', [(1n << 63n) + 3n, 2n], 12),
  dimensions('ragged_dims_overflow_2p32', 'a product of 2^64', [1n << 32n, 1n << 32n], 12),
  dimensions('ragged_dims_max_dims', 'both 2^64 - 1: it wraps to 1', [-1n, -1n], 2),
  dimensions('ragged_dims_negative_dims', '-2 and -3 as signed', [-2n, -3n], 12),
  dimensions('ragged_dims_odd_payload', 'half an item', [2n, 3n], 11),
  dimensions('ragged_dims_big_dim_zero', 'huge times zero', [1n << 62n, 0n], 0),
  dimensions('ragged_8_bytes', 'one dimension where there are two', [2n], 0),
  dimensions('ragged_header_only', 'dimensions and no items', [2n, 3n], 0),
  editOf(
    'ragged_short_header',
    'base_ragged_raw',
    'shorter than its dimensions',
    (files) => rawRecord(files, Buffer.concat([u64(2n), u64(3n)]).subarray(0, 15)),
    reads({ 0: 'MALFORMED' }),
  ),
  editOf(
    'ragged_zstd_bad_dims',
    'base_ragged_zstd',
    'dimensions in a frame that do not fit',
    (files) => {
      const record = Buffer.concat([u64(9n), u64(9n), Buffer.alloc(12)]);
      return replaced(files, 0, storedFrame(record, { contentSizeBytes: 1 }));
    },
    reads({ 0: 'MALFORMED' }),
  ),
  ...(
    [
      ['ragged_zstd_logic_more', 2],
      ['ragged_zstd_logic_less', -2],
    ] as const
  ).map(([name, by]) =>
    editOf(
      name,
      'base_ragged_zstd',
      `declares ${Math.abs(by)} bytes ${by > 0 ? 'more' : 'less'} than the frame holds`,
      (files) =>
        location(files, 0, { logical: readLocation(bytesOf(files, meta), 0).logical + by }),
      reads({ 0: 'CODEC' }),
    ),
  ),
  editOf(
    'ragged_logic_2gib_claim',
    'base_ragged_zstd',
    'declares 2 GiB for a small frame',
    (files) => location(files, 0, { logical: 2 ** 31 }),
    reads({ 0: 'CODEC' }),
  ),
  ...(
    [
      ['ragged_ndim_1', 1],
      ['ragged_ndim_3', 3],
    ] as const
  ).map(([name, ndim]) =>
    editOf(
      name,
      'base_ragged_raw',
      `the schema says ${ndim} dimensions, records have 2`,
      () => put(meta, schemaAt + 16, Buffer.from([ndim])),
      everyRecord('MALFORMED'),
    ),
  ),
  dimensions28('ragged28_product_less', 'dims make less than the items', [2, 2], 12),
  dimensions28('ragged28_wrap', 'a product of 2^62 and more', [2 ** 31, 2 ** 31], 12),
  dimensions28('ragged28_wrap_32', 'it wraps to 6 in 32 bits', [2 ** 31 + 3, 2], 12),
  dimensions28('ragged28_u64_header', 'dimensions as the 2.4 dialect has them', [2, 0, 3, 0], 12),
  dimensions28('ragged28_zero', 'a dimension of 0', [0, 6], 12),
];

const openDamage: readonly Damage[] = [
  editOf('open_dense_as_ragged', raw, 'dense, opened as ragged', () => [], refused('SCHEMA'), {
    openAs: 'ragged',
  }),
  editOf(
    'open_ragged_as_dense',
    'base_ragged_raw',
    'ragged, opened as dense',
    () => [],
    refused('SCHEMA'),
    { openAs: 'dense' },
  ),
];

const schemaDamage: readonly Damage[] = [
  schemaCase('schema_array', 'an array', () =>
    schema(Buffer.concat([hex('93'), text('<i4'), hex('01'), itemShape3])),
  ),
  schemaCase('schema_nil', 'nil', () => schema(hex('c0'))),
  schemaCase('schema_empty_map', 'an empty map', () => schema(hex('80'))),
  schemaCase('schema_garbage', 'no MsgPack', () => schema(hex('c1c1c1'))),
  schemaCase('schema_json', 'JSON of neither dialect', () =>
    schema(Buffer.from('{"dtype":"<i4","ndim":1,"item_shape":[3]}')),
  ),
  schemaCase('schema_two_objects', 'two objects', (files) =>
    schema(Buffer.concat([schemaOf(files), hex('c0')])),
  ),
  schemaCase('schema_extra_field', 'an extra field', (files) =>
    schema(Buffer.concat([hex('84'), schemaOf(files).subarray(1), text('user'), text('x')])),
  ),
  schemaCase('schema_no_dtype', 'no dtype', () =>
    schema(Buffer.concat([hex('82'), text('ndim'), hex('01'), text('item_shape'), itemShape3])),
  ),
  schemaCase('schema_no_ndim', 'no ndim', () =>
    schema(Buffer.concat([hex('82'), text('dtype'), text('<i4'), text('item_shape'), itemShape3])),
  ),
  schemaCase(
    'schema_no_item_shape',
    'no item_shape: now it is ragged',
    () => schema(Buffer.concat([hex('82'), text('dtype'), text('<i4'), text('ndim'), hex('01')])),
    refused('SCHEMA'),
    { openAs: 'dense' },
  ),
  schemaCase(
    'schema_other_order',
    'fields in another order',
    () =>
      schema(
        Buffer.concat([
          ...[hex('83'), text('item_shape'), itemShape3, text('ndim'), hex('01')],
          ...[text('dtype'), text('<i4')],
        ]),
      ),
    intact,
  ),
  schemaCase('schema_duplicate_key', 'dtype twice', (files) =>
    schema(Buffer.concat([hex('84'), text('dtype'), text('zz'), schemaOf(files).subarray(1)])),
  ),
  schemaCase('schema_duplicate_of_three', 'dtype twice, ndim missing', () =>
    schema(
      Buffer.concat([
        ...[hex('83'), text('dtype'), text('<i4'), text('dtype'), text('<i4')],
        ...[text('item_shape'), itemShape3],
      ]),
    ),
  ),
  schemaCase('schema_bin_keys', 'keys of bytes', () =>
    schema(
      Buffer.concat([
        ...[hex('83c405'), Buffer.from('dtype'), text('<i4'), hex('c404'), Buffer.from('ndim')],
        ...[hex('01c40a'), Buffer.from('item_shape'), itemShape3],
      ]),
    ),
  ),
  schemaCase('schema_int_keys', 'a number for a key', () =>
    schema(
      Buffer.concat([
        ...[hex('83'), text('dtype'), text('<i4'), text('ndim'), hex('01'), hex('03'), itemShape3],
      ]),
    ),
  ),
  schemaCase(
    'schema_wide_ints',
    'wider integers than needed',
    () => denseSchema({ ndim: hex('cd0001'), itemShape: hex('91cf0000000000000003') }),
    intact,
  ),
  schemaCase(
    'schema_signed_ints',
    'signed integers',
    () => denseSchema({ ndim: hex('d001'), itemShape: hex('91d003') }),
    intact,
  ),
  schemaCase(
    'schema_str8',
    'long text headers',
    () =>
      schema(
        Buffer.concat([
          ...[hex('83d905'), Buffer.from('dtype'), hex('d903'), Buffer.from('<i4'), hex('d904')],
          ...[Buffer.from('ndim'), hex('01d90a'), Buffer.from('item_shape'), itemShape3],
        ]),
      ),
    intact,
  ),
  schemaCase(
    'schema_map16',
    'long map and array headers',
    () => denseSchema({ head: hex('de0003'), itemShape: hex('dc000103') }),
    intact,
  ),
  schemaCase('schema_map32', 'a map of 2^32 - 1', () => denseSchema({ head: hex('dfffffffff') })),
  schemaCase('schema_array32', 'a list of 2^32 - 1', () =>
    denseSchema({ itemShape: hex('ddffffffff03') }),
  ),
  schemaCase('schema_str32', 'a text of 2^32 - 1', () =>
    denseSchema({ dtype: hex('dbffffffff3c') }),
  ),
  schemaCase('schema_proto_key', 'a key of __proto__', () =>
    schema(
      Buffer.concat([
        ...[hex('83'), text('__proto__'), text('<i4'), text('ndim'), hex('01')],
        ...[text('item_shape'), itemShape3],
      ]),
    ),
  ),
  schemaCase('schema_dtype_int', 'dtype 4', () => denseSchema({ dtype: hex('04') })),
  schemaCase('schema_dtype_bin', 'dtype of bytes', () => denseSchema({ dtype: hex('c4033c6934') })),
  schemaCase('schema_dtype_nil', 'dtype nil', () => denseSchema({ dtype: hex('c0') })),
  schemaCase('schema_dtype_bad_utf8', 'dtype that is not UTF-8', () =>
    denseSchema({ dtype: hex('a3fffe34') }),
  ),
  dtypeCase('schema_dtype_unknown', 'zz9', malformed),
  dtypeCase('schema_dtype_empty', '', malformed),
  dtypeCase('schema_dtype_object', '|O', refused('UNSUPPORTED')),
  dtypeCase('schema_dtype_struct', 'i4,f4', refused('UNSUPPORTED')),
  dtypeCase('schema_dtype_comma', '<i4,', refused('UNSUPPORTED')),
  dtypeCase('schema_dtype_s0', '|S0', malformed),
  ...(
    [
      ['schema_dtype_alias', 'int32'],
      ['schema_dtype_no_order', 'i4'],
      ['schema_dtype_equal', '=i4'],
      ['schema_dtype_bar', '|i4'],
    ] as const
  ).map(([name, dtype]) =>
    dtypeCase(name, dtype, intact, { differs: 'of the two ways, read, as by the original' }),
  ),
  {
    name: 'schema_dtype_lt_u1',
    base: zstd40,
    what: 'a byte order for one-byte items',
    edits: () => [put(meta, schemaAt + 8, '3c')],
    expected: intact,
  },
  dtypeCase('schema_dtype_big', '>i4', intact),
  dtypeCase('schema_dtype_same_width', '<f4', intact),
  dtypeCase('schema_dtype_width', '<i8', everyRecord('MALFORMED')),
  schemaCase('schema_ndim_bool', 'ndim true', () => denseSchema({ ndim: hex('c3') })),
  schemaCase('schema_ndim_float', 'ndim 1.0', () =>
    denseSchema({ ndim: hex('cb3ff0000000000000') }),
  ),
  schemaCase('schema_ndim_str', 'ndim "1"', () => denseSchema({ ndim: hex('a131') })),
  schemaCase('schema_ndim_neg', 'ndim -1', () => denseSchema({ ndim: hex('ff') })),
  schemaCase('schema_ndim_65', 'ndim 65', () => denseSchema({ ndim: hex('41') })),
  schemaCase('schema_ndim_mismatch', 'ndim 2 for one size', () => denseSchema({ ndim: hex('02') })),
  schemaCase('schema_ndim_nil', 'ndim nil', () => denseSchema({ ndim: hex('c0') })),
  schemaCase('schema_shape_int', 'item_shape 3', () => denseSchema({ itemShape: hex('03') })),
  schemaCase('schema_shape_str', 'item_shape "3"', () => denseSchema({ itemShape: hex('a133') })),
  schemaCase('schema_shape_map', 'item_shape a map', () =>
    denseSchema({ itemShape: hex('810301') }),
  ),
  schemaCase('schema_shape_bool', 'a size of true', () => denseSchema({ itemShape: hex('91c3') })),
  schemaCase('schema_shape_neg', 'a size of -3', () => denseSchema({ itemShape: hex('91fd') })),
  schemaCase('schema_shape_zero', 'a size of 0', () => denseSchema({ itemShape: hex('9100') })),
  schemaCase('schema_shape_float', 'a size of 3.0', () =>
    denseSchema({ itemShape: hex('91cb4008000000000000') }),
  ),
  schemaCase('schema_shape_nil', 'item_shape nil', () => denseSchema({ itemShape: hex('c0') })),
  schemaCase('schema_shape_too_wide', 'records of 2^31 + 4 bytes', () =>
    denseSchema({ itemShape: hex('91ce20000001') }),
  ),
  schemaCase(
    'schema_shape_limit',
    'records of 2^31 bytes',
    () => denseSchema({ itemShape: hex('91ce20000000') }),
    everyRecord('MALFORMED'),
  ),
  schemaCase('schema_shape_overflow', 'a product far above 2^64', () =>
    denseSchema({
      ndim: hex('03'),
      itemShape: hex('93cf0000010000000000cf0000010000000000cf0000010000000000'),
    }),
  ),
  schemaCase('schema_shape_wrap', 'a product that wraps', () =>
    denseSchema({ ndim: hex('02'), itemShape: hex('92cfffffffffffffffff03') }),
  ),
  schemaCase('schema_shape_wrap_2p32', 'factors of 2^31 that wrap to 0', () =>
    denseSchema({ ndim: hex('03'), itemShape: hex('93ce80000000ce80000000ce80000000') }),
  ),
  schemaCase(
    'schema_shape_other',
    'a shape of 4 over records of 3',
    () => denseSchema({ itemShape: hex('9104') }),
    everyRecord('MALFORMED'),
  ),
  schemaCase('schema_shape_rank64', '64 dimensions', () =>
    denseSchema({
      ndim: hex('40'),
      itemShape: Buffer.concat([hex('dc0040'), Buffer.alloc(64, 1)]),
    }),
  ),
  schemaCase(
    'schema_scalar_rank0',
    'scalars over records of 12 bytes',
    () => denseSchema({ ndim: hex('00'), itemShape: hex('90') }),
    everyRecord('MALFORMED'),
  ),
  schemaCase('schema_deep', 'a list 1500 deep', () =>
    denseSchema({ itemShape: Buffer.concat([Buffer.alloc(1500, 0x91), hex('03')]) }),
  ),
  schemaCase('schema_ext', 'an extension value', () => denseSchema({ itemShape: hex('d40503') })),
  ...(
    [
      ['ragged_schema_ndim_0', 0],
      ['ragged_schema_ndim_65', 65],
    ] as const
  ).map(([name, ndim]) =>
    editOf(
      name,
      'base_ragged_raw',
      `ragged of ${ndim} dimensions`,
      () => put(meta, schemaAt + 16, Buffer.from([ndim])),
      malformed,
    ),
  ),
  editOf(
    'ragged_schema_extra',
    'base_ragged_raw',
    'ragged with an item_shape of another rank',
    (files) =>
      schema(
        Buffer.concat([hex('83'), schemaOf(files).subarray(1), text('item_shape'), itemShape3]),
      ),
    malformed,
  ),
  editOf(
    'ragged_schema_dtype_width',
    'base_ragged_raw',
    'dtype <u8 over records of <u2',
    () => put(meta, schemaAt + 10, Buffer.from('8')),
    everyRecord('MALFORMED'),
  ),
];

const jsonDamage: readonly Damage[] = [
  jsonCase('json_blanks', '{ "dtype" :  "int32",\n"item_shape"\t: [ 3 ] }\n', intact),
  jsonCase('json_tight', '{"item_shape":[3],"dtype":"int32"}', intact),
  jsonCase('json_escapes', '{"d\\u0074ype": "int\\u00332", "item_shape": [3]}', intact),
  jsonCase('json_trailing', '{"dtype": "int32", "item_shape": [3]} x'),
  jsonCase('json_two', '{"dtype": "int32", "item_shape": [3]}{}'),
  jsonCase('json_cut', '{"dtype": "int32", "item_shape": [3'),
  jsonCase('json_float_size', '{"dtype": "int32", "item_shape": [3.0]}'),
  jsonCase('json_exponent', '{"dtype": "int32", "item_shape": [3e0]}'),
  jsonCase('json_negative', '{"dtype": "int32", "item_shape": [-3]}'),
  jsonCase('json_zero', '{"dtype": "int32", "item_shape": [0]}'),
  jsonCase('json_huge', '{"dtype": "int32", "item_shape": [18446744073709551619]}'),
  jsonCase('json_bool', '{"dtype": "int32", "item_shape": [true]}'),
  jsonCase('json_null', '{"dtype": null, "item_shape": [3]}'),
  jsonCase('json_text_size', '{"dtype": "int32", "item_shape": ["3"]}'),
  jsonCase('json_nested', `{"dtype": "int32", "item_shape": ${'['.repeat(900)}${']'.repeat(900)}}`),
  jsonCase('json_object', '{"dtype": "int32", "item_shape": {"0": 3}}'),
  jsonCase('json_duplicate', '{"dtype": "int8", "dtype": "int32", "item_shape": [3]}'),
  jsonCase('json_extra', '{"dtype": "int32", "item_shape": [3], "ndim": 1}'),
  jsonCase('json_proto', '{"__proto__": "int32", "item_shape": [3]}'),
  jsonCase('json_missing', '{"item_shape": [3]}'),
  jsonCase('json_alias', '{"dtype": "<i4", "item_shape": [3]}'),
  jsonCase('json_unknown', '{"dtype": "float8_e3m4", "item_shape": [3]}'),
  jsonCase('json_bad_utf8', Buffer.from('{"dtype": "int3\xff", "item_shape": [3]}', 'latin1')),
  jsonCase('json_rank_64', `{"dtype": "int32", "item_shape": [${'1, '.repeat(63)}3]}`),
  jsonCase('json_too_wide', '{"dtype": "int32", "item_shape": [536870913]}'),
  jsonCase('json_other_width', '{"dtype": "int64", "item_shape": [3]}', everyRecord('MALFORMED')),
  jsonCase('json_same_width', '{"dtype": "float32", "item_shape": [3]}', intact),
];

/** All damage. Names are unique; those of the shared fixtures are the fixtures' own. */
export const damages: readonly Damage[] = [
  ...pageDamage,
  ...fileDamage,
  ...dictDamage,
  ...locationDamage,
  ...frameDamage,
  ...raggedDamage,
  ...openDamage,
  ...schemaDamage,
  ...jsonDamage,
];
