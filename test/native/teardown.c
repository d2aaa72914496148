/* Stores made, read on lanes and let go in odd orders, over zrecord.h alone: for valgrind and
 * sanitizers, which see what is read too far, used too late or never given back.
 *
 *     teardown FOLDER [ROUNDS]
 *
 * FOLDER is an empty one. Everything that is read is compared with what was written; the program ends
 * with 0 after the line `teardown: N rounds`.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "zrecord.h"

#define RECORDS 600u
#define RECORD_BYTES 96u
#define SHARDS 3u
#define GATHERED 64u
#define JOBS 12u

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "teardown.c:%d: not so: %s\n", __LINE__, #condition);        \
            abort();                                                                     \
        }                                                                                \
    } while (0)
#define CHECK_OK(call) check_ok(call, &fault, __LINE__)

static void check_ok(zr_status status, const zr_error *fault, int line) {
    if (status == ZR_OK) return;
    fprintf(stderr, "teardown.c:%d: status %d: %s\n", line, status, fault->message);
    abort();
}

static const char *folder;
static uint8_t dictionary[4096];
static uint64_t dictionary_bytes;

static uint8_t byte_of(uint64_t record, uint64_t at) {
    return (uint8_t)(at % 3 == 0 ? record * 31 + at : "the same words again "[(at + record) % 21]);
}

/* A ragged record: one dimension of 8 bytes, then its items. */
static uint64_t ragged_items(uint64_t record) { return 1 + record % 90; }

static uint64_t path_of(char *path, const char *name) {
    return (uint64_t)snprintf(path, 512, "%s/%s", folder, name);
}

static void train(void) {
    static uint8_t samples[400 * 64];
    static uint64_t sizes[400];
    zr_error fault;
    for (uint64_t sample = 0; sample < 400; sample += 1) {
        sizes[sample] = 64;
        for (uint64_t at = 0; at < 64; at += 1) samples[sample * 64 + at] = byte_of(sample % 50, at);
    }
    CHECK_OK(zr_dict_train(samples, sizes, 400, dictionary, sizeof dictionary, &dictionary_bytes, &fault));
    CHECK(zr_dict_train(samples, sizes, 3, dictionary, sizeof dictionary, &dictionary_bytes, &fault) == ZR_DICTIONARY);
    CHECK_OK(zr_dict_train(samples, sizes, 400, dictionary, sizeof dictionary, &dictionary_bytes, &fault));
}

static zr_store *begin(const char *name, uint32_t codec) {
    char path[512];
    zr_error fault;
    zr_store *build = NULL;
    zr_create_options options = {
        .path = (const uint8_t *)path,
        .path_bytes = path_of(path, name),
        .schema = (const uint8_t *)"schema",
        .schema_bytes = 6,
        .dict = codec == ZR_CODEC_ZSTD_DICT ? dictionary : NULL,
        .dict_bytes = codec == ZR_CODEC_ZSTD_DICT ? dictionary_bytes : 0,
        .codec = codec,
        .data_shards = SHARDS,
    };
    CHECK_OK(zr_store_create(&options, &build, &fault));
    return build;
}

static zr_status try_open(const char *name, zr_store **store, zr_error *fault) {
    char path[512];
    uint64_t bytes = path_of(path, name);
    return zr_store_open((const uint8_t *)path, bytes, store, fault);
}

static zr_store *reader_of(const char *name) {
    zr_store *store = NULL;
    zr_error fault;
    CHECK_OK(try_open(name, &store, &fault));
    return store;
}

/* ---- building ---- */

static void append_fixed(zr_store *build, uint64_t first, uint64_t count) {
    zr_error fault;
    uint8_t *records = malloc(count * RECORD_BYTES);
    CHECK(records != NULL);
    for (uint64_t at = 0; at < count * RECORD_BYTES; at += 1) {
        records[at] = byte_of(first + at / RECORD_BYTES, at % RECORD_BYTES);
    }
    CHECK_OK(zr_store_append(build, records, NULL, count, RECORD_BYTES, &fault));
    free(records);
}

