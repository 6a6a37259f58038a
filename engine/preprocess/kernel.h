// The platform layer of the CUDA kernels: clang compiles them to PTX without NVIDIA's headers; tests compile the same files as C++ for the
// host, where a launch is a loop over all threads.
#ifndef EDGE_INFER_PREPROCESS_KERNEL_H_
#define EDGE_INFER_PREPROCESS_KERNEL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDA__

#define EI_DEVICE static inline __attribute__((device, always_inline))
#define EI_GLOBAL __attribute__((address_space(1)))
#define EI_UNROLL _Pragma("unroll")
// EI_KERNEL begins a kernel that takes one struct by value, as `a`.
#define EI_KERNEL(name, arguments) extern "C" __attribute__((global)) void name(const arguments a)

#define ei_thread_x() __nvvm_read_ptx_sreg_tid_x()
#define ei_thread_y() __nvvm_read_ptx_sreg_tid_y()
#define ei_block_x() __nvvm_read_ptx_sreg_ctaid_x()
#define ei_block_y() __nvvm_read_ptx_sreg_ctaid_y()

// Loads of memory that the kernel does not write.
EI_DEVICE uint32_t ei_load_word(uint64_t at) { return __nvvm_ldg_ui((const unsigned *)at); }
EI_DEVICE uint8_t ei_load_byte(uint64_t at) { return __nvvm_ldg_uc((const unsigned char *)at); }
EI_DEVICE uint16_t ei_load_short(uint64_t at) { return __nvvm_ldg_us((const unsigned short *)at); }
EI_DEVICE float ei_load_float(uint64_t at) { return __nvvm_ldg_f((const float *)at); }

// The low word of high:low >> (shift & 31).
EI_DEVICE uint32_t ei_funnel(uint32_t low, uint32_t high, uint32_t shift) {
    uint32_t result;
    asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(shift));
    return result;
}

EI_DEVICE int ei_round(float v) {  // to nearest, ties to even
    int result;
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(result) : "f"(v));
    return result;
}

// 1 / v, rounded to nearest but for the last bit: one Newton step on the hardware's estimate.
EI_DEVICE float ei_inverse(float v) {
    const float estimate = __nvvm_rcp_approx_ftz_f(v);
    return __nvvm_fma_rn_f(estimate, __nvvm_fma_rn_f(-v, estimate, 1.0f), estimate);
}

EI_DEVICE uint16_t ei_to_half(float v) {
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(v));
    return half;
}

EI_DEVICE float ei_from_half(uint16_t half) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(half));
    return v;
}

#else

#include <math.h>
#include <string.h>

#include "half.h"

#define EI_DEVICE static inline
#define EI_GLOBAL
#define EI_UNROLL
#define EI_KERNEL(name, arguments)                                                                                \
    static void name(const arguments &a);                                                                         \
    extern "C" int name##_launch(const void *block, size_t size, const unsigned *grid, const unsigned *threads) { \
        arguments a;                                                                                              \
        if (size != sizeof(a)) return 1;                                                                          \
        memcpy(&a, block, size);                                                                                  \
        for (ei_at.block_y = 0; ei_at.block_y < grid[1]; ei_at.block_y++)                                         \
            for (ei_at.block_x = 0; ei_at.block_x < grid[0]; ei_at.block_x++)                                     \
                for (ei_at.thread_y = 0; ei_at.thread_y < threads[1]; ei_at.thread_y++)                           \
                    for (ei_at.thread_x = 0; ei_at.thread_x < threads[0]; ei_at.thread_x++) name(a);              \
        return 0;                                                                                                 \
    }                                                                                                             \
    static void name(const arguments &a)

static thread_local struct {
    unsigned thread_x, thread_y, block_x, block_y;
} ei_at;
#define ei_thread_x() ei_at.thread_x
#define ei_thread_y() ei_at.thread_y
#define ei_block_x() ei_at.block_x
#define ei_block_y() ei_at.block_y

template <typename T>
static inline T ei_load(uint64_t at) {
    return *(const T *)at;  // aligned, as the device demands; the sanitizer checks
}
static inline uint32_t ei_load_word(uint64_t at) { return ei_load<uint32_t>(at); }
static inline uint8_t ei_load_byte(uint64_t at) { return ei_load<uint8_t>(at); }
static inline uint16_t ei_load_short(uint64_t at) { return ei_load<uint16_t>(at); }
static inline float ei_load_float(uint64_t at) { return ei_load<float>(at); }

static inline uint32_t ei_funnel(uint32_t low, uint32_t high, uint32_t shift) {
    return (uint32_t)(((uint64_t)high << 32 | low) >> (shift & 31));
}

static inline int ei_round(float v) { return (int)lrintf(v); }

static inline float ei_inverse(float v) { return 1 / v; }

static inline uint16_t ei_to_half(float v) { return ei_half(v); }

static inline float ei_from_half(uint16_t half) {
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    float v = exponent == 31  ? (mantissa ? NAN : INFINITY)
              : exponent == 0 ? ldexpf((float)mantissa, -24)
                              : ldexpf((float)(mantissa + 1024), exponent - 25);
    return half >> 15 ? -v : v;
}

#endif

#endif
