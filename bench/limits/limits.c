// What this machine can do at most for a batch of records: copies from memory, positional reads, and
// libzstd decoding from memory, by one thread or by several that spin. The batches are those that the
// backends gather; the frames are those of a container, read from its files.
//
//     limits what=copy|stream|pread|zstd threads=N target=kept|fresh|huge seconds=S
//            payload=FILE payload_at=BYTE (record_bytes=N | offsets=FILE offsets_at=BYTE item_bytes=N)
//            plan=FILE plan_at=BYTE batch=N [container=FOLDER dim_bytes=N]
//     limits what=machine seconds=S file=FILE
//     limits what=evict FILE...       drops the files' pages; says how many bytes stayed resident
//
// Prints one JSON line. It is linked with the zstd that the addon is linked with, so that `zstd` is
// the limit of the same build; compiled by gcc from the same sources it is that compiler's.
//
// A batch is cut by bytes into one part per thread for copies and reads; frames, whose cost does not
// follow their size, are taken in blocks of 4 by whoever is free. The caller is the first thread.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#include <zstd.h>

enum { threads_max = 256, shards_max = 255, frames_per_claim = 4 };
static const size_t table_at = 4096, location_bytes = 16;

typedef enum { COPY, STREAM, PREAD, ZSTD } what_t;
typedef enum { KEPT, FRESH, HUGE_PAGES } target_t;

static _Noreturn void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// ---- arguments

static int argument_count;
static char **arguments;

static const char *text_or(const char *name, const char *otherwise) {
    size_t length = strlen(name);
    for (int i = 1; i < argument_count; i++) {
        if (strncmp(arguments[i], name, length) == 0 && arguments[i][length] == '=') {
            return arguments[i] + length + 1;
        }
    }
    return otherwise;
}

static const char *text(const char *name) {
    const char *value = text_or(name, NULL);
    if (value == NULL) fail("%s= is missing", name);
    return value;
}

static double number_or(const char *name, double otherwise) {
    const char *value = text_or(name, NULL);
    if (value == NULL) return otherwise;
    char *end;
    double result = strtod(value, &end);
    if (*value == 0 || *end != 0 || result < 0) fail("%s=%s is no number", name, value);
    return result;
}

static size_t whole(const char *name) {
    double value = number_or(name, -1);
    if (value < 0) fail("%s= is missing", name);
    return (size_t)value;
}

// ---- files

/// The whole file in memory of our own, touched.
static uint8_t *read_file(const char *path, size_t *length) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) fail("cannot open %s", path);
    *length = (size_t)status.st_size;
    uint8_t *bytes = malloc(*length + 1);
    if (bytes == NULL) fail("no memory for %s", path);
    for (size_t at = 0; at < *length;) {
        ssize_t got = pread(file, bytes + at, *length - at, (off_t)at);
        if (got <= 0) fail("cannot read %s", path);
        at += (size_t)got;
    }
    close(file);
    return bytes;
}

// ---- the workload

static what_t what;
static target_t target_kind;
static size_t thread_count, batch_records, batch_count;
static const uint32_t *plan;

static const uint8_t *payload;
static size_t payload_at, record_bytes, item_bytes;
static const int64_t *offsets; // NULL: every record has `record_bytes`
static int payload_file;

static const uint8_t *table, *shard_bytes[shards_max];
static size_t shard_count, dim_bytes;
static const ZSTD_DDict *dictionary;
static ZSTD_DCtx *contexts[threads_max];

static size_t start_of(size_t id) { return offsets ? (size_t)offsets[id] * item_bytes : id * record_bytes; }

/// Bytes that the target needs for a record: with its dimensions where frames are decoded.
static size_t bytes_of(size_t id) {
    if (what != ZSTD) return offsets ? (size_t)(offsets[id + 1] - offsets[id]) * item_bytes : record_bytes;
    uint32_t logical;
    memcpy(&logical, table + id * location_bytes + 12, 4);
    return logical;
}

static void open_container(const char *folder) {
    char path[4096];
    size_t length;
    snprintf(path, sizeof path, "%s/meta.zr", folder);
    uint8_t *page = read_file(path, &length);
    if (length < table_at) fail("%s is too short", path);
    shard_count = page[10];
    table = page + table_at;
    for (size_t shard = 0; shard < shard_count; shard++) {
        snprintf(path, sizeof path, "%s/data_%zu.zr", folder, shard);
        shard_bytes[shard] = read_file(path, &length);
    }
    enum { codec_zstd = 1, codec_zstd_dict = 2 };
    if (page[11] != codec_zstd && page[11] != codec_zstd_dict) fail("%s has no frames", folder);
    if (page[11] == codec_zstd_dict) {
        snprintf(path, sizeof path, "%s/dict.zr", folder);
        uint8_t *bytes = read_file(path, &length);
        dictionary = ZSTD_createDDict(bytes, length);
        if (dictionary == NULL) fail("%s is no dictionary", path);
    }
    for (size_t thread = 0; thread < thread_count; thread++) contexts[thread] = ZSTD_createDCtx();
}

