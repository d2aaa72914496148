/* Between a fuzzer and the core: loaderx_fuzz of zig-src/fuzz.zig with one input after the other.
 *
 *     driver TARGET FOLDER              AFL++ feeds it (persistent mode)
 *     driver TARGET FOLDER FILE...      each file once, for a look at one input
 *
 * FOLDER is an empty folder that the target may write in. scripts/fuzz.mjs builds and starts this.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void loaderx_fuzz(const char *target, const char *folder, const unsigned char *input, size_t input_bytes);

/* In a block of exactly its size, so that a step past its end is seen. */
static void feed(const char *target, const char *folder, const unsigned char *input, size_t bytes) {
    unsigned char *copy = malloc(bytes > 0 ? bytes : 1);
    if (copy == NULL) abort();
    memcpy(copy, input, bytes);
    loaderx_fuzz(target, folder, copy, bytes);
    free(copy);
}

static void feed_file(const char *target, const char *folder, const char *path) {
    static unsigned char input[1 << 20];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    size_t bytes = fread(input, 1, sizeof input, file);
    fclose(file);
    feed(target, folder, input, bytes);
}

#ifdef __AFL_FUZZ_TESTCASE_LEN
__AFL_FUZZ_INIT();
#endif

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s TARGET FOLDER [FILE...]\n", argv[0]);
        return 2;
    }
    for (int index = 3; index < argc; index += 1) feed_file(argv[1], argv[2], argv[index]);
    if (argc > 3) return 0;
#ifdef __AFL_FUZZ_TESTCASE_LEN
    __AFL_INIT();
    const unsigned char *input = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(100000)) feed(argv[1], argv[2], input, (size_t)__AFL_FUZZ_TESTCASE_LEN);
#endif
    return 0;
}
