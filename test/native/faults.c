/* Makes system calls and allocations of a process fail, or ends it at one of them: a library to be
 * loaded before all others (LD_PRELOAD), for Linux with glibc.
 *
 * System calls are trapped by the kernel (seccomp) and not by their names in libc, so that none is
 * missed, whichever way it is made. A trapped call that is about the folder `prefix` or what is in it is counted;
 * call number `at` (from 0), and with `lasting` every one after it, is acted upon. Allocations are
 * counted where malloc and its kin are called from the code between `text_begin` and `text_end`.
 *
 * What is to be done stands in the file LOADERX_FAULTS, which the process maps and anybody writes
 * with pwrite: test/faults/control.mjs has the other side of `struct control`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

enum { off = 0, all_calls = 1, write_calls = 2, allocations = 3 };
/* Below them: an errno. */
enum { kill_before = 10000, kill_after = 10001, kill_midway = 10002, shorten = 10003 };
enum { log_max = 1000 };

struct control {
    _Atomic uint64_t mode;
    _Atomic uint64_t count;
    uint64_t at;
    uint64_t action;
    uint64_t lasting;
    _Atomic uint64_t struck;
    uint64_t text_begin, text_end;
    char prefix[1024];
    /* Of each call that was counted: its number, and the last of its path. */
    struct {
        uint16_t call;
        char name[30];
    } log[log_max];
};

static struct control nowhere;
static struct control *control = &nowhere;

/* ---- system calls ---- */

long faults_call(long number, long a, long b, long c, long d, long e, long f);
extern const char faults_call_end[];

#if defined(__x86_64__)
#define AUDIT_ARCH AUDIT_ARCH_X86_64
__asm__(".text\n.globl faults_call\n.hidden faults_call\nfaults_call:\n"
        "mov %rdi,%rax\nmov %rsi,%rdi\nmov %rdx,%rsi\nmov %rcx,%rdx\nmov %r8,%r10\nmov %r9,%r8\n"
        "mov 8(%rsp),%r9\nsyscall\n"
        ".globl faults_call_end\n.hidden faults_call_end\nfaults_call_end:\nret\n");
#elif defined(__aarch64__)
#define AUDIT_ARCH AUDIT_ARCH_AARCH64
__asm__(".text\n.globl faults_call\n.hidden faults_call\nfaults_call:\n"
        "mov x8,x0\nmov x0,x1\nmov x1,x2\nmov x2,x3\nmov x3,x4\nmov x4,x5\nmov x5,x6\nsvc #0\n"
        ".globl faults_call_end\n.hidden faults_call_end\nfaults_call_end:\nret\n");
#else
#error "no way to make a system call from a known place"
#endif

enum { by_file, by_name };
static const struct {
    uint16_t number;
    uint8_t names; /* its first argument is a descriptor of the file, or the folder of a name */
    uint8_t writes;
} trapped[] = {
    {SYS_openat, by_name, 0 /* unless it creates */},
    {SYS_mkdirat, by_name, 1},
    {SYS_unlinkat, by_name, 1},
    {SYS_renameat2, by_name, 1},
#ifdef SYS_renameat
    {SYS_renameat, by_name, 1},
#endif
    {SYS_linkat, by_name, 1},
    {SYS_ftruncate, by_file, 1},
    {SYS_fallocate, by_file, 1},
    {SYS_pwrite64, by_file, 1},
    {SYS_pwritev, by_file, 1},
    {SYS_pwritev2, by_file, 1},
    {SYS_fsync, by_file, 1},
    {SYS_fdatasync, by_file, 1},
    {SYS_flock, by_file, 1},
    {SYS_pread64, by_file, 0},
    {SYS_preadv, by_file, 0},
    {SYS_preadv2, by_file, 0},
    {SYS_statx, by_name, 0},
    {SYS_getdents64, by_file, 0},
    {SYS_mmap, by_file, 0},
};
enum { trapped_count = sizeof trapped / sizeof trapped[0] };

static size_t append(char *target, size_t used, size_t room, const char *text) {
    while (*text != 0 && used + 1 < room) target[used++] = *text++;
    target[used] = 0;
    return used;
}

