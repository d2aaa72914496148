/* Between AFL++ and a target in JavaScript, which runs in a process of Node beside this one.
 *
 *     bridge MAP NODE ARG...        AFL++ feeds it (persistent mode)
 *
 * Node is started once, as `NODE ARG...`. For every input it gets four bytes of length and the input
 * on its file 3, and answers with one byte on its file 4: `o`, all is well, or `x`, a promise does not
 * hold. Before that it writes how often each of its counters was passed into the file MAP, one byte a
 * counter, which are given to AFL++ as if they were counters of this program. No answer for ten
 * seconds is a hang.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than the target has. */
#define COUNTERS 8192
#define ANSWER_MS_MAX 10000

void __sanitizer_cov_trace_pc_guard(uint32_t *place);
void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop);

/* Places in AFL++'s map, as the compiler would have asked for them. */
static uint32_t places[COUNTERS];
__attribute__((constructor)) static void ask_for_places(void) {
    __sanitizer_cov_trace_pc_guard_init(places, places + COUNTERS);
}

static int to_node, from_node;
static pid_t node;

static void start_node(char **command) {
    int there[2], back[2];
    if (pipe(there) != 0 || pipe(back) != 0) abort();
    node = fork();
    if (node < 0) abort();
    if (node == 0) {
        /* Out of the way of the numbers they are to get. */
        int in = fcntl(there[0], F_DUPFD, 50), out = fcntl(back[1], F_DUPFD, 50);
        if (in < 0 || out < 0 || dup2(in, 3) < 0 || dup2(out, 4) < 0) _exit(127);
        for (int file = 5; file < 256; file += 1) close(file);
        execv(command[0], command);
        _exit(127);
    }
    close(there[0]);
    close(back[1]);
    to_node = there[1];
    from_node = back[0];
}

static int send(const void *bytes, size_t count) {
    const char *at = bytes;
    while (count > 0) {
        ssize_t done = write(to_node, at, count);
        if (done <= 0) return 0;
        at += done;
        count -= (size_t)done;
    }
    return 1;
}

/* `o` or `x`; 0: it is gone, or does not come on. */
static char ask(const unsigned char *input, uint32_t bytes) {
    char answer = 0;
    struct pollfd waiting = {.fd = from_node, .events = POLLIN};
    if (!send(&bytes, sizeof bytes) || !send(input, bytes)) return 0;
    if (poll(&waiting, 1, ANSWER_MS_MAX) != 1) return 0;
    return read(from_node, &answer, 1) == 1 ? answer : 0;
}

__AFL_FUZZ_INIT();

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s MAP NODE ARG...\n", argv[0]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    int file = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, COUNTERS) != 0) abort();
    const uint8_t *passed = mmap(NULL, COUNTERS, PROT_READ, MAP_SHARED, file, 0);
    if (passed == MAP_FAILED) abort();
    start_node(argv + 2);
    /* One input before AFL++ measures anything: Node is up then, and its code is compiled. */
    if (ask((const unsigned char *)"x", 1) == 0) {
        fprintf(stderr, "%s did not answer\n", argv[2]);
        return 2;
    }

    __AFL_INIT();
    const unsigned char *input = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(1000000)) {
        char answer = ask(input, (uint32_t)__AFL_FUZZ_TESTCASE_LEN);
        for (int counter = 0; counter < COUNTERS; counter += 1) {
            for (int time = 0; time < passed[counter]; time += 1) __sanitizer_cov_trace_pc_guard(&places[counter]);
        }
        if (answer == 0) kill(node, SIGKILL);
        if (answer != 'o') abort();
    }
    return 0;
}