// ---- one batch

static const uint32_t *ids;
static uint8_t *target;
static size_t *places;                       // of each record in the target, and the end
static size_t parts[threads_max + 1];        // records of each thread, for all but frames
static atomic_size_t claimed;

#if defined(__x86_64__)
/// Stores around the cache; a plain copy up to the target's first line and after its last.
static void copy_streaming(uint8_t *to, const uint8_t *from, size_t bytes) {
    size_t head = (size_t)(-(uintptr_t)to & 15);
    if (head > bytes) head = bytes;
    memcpy(to, from, head);
    size_t at = head;
    for (; at + 64 <= bytes; at += 64) {
        __m128i a = _mm_loadu_si128((const __m128i *)(from + at));
        __m128i b = _mm_loadu_si128((const __m128i *)(from + at + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(from + at + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(from + at + 48));
        _mm_stream_si128((__m128i *)(to + at), a);
        _mm_stream_si128((__m128i *)(to + at + 16), b);
        _mm_stream_si128((__m128i *)(to + at + 32), c);
        _mm_stream_si128((__m128i *)(to + at + 48), d);
    }
    memcpy(to + at, from + at, bytes - at);
}
static void end_streaming(void) { _mm_sfence(); }
#else
static void copy_streaming(uint8_t *to, const uint8_t *from, size_t bytes) { memcpy(to, from, bytes); }
static void end_streaming(void) {}
#endif

static void decode(size_t thread, size_t index) {
    size_t id = ids[index];
    uint64_t offset;
    uint32_t stored;
    memcpy(&offset, table + id * location_bytes, 8);
    memcpy(&stored, table + id * location_bytes + 8, 4);
    const uint8_t *frame = shard_bytes[id % shard_count] + offset;
    size_t bytes = places[index + 1] - places[index];
    size_t got = dictionary != NULL
        ? ZSTD_decompress_usingDDict(contexts[thread], target + places[index], bytes, frame, stored, dictionary)
        : ZSTD_decompressDCtx(contexts[thread], target + places[index], bytes, frame, stored);
    if (got != bytes) fail("record %zu does not decode", id);
}

static void work(size_t thread) {
    if (what == ZSTD) {
        for (;;) {
            size_t from = atomic_fetch_add_explicit(&claimed, frames_per_claim, memory_order_relaxed);
            if (from >= batch_records) return;
            size_t to = from + frames_per_claim < batch_records ? from + frames_per_claim : batch_records;
            for (size_t index = from; index < to; index++) decode(thread, index);
        }
    }
    for (size_t index = parts[thread]; index < parts[thread + 1]; index++) {
        size_t start = start_of(ids[index]), bytes = places[index + 1] - places[index];
        uint8_t *to = target + places[index];
        if (what == COPY) {
            memcpy(to, payload + start, bytes);
        } else if (what == STREAM) {
            copy_streaming(to, payload + start, bytes);
        } else if (pread(payload_file, to, bytes, (off_t)(payload_at + start)) != (ssize_t)bytes) {
            fail("short read");
        }
    }
    if (what == STREAM) end_streaming();
}

// ---- threads

static atomic_size_t round_number, done_count;
static atomic_bool is_over;

static inline void pause_a_little(void) {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

static void *helper(void *argument) {
    size_t thread = (size_t)argument, seen = 0;
    for (;;) {
        while (atomic_load_explicit(&round_number, memory_order_acquire) == seen) {
            if (atomic_load_explicit(&is_over, memory_order_relaxed)) return NULL;
            pause_a_little();
        }
        seen++;
        work(thread);
        atomic_fetch_add_explicit(&done_count, 1, memory_order_release);
    }
}

static void perform(void) {
    atomic_store(&claimed, 0);
    atomic_store(&done_count, 0);
    atomic_fetch_add_explicit(&round_number, 1, memory_order_release);
    work(0);
    while (atomic_load_explicit(&done_count, memory_order_acquire) != thread_count - 1) pause_a_little();
}

// ---- measuring

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void plan_batch(size_t number) {
    ids = plan + (number % batch_count) * batch_records;
    for (size_t index = 0; index < batch_records; index++) {
        places[index + 1] = places[index] + bytes_of(ids[index]);
    }
    size_t index = 0;
    for (size_t thread = 0; thread < thread_count; thread++) {
        parts[thread] = index;
        size_t end = places[batch_records] / thread_count * (thread + 1);
        if (thread + 1 == thread_count) end = places[batch_records];
        while (index < batch_records && places[index] < end) index++;
    }
    parts[thread_count] = batch_records;
}

static uint8_t *map_target(size_t bytes, int flags) {
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (memory == MAP_FAILED) fail("no memory for a batch of %zu bytes", bytes);
    return memory;
}

static void measure(double seconds) {
    size_t bytes_max = 0;
    for (size_t number = 0; number < batch_count; number++) {
        size_t bytes = 0;
        for (size_t index = 0; index < batch_records; index++) bytes += bytes_of(plan[number * batch_records + index]);
        if (bytes > bytes_max) bytes_max = bytes;
    }
    places = calloc(batch_records + 1, sizeof *places);
    uint8_t *kept = map_target(bytes_max, MAP_POPULATE);
    pthread_t threads[threads_max];
    for (size_t thread = 1; thread < thread_count; thread++) {
        if (pthread_create(&threads[thread], NULL, helper, (void *)thread) != 0) fail("cannot start a thread");
    }

    size_t capacity = 1024, calls = 0, bytes = 0, number = 0;
    double *times = malloc(capacity * sizeof *times), total = 0;
    for (int is_warm = 0; is_warm <= 1; is_warm++) {
        double wanted = is_warm ? seconds : seconds * 0.2;
        calls = bytes = 0;
        for (total = 0; total < wanted || calls < 5;) {
            plan_batch(number++);
            size_t batch_bytes = places[batch_records];
            double start = now();
            if (target_kind == KEPT) {
                target = kept;
            } else {
                target = map_target(batch_bytes, 0);
#ifdef MADV_HUGEPAGE
                if (target_kind == HUGE_PAGES) madvise(target, batch_bytes, MADV_HUGEPAGE);
#endif
            }
            perform();
            double elapsed = now() - start;
            if (target_kind != KEPT) munmap(target, batch_bytes);
            if (calls == capacity) times = realloc(times, (capacity *= 2) * sizeof *times);
            times[calls++] = elapsed;
            total += elapsed;
            bytes += batch_bytes - batch_records * dim_bytes;
        }
    }
    atomic_store(&is_over, true);
    for (size_t thread = 1; thread < thread_count; thread++) pthread_join(threads[thread], NULL);

    qsort(times, calls, sizeof *times, by_value);
    printf("{\"calls\":%zu,\"records\":%zu,\"bytes\":%zu,\"seconds\":%.6f,\"minMs\":%.6f,\"p50Ms\":%.6f,\"p95Ms\":%.6f,\"meanMs\":%.6f}\n",
        calls, calls * batch_records, bytes, total, times[0] * 1e3, times[calls / 2] * 1e3,
        times[(size_t)((double)(calls - 1) * 0.95)] * 1e3, total / (double)calls * 1e3);
}

// ---- the machine alone

static uint8_t *copy_from, *copy_to;
static size_t copy_bytes, copy_threads;

static void *copy_part(void *argument) {
    size_t part = copy_bytes / copy_threads, at = (size_t)argument * part;
    memcpy(copy_to + at, copy_from + at, part);
    return NULL;
}

/// The best of the rounds: the memory's own speed is what is asked for, not the machine's mood.
static double copy_mib_per_s(size_t count, double seconds) {
    copy_threads = count;
    double best = 0, end = now() + seconds;
    do {
        pthread_t threads[threads_max];
        double start = now();
        for (size_t i = 1; i < count; i++) pthread_create(&threads[i], NULL, copy_part, (void *)i);
        copy_part(NULL);
        for (size_t i = 1; i < count; i++) pthread_join(threads[i], NULL);
        double rate = (double)copy_bytes / 1048576.0 / (now() - start);
        if (rate > best) best = rate;
    } while (now() < end);
    return best;
}

static void measure_machine(double seconds, const char *path) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = online < 1 ? 1 : online > threads_max ? threads_max : (size_t)online;
    copy_bytes = (size_t)256 << 20;
    copy_from = malloc(copy_bytes);
    copy_to = malloc(copy_bytes);
    if (copy_from == NULL || copy_to == NULL) fail("no memory");
    memset(copy_from, 1, copy_bytes);
    memset(copy_to, 2, copy_bytes);
    double one = copy_mib_per_s(1, seconds), all = copy_mib_per_s(count, seconds);

    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0 || status.st_size < 4112) fail("cannot use %s", path);
    char bytes[16];
    size_t reads = 0;
    double start = now();
    while (now() - start < seconds) {
        for (int i = 0; i < 256; i++, reads++) {
            if (pread(file, bytes, 16, (off_t)((reads * 4096) % (size_t)(status.st_size - 16))) != 16) fail("short read");
        }
    }
    double read_ns = (now() - start) / (double)reads * 1e9;

    size_t fault_bytes = (size_t)64 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    double fault_s = 0;
    enum { fault_rounds = 5 };
    for (int i = 0; i < fault_rounds; i++) {
        uint8_t *memory = map_target(fault_bytes, 0);
#ifdef MADV_NOHUGEPAGE
        madvise(memory, fault_bytes, MADV_NOHUGEPAGE);
#endif
        double from = now();
        for (size_t at = 0; at < fault_bytes; at += page) memory[at] = 1;
        fault_s += now() - from;
        munmap(memory, fault_bytes);
    }
    printf("{\"threads\":%zu,\"copyMibPerS\":%.0f,\"copyAllMibPerS\":%.0f,\"read16Ns\":%.0f,\"pageFaultNs\":%.0f}\n",
        count, one, all, read_ns, fault_s / fault_rounds / (double)(fault_bytes / page) * 1e9);
}

// ---- cold files

static size_t resident_bytes(int file, size_t length) {
    if (length == 0) return 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (length + page - 1) / page, resident = 0;
    void *map = mmap(NULL, length, PROT_READ, MAP_SHARED, file, 0);
    unsigned char *states = malloc(pages);
    if (map == MAP_FAILED || states == NULL) fail("cannot map a file");
#if defined(__linux__)
    if (mincore(map, length, states) != 0) fail("mincore fails");
    for (size_t i = 0; i < pages; i++) resident += (states[i] & 1) * page;
#endif
    munmap(map, length);
    free(states);
    return resident;
}

static void evict(void) {
    size_t bytes = 0, left = 0;
    for (int i = 2; i < argument_count; i++) {
        int file = open(arguments[i], O_RDONLY | O_CLOEXEC);
        struct stat status;
        if (file < 0 || fstat(file, &status) != 0) fail("cannot open %s", arguments[i]);
        // Pages that were not written back yet cannot be dropped.
        fsync(file);
#if defined(POSIX_FADV_DONTNEED)
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
#endif
        bytes += (size_t)status.st_size;
        left += resident_bytes(file, (size_t)status.st_size);
        close(file);
    }
    printf("{\"bytes\":%zu,\"residentBytes\":%zu}\n", bytes, left);
}

int main(int count, char **values) {
    argument_count = count;
    arguments = values;
    const char *name = text("what");
    if (strcmp(name, "version") == 0) {
        printf("{\"zstd\":\"%s\",\"compiler\":\"%s\"}\n", ZSTD_versionString(), __VERSION__);
        return 0;
    }
    if (strcmp(name, "evict") == 0) return evict(), 0;
    if (strcmp(name, "machine") == 0) return measure_machine(number_or("seconds", 0.5), text("file")), 0;

    if (strcmp(name, "copy") == 0) what = COPY;
    else if (strcmp(name, "stream") == 0) what = STREAM;
    else if (strcmp(name, "pread") == 0) what = PREAD;
    else if (strcmp(name, "zstd") == 0) what = ZSTD;
    else fail("what=%s is unknown", name);
    const char *kind = text_or("target", "kept");
    if (strcmp(kind, "kept") == 0) target_kind = KEPT;
    else if (strcmp(kind, "fresh") == 0) target_kind = FRESH;
    else if (strcmp(kind, "huge") == 0) target_kind = HUGE_PAGES;
    else fail("target=%s is unknown", kind);
    thread_count = whole("threads");
    if (thread_count < 1 || thread_count > threads_max) fail("threads= is 1 to %d", threads_max);

    size_t length;
    batch_records = whole("batch");
    size_t plan_at = whole("plan_at");
    const uint8_t *plan_bytes = read_file(text("plan"), &length);
    plan = (const uint32_t *)(plan_bytes + plan_at);
    batch_count = (length - plan_at) / 4 / batch_records;
    if (batch_records == 0 || batch_count == 0) fail("the plan is empty");

    if (what == ZSTD) {
        open_container(text("container"));
        dim_bytes = whole("dim_bytes");
    } else {
        payload_at = whole("payload_at");
        if (what == PREAD) payload_file = open(text("payload"), O_RDONLY | O_CLOEXEC);
        else payload = read_file(text("payload"), &length) + payload_at;
        if (payload_file < 0) fail("cannot open %s", text("payload"));
        if (text_or("offsets", NULL) == NULL) {
            record_bytes = whole("record_bytes");
        } else {
            offsets = (const int64_t *)(read_file(text("offsets"), &length) + whole("offsets_at"));
            item_bytes = whole("item_bytes");
        }
    }
    measure(number_or("seconds", 2));
    return 0;
}
