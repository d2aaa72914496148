/* The C ABI between the N-API shim and the Zig core: the whole contract, in one breath.
 *
 * - Handles are opaque. A function that fails leaves `*_out` NULL or empty and `target` unspecified.
 * - Memory belongs to the caller unless a line says otherwise; "borrowed" ends with the call.
 * - Every function may be called from any thread. Calls on one store that only read may overlap;
 *   append, publish, rewind and close want a quiescent handle (the facade guarantees it).
 * - Arguments are trusted (the facade validated them). What comes from disk, the operating system
 *   or zstd is never trusted: it is checked in every build mode and answered with a status.
 * - `error` is optional (NULL), belongs to the caller and is written only on failure.
 * - Paths are byte strings with a length, no NUL inside: UTF-8 (WTF-8 on Windows), any bytes on POSIX.
 */
#ifndef LOADERX_ZRECORD_H
#define LOADERX_ZRECORD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ZR_ABI_VERSION 7u
#define ZR_NO_RECORD UINT64_MAX
#define ZR_NO_SHARD UINT32_MAX
#define ZR_NO_PART UINT32_MAX

typedef int32_t zr_status;
enum {
    ZR_OK = 0,
    ZR_OUT_OF_MEMORY = -1,
    ZR_EXISTS = -2,        /* the path is taken */
    ZR_NOT_FOUND = -3,     /* no container at the path */
    ZR_LOCKED = -4,        /* a live writer holds the path */
    ZR_MALFORMED = -5,     /* page, table, location or ragged header is not of the format */
    ZR_IO = -6,            /* the operating system refused; os_code says how */
    ZR_CODEC = -7,         /* zstd refused a frame, or it decodes to another size */
    ZR_OUT_OF_RANGE = -8,  /* a record id is not below the record count */
    ZR_TOO_LARGE = -9,     /* a record over 2 GiB, or a gather over its byte bound */
    ZR_BUILD_FAILED = -10, /* an earlier append of this build failed after it had begun to write */
    ZR_UNEXPECTED = -11,   /* none of the above: a defect of ours */
    ZR_NOT_PUBLISHED = -12,/* a build that was never published */
    ZR_DICTIONARY = -13,   /* dictionary missing, unexpected, unusable, or not trainable */
    ZR_ABORTED = -14,      /* *cancel became non-zero */
    ZR_UNSUPPORTED = -15,  /* the file system lacks something a build needs */
    ZR_INTEGRITY = -16,    /* location or bytes are not those that integrity.zr vouches for */
};

enum { ZR_CODEC_RAW = 0, ZR_CODEC_ZSTD = 1, ZR_CODEC_ZSTD_DICT = 2 };
enum { ZR_FILE_NONE = 0, ZR_FILE_FOLDER = 1, ZR_FILE_META = 2, ZR_FILE_DATA = 3, ZR_FILE_DICT = 4,
       ZR_FILE_INTEGRITY = 5, ZR_FILE_SOURCE = 6 };
enum { ZR_PUBLISH_DURABLE = 1 }; /* sync files, folder and parent before returning */

typedef struct zr_error {
    zr_status status;
    uint32_t file_kind;    /* ZR_FILE_*; with ZR_FILE_DATA, shard_index names the file;
                              ZR_FILE_SOURCE: what records were to be taken from */
    uint32_t shard_index;  /* ZR_NO_SHARD: none */
    uint32_t part_index;   /* of a joined store: whose file and record these are; else ZR_NO_PART */
    uint64_t record_id;    /* ZR_NO_RECORD: none; for ZR_OUT_OF_RANGE the offending id */
    char os_code[24];      /* "ENOSPC"; empty: not from the operating system. NUL-ended */
    char message[256];     /* what was wrong, one UTF-8 sentence without a full stop. NUL-ended */
} zr_error;

typedef struct zr_store zr_store;

/* ---- executor: one lane budget per process ---- */

uint32_t zr_abi_version(void);
/* Lanes that may work at one time: LOADERX_LANES, else max(physical cores, 3/4 of the logical
 * CPUs), both counted within the process's affinity and cgroup quota. At least 1. */
uint32_t zr_executor_lanes(void);
/* Takes effect for the next call; lanes that run finish what they do. 1 .. 1024. */
zr_status zr_executor_set_lanes(uint32_t lane_count, zr_error *error);
/* Runs `run(context)` once on a lane, soon. Never on the calling thread. */
zr_status zr_executor_submit(void (*run)(void *context), void *context, zr_error *error);

/* ---- store: create, append, publish ---- */

