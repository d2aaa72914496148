// Which of the given places of a program it comes by, and which way its conditional jumps go.
//
//     visited PLACES RESULT PROGRAM [ARG]...
//
// PLACES has a line for each: `l ADDRESS` or `j ADDRESS`, hexadecimal, in a program that is not moved when it
// is loaded. RESULT gets `l ADDRESS` for each place that was come by, `t ADDRESS` and `f ADDRESS` for each jump
// that was taken and was not. The exit code is the program's.
//
// Each place is a breakpoint until it has been told all it can tell, so it costs one stop or a few; a jump
// that goes one way only costs a stop each time, up to jump_stops_max. Linux on x86-64.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if !defined(__linux__) || !defined(__x86_64__)
#error "written for Linux on x86-64"
#endif

enum { jump_stops_max = 2000000 };

struct place {
  uint64_t address;
  unsigned char kept;  // the byte that the breakpoint stands for
  unsigned char is_line, is_jump, is_set, visited, taken, not_taken;
  unsigned stops;
};

static struct place *places;
static size_t place_count;
static int memory;

static void die(const char *what) {
  perror(what);
  exit(125);
}

static int by_address(const void *a, const void *b) {
  uint64_t x = ((const struct place *)a)->address, y = ((const struct place *)b)->address;
  return x < y ? -1 : x > y;
}

static struct place *find(uint64_t address) {
  struct place key = {.address = address};
  return bsearch(&key, places, place_count, sizeof key, by_address);
}

static void read_places(const char *path) {
  FILE *file = fopen(path, "r");
  if (file == NULL) die(path);
  char kind;
  unsigned long long address;
  size_t room = 0;
  while (fscanf(file, " %c %llx", &kind, &address) == 2) {
    if (place_count == room) places = realloc(places, (room = room * 2 + 1024) * sizeof *places);
    if (places == NULL) die("places");
    places[place_count++] =
        (struct place){.address = address, .is_line = kind == 'l', .is_jump = kind == 'j'};
  }
  fclose(file);
  qsort(places, place_count, sizeof *places, by_address);
  size_t kept = 0;
  for (size_t i = 0; i < place_count; i++) {
    if (kept > 0 && places[kept - 1].address == places[i].address) {
      places[kept - 1].is_line |= places[i].is_line;
      places[kept - 1].is_jump |= places[i].is_jump;
    } else {
      places[kept++] = places[i];
    }
  }
  place_count = kept;
}

static void put(uint64_t address, unsigned char byte) {
  if (pwrite(memory, &byte, 1, (off_t)address) != 1) die("writing to the program");
}

static void set_all(void) {
  for (size_t i = 0; i < place_count; i++) {
    struct place *place = &places[i];
    if (pread(memory, &place->kept, 1, (off_t)place->address) != 1) die("reading the program");
    place->is_set = 1;
    put(place->address, 0xcc);
  }
}

static int holds(unsigned condition, uint64_t flags) {
  int c = flags & 1, p = flags >> 2 & 1, z = flags >> 6 & 1, s = flags >> 7 & 1, o = flags >> 11 & 1;
  int values[8] = {o, c, z, c || z, s, p, s != o, z || s != o};
  return values[condition >> 1] ^ (condition & 1);
}

// A thread stands behind a breakpoint: what it was for is noted, and it goes on as if there were none.
static int stopped_at(pid_t thread) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, thread, NULL, &registers) != 0) return 0;
  struct place *place = find(registers.rip - 1);
  if (place == NULL) return 0;
  place->visited = 1;
  place->stops++;
  uint64_t next = place->address;
  if (place->is_jump) {
    unsigned char code[6] = {0};
    if (pread(memory, code, sizeof code, (off_t)place->address) < 2) die("reading a jump");
    code[0] = place->kept;
    unsigned condition, length;
    int64_t distance;
    if (code[0] >= 0x70 && code[0] <= 0x7f) {
      condition = code[0] & 15, length = 2, distance = (int8_t)code[1];
    } else if (code[0] == 0x0f && code[1] >= 0x80 && code[1] <= 0x8f) {
      int32_t wide;
      memcpy(&wide, code + 2, 4);
      condition = code[1] & 15, length = 6, distance = wide;
    } else {
      fprintf(stderr, "%llx is no conditional jump\n", (unsigned long long)place->address);
      exit(125);
    }
    next += length;
    if (holds(condition, registers.eflags)) {
      place->taken = 1;
      next += (uint64_t)distance;
    } else {
      place->not_taken = 1;
    }
  }
  // Another thread may have stopped here just before it was taken away: it goes on in the same way.
  int is_done = !place->is_jump || (place->taken && place->not_taken) || place->stops >= jump_stops_max;
  if (place->is_set && is_done) {
    put(place->address, place->kept);
    place->is_set = 0;
  }
  registers.rip = next;
  if (ptrace(PTRACE_SETREGS, thread, NULL, &registers) != 0) die("setting registers");
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "visited PLACES RESULT PROGRAM [ARG]...\n");
    return 125;
  }
  read_places(argv[1]);
  pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    execv(argv[3], argv + 3);
    die(argv[3]);
  }
  int status;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) die("starting the program");
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", (int)child);
  memory = open(path, O_RDWR | O_CLOEXEC);
  if (memory < 0) die(path);
  ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
  set_all();
  ptrace(PTRACE_CONT, child, NULL, NULL);
  int code = 125;
  for (;;) {
    pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (thread != child) continue;
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      break;
    }
    int signal = WSTOPSIG(status);
    if (signal == SIGTRAP && status >> 16 == 0) {
      if (stopped_at(thread)) signal = 0;
    } else if (status >> 16 != 0 || signal == SIGSTOP) {
      signal = 0;  // a new thread, told by its maker and by itself
    }
    ptrace(PTRACE_CONT, thread, NULL, (void *)(intptr_t)signal);
  }
  FILE *file = fopen(argv[2], "w");
  if (file == NULL) die(argv[2]);
  for (size_t i = 0; i < place_count; i++) {
    const struct place *place = &places[i];
    unsigned long long address = place->address;
    if (place->is_line && place->visited) fprintf(file, "l %llx\n", address);
    if (place->taken) fprintf(file, "t %llx\n", address);
    if (place->not_taken) fprintf(file, "f %llx\n", address);
  }
  if (fclose(file) != 0) die(argv[2]);
  return code;
}