static void append_ragged(zr_store *build) {
    zr_error fault;
    uint8_t *records = malloc(RECORDS * (8 + 90));
    uint64_t *ends = malloc(RECORDS * sizeof *ends);
    CHECK(records != NULL && ends != NULL);
    uint64_t at = 0;
    for (uint64_t record = 0; record < RECORDS; record += 1) {
        uint64_t items = ragged_items(record);
        memcpy(records + at, &items, 8);
        for (uint64_t item = 0; item < items; item += 1) records[at + 8 + item] = byte_of(record, item);
        at += 8 + items;
        ends[record] = at;
    }
    CHECK_OK(zr_store_append(build, records, ends, RECORDS, 0, &fault));
    free(records);
    free(ends);
}

static void make(const char *name, uint32_t codec, int is_ragged) {
    zr_error fault;
    zr_store *build = begin(name, codec);
    if (is_ragged) {
        append_ragged(build);
    } else {
        append_fixed(build, 0, RECORDS / 2);
        zr_store_mark(build);
        append_fixed(build, 7, 50);
        zr_store_rewind(build);
        append_fixed(build, RECORDS / 2, RECORDS - RECORDS / 2);
    }
    CHECK_OK(zr_store_publish(build, is_ragged ? ZR_PUBLISH_DURABLE : 0, NULL, 0, &fault));
    zr_store_close(build);
}

/* Builds that end in every other way. */
static void unfinished(const char *taken) {
    zr_error fault;
    zr_store *never = begin("never", ZR_CODEC_ZSTD);
    append_fixed(never, 0, 10);
    zr_store *late = begin("late", ZR_CODEC_RAW);
    append_fixed(late, 0, 1);
    zr_store_close(never);
    char path[512], folder_path[512];
    path_of(path, "late");
    CHECK(snprintf(folder_path, sizeof folder_path, "%s", path) > 0);
    /* Somebody else takes the path meanwhile. */
    FILE *other = fopen(folder_path, "w");
    CHECK(other != NULL);
    fclose(other);
    CHECK(zr_store_publish(late, 0, NULL, 0, &fault) == ZR_EXISTS);
    CHECK(zr_store_publish(late, 0, NULL, 0, &fault) == ZR_BUILD_FAILED);
    zr_store_close(late);
    CHECK(unlink(folder_path) == 0);

    zr_store *none = NULL;
    zr_create_options options = {
        .path = (const uint8_t *)path,
        .path_bytes = path_of(path, taken),
        .schema = (const uint8_t *)"schema",
        .schema_bytes = 6,
        .codec = ZR_CODEC_RAW,
        .data_shards = 1,
    };
    CHECK(zr_store_create(&options, &none, &fault) == ZR_EXISTS && none == NULL);
    options.path_bytes = path_of(path, "bad-dictionary");
    options.codec = ZR_CODEC_ZSTD_DICT;
    options.dict = (const uint8_t *)"\x37\xa4\x30\xec\x01\x00\x00\x00 nonsense";
    options.dict_bytes = 17;
    CHECK(zr_store_create(&options, &none, &fault) == ZR_DICTIONARY && none == NULL);
    CHECK(try_open("never", &none, &fault) == ZR_NOT_FOUND && none == NULL);
    zr_store_close(NULL);
}

/* ---- reading on lanes ---- */

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned running;
} gate;

typedef struct job {
    zr_store *store;
    gate *gate;
    uint64_t seed;
    uint32_t cancel;
    int is_ragged;
} job;

typedef struct packed {
    uint8_t *bytes;
    int refuse;
} packed;

static uint8_t *alloc_packed(void *context, uint64_t bytes) {
    packed *target = context;
    if (target->refuse) return NULL;
    target->bytes = aligned_alloc(16, (bytes + 15) / 16 * 16);
    return target->bytes;
}

static const zr_ragged_geometry geometry = {.ndim = 1, .dim_bytes = 8, .item_bytes = 1};

static void ids_of(uint64_t seed, uint64_t *ids) {
    for (unsigned at = 0; at < GATHERED; at += 1) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ids[at] = (seed >> 33) % RECORDS;
    }
}