/* Where a descriptor leads. */
static size_t path_of(int file, char *path, size_t room) {
    char link[64];
    char digits[16];
    int at = sizeof digits - 1;
    unsigned rest = (unsigned)file;
    digits[at] = 0;
    do digits[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    size_t used = append(link, 0, sizeof link, "/proc/self/fd/");
    append(link, used, sizeof link, digits + at);
    if (file == AT_FDCWD) append(link, 0, sizeof link, "/proc/self/cwd");
    long bytes = faults_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, (long)room - 1, 0, 0);
    if (bytes < 0) bytes = 0;
    path[bytes] = 0;
    return (size_t)bytes;
}

static int is_struck(uint64_t call) {
    const int strikes = call == control->at || (control->lasting != 0 && call > control->at);
    if (strikes) atomic_fetch_add(&control->struck, 1);
    return strikes && control->action != 0;
}

static void end_here(void) {
    faults_call(SYS_kill, faults_call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
    for (;;) faults_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

/* Half of what it is asked to transfer; other calls as they are. */
static long do_half(long number, const long *a) {
    if ((number == SYS_pwrite64 || number == SYS_pread64) && a[2] > 1)
        return faults_call(number, a[0], a[1], a[2] / 2, a[3], 0, 0);
    if ((number == SYS_pwritev || number == SYS_preadv) && a[2] > 0) {
        struct iovec first = *(const struct iovec *)a[1];
        if (a[2] == 1 || first.iov_len > 64) first.iov_len = (first.iov_len + 1) / 2;
        return faults_call(number, a[0], (long)&first, 1, a[3], a[4], 0);
    }
    return faults_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long decide(long number, const long *a) {
    const uint64_t mode = atomic_load_explicit(&control->mode, memory_order_acquire);
    if (mode != all_calls && mode != write_calls) goto plain;
    int kind = 0;
    while (kind < trapped_count && trapped[kind].number != number) kind++;
    if (kind == trapped_count) goto plain;
    const int creates = number == SYS_openat && (a[2] & O_CREAT) != 0;
    if (mode == write_calls && !trapped[kind].writes && !creates) goto plain;

    char path[1024];
    if (trapped[kind].names == by_name) {
        const char *name = (const char *)a[1];
        size_t used = name != NULL && name[0] == '/' ? 0 : path_of((int)a[0], path, sizeof path);
        if (used > 0 && name != NULL && name[0] != 0) used = append(path, used, sizeof path, "/");
        if (name != NULL) append(path, used, sizeof path, name);
    } else {
        path_of((int)(number == SYS_mmap ? a[4] : a[0]), path, sizeof path);
    }
    const size_t prefix = strlen(control->prefix);
    if (strncmp(path, control->prefix, prefix) != 0) goto plain;
    if (path[prefix] != '/' && path[prefix] != 0) goto plain;

    const uint64_t call = atomic_fetch_add(&control->count, 1);
    if (call < log_max) {
        const char *last = strrchr(path, '/');
        control->log[call].call = (uint16_t)number;
        append(control->log[call].name, 0, sizeof control->log[call].name, last == NULL ? path : last + 1);
    }
    if (!is_struck(call)) goto plain;
    long result;
    switch (control->action) {
        case kill_before:
            end_here();
            break;
        case kill_after:
            faults_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
            end_here();
            break;
        case kill_midway:
            do_half(number, a);
            end_here();
            break;
        case shorten:
            result = do_half(number, a);
            return result;
        default:
            return -(long)control->action;
    }
plain:
    return faults_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void on_trap(int signal, siginfo_t *info, void *context) {
    (void)signal;
    ucontext_t *state = context;
#if defined(__x86_64__)
    greg_t *r = state->uc_mcontext.gregs;
    const long a[6] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
    r[REG_RAX] = decide(info->si_syscall, a);
#else
    unsigned long long *r = state->uc_mcontext.regs;
    const long a[6] = {(long)r[0], (long)r[1], (long)r[2], (long)r[3], (long)r[4], (long)r[5]};
    r[0] = (unsigned long long)decide(info->si_syscall, a);
#endif
}

/* Node gives every signal its default at its start; ours stays. */
int sigaction(int signal, const struct sigaction *act, struct sigaction *old) {
    static int (*real)(int, const struct sigaction *, struct sigaction *);
    if (real == NULL) real = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
    if (signal == SIGSYS && act != NULL && act->sa_sigaction != on_trap) return 0;
    return real(signal, act, old);
}

/* A trap whose signal is blocked ends the process. */
static int set_mask(int how, const sigset_t *set, sigset_t *old) {
    sigset_t without;
    if (set != NULL) {
        without = *set;
        if (how != SIG_UNBLOCK) sigdelset(&without, SIGSYS);
        set = &without;
    }
    return (int)-faults_call(SYS_rt_sigprocmask, how, (long)set, (long)old, 8, 0, 0);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
    return set_mask(how, set, old);
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old) {
    const int error = set_mask(how, set, old);
    if (error == 0) return 0;
    errno = error;
    return -1;
}

static void trap_calls(void) {
    struct sock_filter filter[32 + 2 * trapped_count];
    unsigned n = 0;
    const uint64_t begin = (uint64_t)(uintptr_t)faults_call, end = (uint64_t)(uintptr_t)faults_call_end;
    if (begin >> 32 != end >> 32) abort();
#define OFFSET(field) ((uint32_t)offsetof(struct seccomp_data, field))
#define LOAD(at) (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define JUMP(test, value, yes, no) (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, yes, no)
#define RETURN(what) (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what)
    filter[n++] = LOAD(OFFSET(arch));
    filter[n++] = JUMP(BPF_JEQ, AUDIT_ARCH, 1, 0);
    filter[n++] = RETURN(SECCOMP_RET_ALLOW);
    /* From faults_call itself: let it through. */
    filter[n++] = LOAD(OFFSET(instruction_pointer) + 4);
    filter[n++] = JUMP(BPF_JEQ, (uint32_t)(begin >> 32), 0, 4);
    filter[n++] = LOAD(OFFSET(instruction_pointer));
    filter[n++] = JUMP(BPF_JGE, (uint32_t)begin, 0, 2);
    filter[n++] = JUMP(BPF_JGT, (uint32_t)end, 1, 0);
    filter[n++] = RETURN(SECCOMP_RET_ALLOW);
    filter[n++] = LOAD(OFFSET(nr));
    for (unsigned i = 0; i < trapped_count; i++) {
        filter[n++] = JUMP(BPF_JEQ, trapped[i].number, 0, 1);
        filter[n++] = RETURN(SECCOMP_RET_TRAP);
        /* A map of no file is none of ours. */
        if (trapped[i].number == SYS_mmap) {
            filter[n - 2].jf = 4;
            filter[n - 1] = LOAD(OFFSET(args[4]));
            filter[n++] = JUMP(BPF_JEQ, 0xffffffff, 0, 1);
            filter[n++] = RETURN(SECCOMP_RET_ALLOW);
            filter[n++] = RETURN(SECCOMP_RET_TRAP);
        }
    }
    filter[n++] = RETURN(SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    if (sigaction(SIGSYS, &action, NULL) != 0) abort();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) abort();
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) abort();
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LOADERX_FAULTS");
    if (path == NULL) return;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) abort();
    void *page = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) abort();
    close(file);
    control = page;
    trap_calls();
}

/* ---- allocations ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static int refuses(const void *caller) {
    if (atomic_load_explicit(&control->mode, memory_order_acquire) != allocations) return 0;
    const uint64_t address = (uint64_t)(uintptr_t)caller;
    if (address < control->text_begin || address >= control->text_end) return 0;
    return is_struck(atomic_fetch_add(&control->count, 1));
}

#define REFUSE_HERE                               \
    if (refuses(__builtin_return_address(0))) {   \
        errno = ENOMEM;                           \
        return NULL;                              \
    }

void *malloc(size_t bytes) {
    REFUSE_HERE
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    REFUSE_HERE
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes) {
    REFUSE_HERE
    return __libc_realloc(block, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    REFUSE_HERE
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    REFUSE_HERE
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes) {
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
    if (refuses(__builtin_return_address(0))) return ENOMEM;
    void *made = __libc_memalign(alignment, bytes);
    if (made == NULL) return ENOMEM;
    *block = made;
    return 0;
}