typedef struct zr_create_options {
    const uint8_t *path;
    uint64_t path_bytes;
    const uint8_t *schema; /* 1 .. 2040 bytes, opaque here */
    uint64_t schema_bytes;
    const uint8_t *dict;   /* NULL unless codec is ZR_CODEC_ZSTD_DICT; then 1 byte or more */
    uint64_t dict_bytes;
    uint32_t codec;        /* ZR_CODEC_* */
    uint32_t data_shards;  /* 1 .. 255 */
} zr_create_options;

/* Begins a build in the hidden sibling `.NAME.build-RANDOM` of `path`, locked until close. Parents
 * are made. Nothing opens at `path` before zr_store_publish. Options are copied.
 * EXISTS (anything is at path), LOCKED (a live build or reader), DICTIONARY, IO, UNSUPPORTED. */
zr_status zr_store_create(const zr_create_options *options, zr_store **store_out, zr_error *error);

/* Appends `record_count` (>= 1) records that lie back to back in `records`. With `ends` NULL each
 * has `record_bytes`; else record i ends at ends[i] (ascending, ends[-1] is 0) and `record_bytes`
 * is ignored. Every record has 1 .. 2^31 bytes. Borrows its arguments. All or nothing: a failure
 * leaves the record count as it was and poisons the build (BUILD_FAILED from then on). */
zr_status zr_store_append(zr_store *store, const uint8_t *records, const uint64_t *ends,
                          uint64_t record_count, uint64_t record_bytes, zr_error *error);

/* As zr_store_append, of records that lie in two pieces, for a raw build (else UNSUPPORTED): record i is
 * `header_bytes` of `headers` from i * header_bytes on, and then the bytes from rests[i] on. ends[i] is where
 * it would end, were all records back to back; its rest has a byte or more. */
zr_status zr_store_append_pieces(zr_store *store, const uint8_t *headers, uint64_t header_bytes,
                                 const uint8_t *const *rests, const uint64_t *ends,
                                 uint64_t record_count, zr_error *error);

/* Appends `record_count` (>= 1) records of `record_bytes` (1 .. 2^31) each that lie back to back in a
 * plain file, from byte `offset_bytes` on: lanes copy them from file to file. The codec of the build is
 * ZR_CODEC_RAW. The files become those of zr_store_append of the same records, and a failure is what it
 * is there. With ZR_FILE_SOURCE: NOT_FOUND, IO, MALFORMED (no plain file, or too short). */
zr_status zr_store_append_file(zr_store *store, const uint8_t *path, uint64_t path_bytes,
                               uint64_t offset_bytes, uint64_t record_bytes,
                               uint64_t record_count, zr_error *error);

/* Forgets records: back to an earlier record count's state as saved by zr_store_mark (one slot).
 * For a facade that feeds one logical append in several calls and finds a bad argument midway. */
void zr_store_mark(zr_store *store);
void zr_store_rewind(zr_store *store);

/* Makes the build complete and moves it to its path in one atomic step that never replaces. With
 * `integrity` (1 byte or more, else NULL) the container has these bytes in integrity.zr.
 * EXISTS, BUILD_FAILED, IO. On failure nothing is at the path (unless somebody else put it there). */
zr_status zr_store_publish(zr_store *store, uint32_t flags, const uint8_t *integrity,
                           uint64_t integrity_bytes, zr_error *error);

/* ---- store: open, read ---- */

/* LOADERX_MAP=0 in the environment: files are read by calls, never through maps. */

/* Takes a shared lock, then checks page, tails, file sizes, dictionary. The schema is the caller's
 * to judge. NOT_FOUND, NOT_PUBLISHED, LOCKED, MALFORMED, DICTIONARY, IO. */
zr_status zr_store_open(const uint8_t *path, uint64_t path_bytes, zr_store **store_out, zr_error *error);

typedef struct zr_store_info {
    uint64_t record_count;  /* committed so far, for a build */
    uint64_t stored_bytes;  /* sum of the tails: payload bytes in the data files */
    uint64_t dict_bytes;
    const uint8_t *schema;  /* borrowed until close */
    uint32_t schema_bytes;
    uint32_t codec;
    uint32_t data_shards;
    uint32_t reserved;
} zr_store_info;
void zr_store_get_info(const zr_store *store, zr_store_info *info_out);

/* Several readers as one: the records of `members` (>= 1, none joined or a build) one after the other.
 * Their records are of one kind; `dim_bytes` is that of each ragged member and `ndim` that of all, else
 * 0; sizes are told as the first member counts them. Members stay open as long as the joined store,
 * whoever closes them. It takes gathers, zr_store_logical_bytes,
 * zr_store_quick_bytes, zr_store_get_info and zr_store_close, nothing else. TOO_LARGE */
zr_status zr_store_join(zr_store *const *members, const uint8_t *dim_bytes, uint64_t member_count,
                        uint32_t ndim, zr_store **store_out, zr_error *error);

