/* Does on purpose what must never be done, so that `npm run sanitize` sees that its tools see it.
 *
 *     faulty read      reads a byte behind a block
 *     faulty leak      loses a block
 *     faulty shift     shifts by more than there are bits
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile uint32_t sink;

__attribute__((noinline)) static void lose(void) {
    void *volatile block = malloc(100);
    if (block == NULL) abort();
    memset(block, 1, 100);
    block = NULL;
}

int main(int argc, char **argv) {
    const char *fault = argc > 1 ? argv[1] : "";
    uint8_t *volatile block = malloc(100);
    volatile int bits = 30 + argc;
    if (block == NULL) return 1;
    memset(block, 1, 100);
    if (strcmp(fault, "read") == 0) sink = block[99 + argc - 1];
    if (strcmp(fault, "leak") == 0) lose();
    if (strcmp(fault, "shift") == 0) sink = 1u << bits;
    free(block);
    return 0;
}
