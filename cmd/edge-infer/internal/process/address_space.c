#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

// What Go reserves for its heap, and the stacks and arenas of threads, want addresses, most of which never become memory.
static const unsigned long long needed = 3ULL << 30;

// Go's runtime ends with a trace of itself where it lacks addresses, before the first line of Go. That is why this speaks here, and in C.
__attribute__((constructor)) static void look_at_address_space(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= needed) {
        return;
    }
    (void)dprintf(
        STDERR_FILENO,
        "edge-infer: the address space is limited to %llu MiB and %llu are needed: lift the limit (ulimit -v unlimited, LimitAS= of "
        "systemd); MemoryMax= bounds memory itself\n",
        (unsigned long long)limit.rlim_cur >> 20, needed >> 20);
    _exit(1);
}