/* Record ids[i] lands at target + i * record_bytes. `target` holds id_count * record_bytes.
 * `cancel` may be NULL; lanes look at it between records. OUT_OF_RANGE MALFORMED IO CODEC ABORTED */
zr_status zr_store_gather_fixed(zr_store *store, const uint64_t *ids, uint64_t id_count,
                                uint64_t record_bytes, uint8_t *target, const uint32_t *cancel,
                                zr_error *error);

/* Ragged records: `ndim` dimensions of `dim_bytes` (4 or 8) each, then the items. */
typedef struct zr_ragged_geometry {
    uint32_t ndim;       /* 1 .. 64 */
    uint32_t dim_bytes;  /* 4 or 8 */
    uint64_t item_bytes; /* 1 or more */
} zr_ragged_geometry;

/* Asked once, after every location was checked and before any payload is read: memory for the
 * packed items, aligned to 16. `bytes` is the sum of the items or a little more (room to decode in);
 * the items begin at the first byte. Runs on the thread that called zr_store_gather_ragged. NULL: no
 * memory. */
typedef uint8_t *(*zr_alloc)(void *context, uint64_t bytes);

/* Packs the records' items back to back: record i's items are at payload + offsets[i], offsets in
 * bytes, id_count + 1 of them; its dimensions are dims[i * ndim ...]. A total above
 * `payload_bytes_max` is TOO_LARGE before any allocation. Errors as gather_fixed. */
zr_status zr_store_gather_ragged(zr_store *store, const uint64_t *ids, uint64_t id_count,
                                 const zr_ragged_geometry *geometry, uint64_t payload_bytes_max,
                                 zr_alloc alloc, void *alloc_context, uint64_t *offsets_out,
                                 uint64_t *dims_out, const uint32_t *cancel, zr_error *error);

/* Each record's size after decoding, dimensions included, without reading a payload. */
zr_status zr_store_logical_bytes(zr_store *store, const uint64_t *ids, uint64_t id_count,
                                 uint64_t *bytes_out, const uint32_t *cancel, zr_error *error);

/* Up to how many bytes of records a gather may be done on a thread that must not wait: it takes some
 * tens of microseconds, and all of the container was in memory lately. 0: none. */
uint64_t zr_store_quick_bytes(const zr_store *store);

/* ---- store: check. Builds too, while nothing is appended ---- */

enum { ZR_PAGE_BYTES = 4096, ZR_BLOCK_RECORDS = 4096 };

/* The first 4096 bytes of meta.zr: of a reader as they are on disk now, of a build as it would be
 * published. MALFORMED IO */
zr_status zr_store_page(const zr_store *store, uint8_t *page_out, zr_error *error);

/* Records are taken in blocks of ZR_BLOCK_RECORDS. A block of n has n + 1 words: one for its part of
 * the location table, then one for the location and stored bytes of each record. */
enum { ZR_WORDS_NONE = 0, ZR_WORDS_COMPARE = 1, ZR_WORDS_MAKE = 2 };

/* Readers only: from now on each gathered record is held against its word (INTEGRITY). `words` are
 * those of all blocks, and are copied. Wants a quiescent handle. */
zr_status zr_store_expect(zr_store *store, const uint64_t *words, uint64_t word_count, zr_error *error);

typedef struct zr_check_options {
    uint64_t first;        /* first + count is at most the record count */
    uint64_t count;
    uint64_t record_bytes; /* of dense records */
    const zr_ragged_geometry *geometry; /* of ragged records, else NULL */
    uint64_t *words;       /* of the blocks that hold the range, from the block of `first`; or NULL */
    const uint8_t *skip;   /* bit i % 8 of byte i / 8: record first + i is left out; NULL: none is.
                              Not with ZR_WORDS_MAKE */
    uint32_t words_use;    /* ZR_WORDS_*: words are compared, or written (a block's first word with
                              the block's first record) */
    uint32_t reserved;
} zr_check_options;

/* Looks at each record as a gather would, all of them: a fault does not end it. The faults with the
 * lowest record ids go to `faults_out`, ascending, at most `faults_max`; their whole number to
 * `fault_count_out`. Borrows its arguments. ABORTED, OUT_OF_MEMORY; a fault is no failure. */
zr_status zr_store_check_records(zr_store *store, const zr_check_options *options,
                                 zr_error *faults_out, uint64_t faults_max,
                                 uint64_t *fault_count_out, const uint32_t *cancel, zr_error *error);

/* Looks at all locations together. A record that lies over another is a fault, and its bit in
 * `over_out` is set (a bit for each record, in whole bytes, zero before). `unused_out`, one for each
 * shard: bytes below its tail that no record names. Faults and failures as above; MALFORMED and IO
 * where the table cannot be read. */
