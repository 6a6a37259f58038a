// Opening the CUDA driver at run time. Linked into every program as libcuda.a, so that none needs a driver to start: until
// ei_cuda_open has succeeded every driver function returns 3 (not initialized), afterwards one that the driver lacks returns 801 (not
// supported), and cuInit always returns 0 because gorgonia.org/cu calls it while the program starts and exits on anything else.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ei_cuda_driver {
    int loaded;      // the library was found
    int init;        // what cuInit returned; -1 before it was called
    int missing;     // how many listed symbols the library lacks
    char path[512];  // the file that was loaded
    char why[512];   // dlerror's text if it was not
} ei_cuda_driver;

// ei_cuda_open loads the library by name or path, unless one is loaded already, calls cuInit until it has succeeded once, and writes
// what is known to *facts. Thread-safe. Returns 0 when the driver is ready.
int ei_cuda_open(const char *library, ei_cuda_driver *facts);

#ifdef __cplusplus
}
#endif
