/* Says how large the largest single allocation was: a library to be loaded before all others
 * (LD_PRELOAD), for glibc. Whoever is watched asks for memory as ever; the largest size that was asked
 * for since somebody wrote a zero there stands in the first 8 bytes of the file LOADERX_ALLOCATIONS.
 *
 * A refused request counts too: memory that a hostile file talked somebody into asking for is the
 * fault, whether or not it was there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

/* Before the file is there, sizes go here and nobody looks. */
static _Atomic uint64_t nowhere;
static _Atomic uint64_t *largest = &nowhere;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LOADERX_ALLOCATIONS");
    if (path == NULL) return;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) abort();
    if (ftruncate(file, 4096) != 0) abort();
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) abort();
    close(file);
    largest = page;
}

static void note(size_t bytes) {
    uint64_t before = atomic_load_explicit(largest, memory_order_relaxed);
    while (bytes > before && !atomic_compare_exchange_weak_explicit(
                                 largest, &before, bytes, memory_order_relaxed, memory_order_relaxed)) {
    }
}

void *malloc(size_t bytes) {
    note(bytes);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    size_t product;
    note(__builtin_mul_overflow(count, bytes, &product) ? SIZE_MAX : product);
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes) {
    note(bytes);
    return __libc_realloc(block, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    note(bytes);
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    note(bytes);
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes) {
    note(bytes);
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
    void *made = __libc_memalign(alignment, bytes);
    if (made == NULL) return ENOMEM;
    *block = made;
    return 0;
}
