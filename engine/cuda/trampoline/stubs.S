// One jump per symbol of symbols.h through TABLE, which the trampoline of another library sets together with a list of its own. Registers
// and stack stay as the caller left them, so that a stub needs no knowledge of its function's arguments. The stubs are hidden: exported ones
// would catch the library's calls to itself, because the program is linked with --export-dynamic for go-nvml.
#ifndef TABLE
#define TABLE ei_cuda_table
#endif

    .text
    .set index, 0

#if defined(__x86_64__)
.macro stub name
    .globl \name
    .hidden \name
    .type \name, @function
\name:
    jmp *TABLE + 8 * index(%rip)
    .size \name, . - \name
    .set index, index + 1
.endm
#elif defined(__aarch64__)
.macro stub name
    .globl \name
    .hidden \name
    .type \name, %function
\name:
    adrp x16, TABLE + 8 * index
    ldr x16, [x16, :lo12:TABLE + 8 * index]
    br x16
    .size \name, . - \name
    .set index, index + 1
.endm
#else
#error "the libcuda trampoline is written for x86-64 and arm64"
#endif

#define SYMBOL(name) stub name
#include "symbols.h"

    .section .note.GNU-stack, "", %progbits