static zr_status gather_fixed(zr_store *store, uint64_t seed, const uint32_t *cancel) {
    uint64_t ids[GATHERED];
    zr_error fault;
    uint8_t *target = malloc(GATHERED * RECORD_BYTES);
    CHECK(target != NULL);
    ids_of(seed, ids);
    zr_status status = zr_store_gather_fixed(store, ids, GATHERED, RECORD_BYTES, target, cancel, &fault);
    for (uint64_t at = 0; status == ZR_OK && at < GATHERED * RECORD_BYTES; at += 1) {
        CHECK(target[at] == byte_of(ids[at / RECORD_BYTES], at % RECORD_BYTES));
    }
    free(target);
    return status;
}

static zr_status gather_ragged(zr_store *store, uint64_t seed, const uint32_t *cancel) {
    uint64_t ids[GATHERED], offsets[GATHERED + 1], dims[GATHERED];
    zr_error fault;
    packed target = {NULL, 0};
    ids_of(seed, ids);
    zr_status status = zr_store_gather_ragged(store, ids, GATHERED, &geometry, 1 << 20, alloc_packed, &target,
                                              offsets, dims, cancel, &fault);
    for (unsigned at = 0; status == ZR_OK && at < GATHERED; at += 1) {
        CHECK(dims[at] == ragged_items(ids[at]) && offsets[at + 1] - offsets[at] == dims[at]);
        for (uint64_t item = 0; item < dims[at]; item += 1) {
            CHECK(target.bytes[offsets[at] + item] == byte_of(ids[at], item));
        }
    }
    free(target.bytes);
    return status;
}

static void run_job(void *context) {
    job *it = context;
    zr_status status = it->is_ragged ? gather_ragged(it->store, it->seed, &it->cancel)
                                     : gather_fixed(it->store, it->seed, &it->cancel);
    CHECK(status == ZR_OK || status == ZR_ABORTED);
    pthread_mutex_lock(&it->gate->mutex);
    it->gate->running -= 1;
    pthread_cond_broadcast(&it->gate->changed);
    pthread_mutex_unlock(&it->gate->mutex);
}

static void submit(job *jobs, unsigned count, gate *gate) {
    zr_error fault;
    for (unsigned index = 0; index < count; index += 1) {
        jobs[index].gate = gate;
        pthread_mutex_lock(&gate->mutex);
        gate->running += 1;
        pthread_mutex_unlock(&gate->mutex);
        CHECK_OK(zr_executor_submit(run_job, &jobs[index], &fault));
    }
}

