#include "readfloor.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("default", "avx2")))
#endif
int64_t
ei_read_floor(const float *values, int64_t count, float threshold) {
    // Independent counters, so that reading and not adding is what takes the time.
    int32_t counters[32] = {0};
    int64_t total = 0, i = 0;
    for (; i + 32 <= count; i += 32) {
        for (int j = 0; j < 32; j++) {
            counters[j] += values[i + j] >= threshold;
        }
    }
    for (; i < count; i++) {
        total += values[i] >= threshold;
    }
    for (int j = 0; j < 32; j++) {
        total += counters[j];
    }
    return total;
}