zr_status zr_store_check_layout(zr_store *store, uint8_t *over_out, uint64_t *unused_out,
                                zr_error *faults_out, uint64_t faults_max,
                                uint64_t *fault_count_out, const uint32_t *cancel, zr_error *error);

/* Readers are released, once no joined store has them any more; a build that was not published is
 * discarded. NULL is a no-op. */
void zr_store_close(zr_store *store);

/* ---- memory that outlives a call: any thread ---- */

typedef struct zr_buffer {
    uint8_t *data; /* aligned to 64 */
    uint64_t data_bytes;
} zr_buffer;
zr_status zr_buffer_alloc(uint64_t data_bytes, zr_buffer *buffer_out);
void zr_buffer_free(zr_buffer buffer);
/* For memory that nobody has touched yet: a page fault for each 2 MiB instead of each 4 KiB, where
 * the system can. Contents stay. */
void zr_memory_prefer_large_pages(uint8_t *data, uint64_t data_bytes);

/* ---- padding ---- */

typedef struct zr_pad_request {
    const uint8_t *values; /* the items of all records, back to back */
    uint64_t values_bytes;
    const uint64_t *dims;  /* record_count * ndim */
    uint64_t record_count;
    const uint64_t *sizes; /* the padded size of each axis, none below that axis of any record */
    const uint8_t *item;   /* what fills the gaps */
    uint64_t item_bytes;   /* 1 or more */
    uint8_t *target;       /* record_count * product of sizes items; every byte is written */
    uint64_t target_bytes;
    uint8_t *mask;         /* a byte for each item of target: 1 a record's own, 0 filled */
    uint64_t mask_bytes;
    uint32_t ndim;         /* 1 .. 255 */
    uint32_t reserved;
} zr_pad_request;

/* Ragged records to one dense array. OUT_OF_RANGE: the parts do not fit each other. */
zr_status zr_pad(const zr_pad_request *request, zr_error *error);

/* ---- dictionary training ---- */

/* Samples lie back to back, sample i has sample_bytes[i] (>= 1). At most dict_bytes_max bytes are
 * written to dict_out. DICTIONARY: too few samples or too little data, with what is needed. */
zr_status zr_dict_train(const uint8_t *samples, const uint64_t *sample_bytes, uint64_t sample_count,
                        uint8_t *dict_out, uint64_t dict_bytes_max, uint64_t *dict_bytes_out,
                        zr_error *error);

/* ---- frames of other files ---- */

/* The zstd frames in source, decompressed into target; how many bytes of it they filled. CODEC: damaged, cut, or
 * longer than target. source_bytes and target_bytes are 1 or more. */
zr_status zr_frame_decompress(const uint8_t *source, uint64_t source_bytes, uint8_t *target,
                              uint64_t target_bytes, uint64_t *written_out, zr_error *error);

/* ---- sampler: which ids a step takes, a pure function of (options, step) ---- */

enum { ZS_SEQUENTIAL = 0, ZS_IID = 1, ZS_CYCLIC = 2 };
enum { ZS_STREAM_2_4 = 24, ZS_STREAM_2_8 = 28 };

typedef struct zs_options {
    uint64_t length;     /* 1 or more */
    uint64_t batch_size; /* 1 or more */
    uint64_t seed;
    uint32_t mode;       /* ZS_SEQUENTIAL, ZS_IID, ZS_CYCLIC */
    uint32_t stream;     /* ZS_STREAM_2_4, ZS_STREAM_2_8: differ in iid and in far sequential steps */
} zs_options;

typedef struct zs_sampler zs_sampler;
zr_status zs_sampler_create(const zs_options *options, zs_sampler **sampler_out, zr_error *error);
/* batch_size, but min(batch_size, length) for cyclic: what a draw writes. */
uint64_t zs_sampler_batch(const zs_sampler *sampler);
/* The step the next draw takes. */
uint64_t zs_sampler_step(const zs_sampler *sampler);
/* Writes zs_sampler_batch ids. The handle keeps a position: one owner at a time. OUT_OF_RANGE:
 * stream 2.8 past step 2^64-1. */
zr_status zs_sampler_draw(zs_sampler *sampler, uint64_t *ids_out, zr_error *error);
/* Constant time, except iid of stream 2.4: linear in step * batch_size; then off the event loop,
 * given up with ABORTED (position unchanged) when *cancel becomes non-zero. */
zr_status zs_sampler_seek(zs_sampler *sampler, uint64_t step, const uint32_t *cancel, zr_error *error);
void zs_sampler_destroy(zs_sampler *sampler);

#ifdef __cplusplus
}
#endif
#endif