static void wait_all(gate *gate) {
    pthread_mutex_lock(&gate->mutex);
    while (gate->running > 0) pthread_cond_wait(&gate->changed, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
}

static void read_on_lanes(const char *fixed, const char *ragged, uint64_t round) {
    gate first = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    gate second = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    job jobs[2][JOBS];
    zr_store *readers[4] = {reader_of(fixed), reader_of(ragged), reader_of(fixed), reader_of(ragged)};
    for (unsigned at = 0; at < 2 * JOBS; at += 1) {
        jobs[at / JOBS][at % JOBS] = (job){
            .store = readers[at / JOBS * 2 + at % 2],
            .seed = round * 1000 + at,
            .is_ragged = at % 2,
        };
    }
    submit(jobs[0], JOBS, &first);
    submit(jobs[1], JOBS, &second);
    CHECK(gather_fixed(readers[2], round, NULL) == ZR_OK);
    /* Some are given up while they run, or before. */
    for (unsigned at = 0; at < JOBS; at += 3) __atomic_store_n(&jobs[1][at].cancel, 1, __ATOMIC_RELAXED);
    wait_all(&first);
    /* The first two go while the others are being read. */
    zr_store_close(readers[round % 2]);
    zr_store_close(readers[1 - round % 2]);
    wait_all(&second);
    zr_store_close(readers[3]);
    zr_store_close(readers[2]);
}

/* ---- refusals, checks, and what is not a store ---- */

static void refusals(const char *fixed, const char *ragged) {
    zr_error fault;
    zr_store *store = reader_of(fixed);
    uint64_t ids[2] = {0, RECORDS};
    uint8_t target[2 * RECORD_BYTES];
    uint32_t cancel = 1;
    CHECK(zr_store_gather_fixed(store, ids, 2, RECORD_BYTES, target, NULL, &fault) == ZR_OUT_OF_RANGE);
    CHECK(fault.record_id == RECORDS);
    CHECK(zr_store_gather_fixed(store, ids, 1, RECORD_BYTES - 1, target, NULL, NULL) == ZR_MALFORMED);
    CHECK(zr_store_gather_fixed(store, ids, 1, RECORD_BYTES, target, &cancel, &fault) == ZR_ABORTED);
    zr_store_close(store);

    store = reader_of(ragged);
    uint64_t offsets[2], dims[1], sizes[1];
    packed none = {NULL, 1};
    CHECK(zr_store_gather_ragged(store, ids, 1, &geometry, 1 << 20, alloc_packed, &none, offsets, dims, NULL, &fault) ==
          ZR_OUT_OF_MEMORY);
    CHECK(zr_store_gather_ragged(store, ids, 1, &geometry, 0, alloc_packed, &none, offsets, dims, NULL, &fault) ==
          ZR_TOO_LARGE);
    CHECK_OK(zr_store_logical_bytes(store, ids, 1, sizes, NULL, &fault));
    CHECK(sizes[0] == 8 + ragged_items(0));
    zr_store_close(store);
}

static void checks(const char *name, int is_ragged) {
    zr_error fault, faults[4];
    zr_store *store = reader_of(name);
    zr_store_info info;
    zr_store_get_info(store, &info);
    CHECK(info.record_count == RECORDS && info.schema_bytes == 6 && memcmp(info.schema, "schema", 6) == 0);
    uint8_t page[ZR_PAGE_BYTES];
    CHECK_OK(zr_store_page(store, page, &fault));
    uint64_t *words = calloc(RECORDS + 1, sizeof *words), count = 0;
    CHECK(words != NULL);
    zr_check_options options = {
        .count = RECORDS,
        .record_bytes = RECORD_BYTES,
        .geometry = is_ragged ? &geometry : NULL,
        .words = words,
        .words_use = ZR_WORDS_MAKE,
    };
    CHECK_OK(zr_store_check_records(store, &options, faults, 4, &count, NULL, &fault));
    CHECK(count == 0);
    CHECK_OK(zr_store_expect(store, words, RECORDS + 1, &fault));
    CHECK((is_ragged ? gather_ragged(store, 5, NULL) : gather_fixed(store, 5, NULL)) == ZR_OK);
    for (unsigned word = 1; word <= RECORDS; word += 1) words[word] ^= 1;
    CHECK_OK(zr_store_expect(store, words, RECORDS + 1, &fault));
    CHECK((is_ragged ? gather_ragged(store, 5, NULL) : gather_fixed(store, 5, NULL)) == ZR_INTEGRITY);
    options.words_use = ZR_WORDS_COMPARE;
    CHECK_OK(zr_store_check_records(store, &options, faults, 4, &count, NULL, &fault));
    CHECK(count == RECORDS && faults[3].record_id == 3);
    uint8_t over[(RECORDS + 7) / 8] = {0};
    uint64_t unused[SHARDS];
    CHECK_OK(zr_store_check_layout(store, over, unused, faults, 4, &count, NULL, &fault));
    CHECK(count == 0 && unused[0] == 0);
    free(words);
    zr_store_close(store);
}

static void overwrite(const char *name, const char *file, long at, uint8_t byte) {
    char path[512], whole[600];
    path_of(path, name);
    snprintf(whole, sizeof whole, "%s/%s", path, file);
    FILE *open = fopen(whole, "r+b");
    CHECK(open != NULL && fseek(open, at, SEEK_SET) == 0 && fputc(byte, open) != EOF);
    CHECK(fclose(open) == 0);
}

/* Refused at every step of opening; then cut under a reader. */
static void damaged(void) {
    zr_error fault;
    zr_store *none = NULL;
    make("damaged", ZR_CODEC_ZSTD_DICT, 0);
    overwrite("damaged", "meta.zr", 12, 1);
    CHECK(try_open("damaged", &none, &fault) == ZR_MALFORMED && none == NULL);
    overwrite("damaged", "meta.zr", 12, 0);
    overwrite("damaged", "dict.zr", 9, 0xff);
    overwrite("damaged", "dict.zr", 10, 0xff);
    CHECK(try_open("damaged", &none, &fault) == ZR_DICTIONARY && none == NULL);

    make("cut", ZR_CODEC_RAW, 0);
    zr_store *reader = reader_of("cut");
    CHECK(gather_fixed(reader, 1, NULL) == ZR_OK);
    char path[600];
    path_of(path, "cut");
    CHECK(strlen(path) < 500);
    strcat(path, "/data_2.zr");
    CHECK(truncate(path, 0) == 0);
    CHECK(gather_fixed(reader, 1, NULL) == ZR_MALFORMED);
    CHECK(gather_fixed(reader, 1, NULL) == ZR_MALFORMED);
    CHECK(try_open("cut", &none, &fault) == ZR_MALFORMED && none == NULL);
    zr_store_close(reader);
}

static void samplers(void) {
    zr_error fault;
    for (uint32_t mode = ZS_SEQUENTIAL; mode <= ZS_CYCLIC; mode += 1) {
        for (uint32_t stream = ZS_STREAM_2_4; stream <= ZS_STREAM_2_8; stream += 4) {
            zs_options options = {.length = 1000, .batch_size = 37, .seed = 42, .mode = mode, .stream = stream};
            zs_sampler *sampler = NULL;
            CHECK_OK(zs_sampler_create(&options, &sampler, &fault));
            uint64_t *ids = malloc(zs_sampler_batch(sampler) * sizeof *ids);
            CHECK(ids != NULL);
            for (int step = 0; step < 40; step += 1) CHECK_OK(zs_sampler_draw(sampler, ids, &fault));
            CHECK(zs_sampler_step(sampler) == 40);
            uint32_t cancel = 0;
            CHECK_OK(zs_sampler_seek(sampler, 3, &cancel, &fault));
            CHECK(zs_sampler_step(sampler) == 3);
            free(ids);
            zs_sampler_destroy(sampler);
        }
    }
    zs_options none = {.length = 0, .batch_size = 1, .seed = 0, .mode = ZS_IID, .stream = ZS_STREAM_2_4};
    zs_sampler *sampler = NULL;
    CHECK(zs_sampler_create(&none, &sampler, &fault) != ZR_OK && sampler == NULL);
    zs_sampler_destroy(NULL);
}

static void buffers(void) {
    zr_buffer kept[8];
    for (unsigned at = 0; at < 8; at += 1) {
        CHECK(zr_buffer_alloc(1 + 4000 * at, &kept[at]) == ZR_OK);
        memset(kept[at].data, 7, kept[at].data_bytes);
    }
    for (unsigned at = 0; at < 8; at += 1) zr_buffer_free(kept[(at * 5 + 3) % 8]);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s FOLDER [ROUNDS]\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10;
    zr_error fault;
    CHECK(zr_abi_version() == ZR_ABI_VERSION);
    train();
    static const char *const fixed[] = {"fixed-raw", "fixed-zstd", "fixed-dict"};
    static const char *const ragged[] = {"ragged-raw", "ragged-zstd", "ragged-dict"};
    for (uint32_t codec = ZR_CODEC_RAW; codec <= ZR_CODEC_ZSTD_DICT; codec += 1) {
        make(fixed[codec], codec, 0);
        make(ragged[codec], codec, 1);
        checks(fixed[codec], 0);
        checks(ragged[codec], 1);
    }
    unfinished(fixed[0]);
    refusals(fixed[0], ragged[2]);
    damaged();
    samplers();
    buffers();
    for (unsigned round = 0; round < rounds; round += 1) {
        CHECK_OK(zr_executor_set_lanes(1 + round % 4, &fault));
        read_on_lanes(fixed[round % 3], ragged[(round / 3) % 3], round);
    }
    printf("teardown: %u rounds\n", rounds);
    return 0;
}
