// Compares the kernels of this machine with the plain ones, bit for bit, on random images whose last byte lies before a page that must
// not be touched. usage: check ROUNDS SEED
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../letterbox.h"
#include "../rows.h"

static unsigned long state;

static int number(int low, int high) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return low + (int)((state >> 33) % (unsigned long)(high - low + 1));
}

// guarded returns size bytes that end at an unmapped page.
static unsigned char *guarded(size_t size, void **map, size_t *length) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size + page - 1) / page + 1;
    *length = (pages + 1) * page;
    unsigned char *memory = mmap(NULL, *length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // The first page stays closed as well: nothing before the image may be read either, when the sizes meet a page.
    if (memory == MAP_FAILED || mprotect(memory + page, (pages - 1) * page, PROT_READ | PROT_WRITE) != 0) {
        perror("mmap");
        exit(2);
    }
    *map = memory;
    return memory + pages * page - size;
}

static ei_letterbox random_box(void) {
    ei_letterbox box = {0};
    box.format = number(EI_BGR, EI_GRAY8);
    box.channels = number(0, 3) ? 3 : 1;
    box.element = number(EI_FLOAT32, EI_UINT8);
    box.interpolation = number(EI_BILINEAR, EI_BICUBIC_ANTIALIAS);
    box.pad = number(0, 255);
    if (box.channels == 3) {
        box.interleaved = number(0, 1);
        box.bgr = number(0, 1);
    }
    for (int c = 0; c < 3; c++) {
        box.scale[c] = (float)number(1, 3000) / 1000 / 255;
        box.bias[c] = number(0, 1) ? (float)number(-3000, 3000) / 1000 : 0;
    }
    int limit = number(0, 3) ? 40 : 400;
    box.source_width = number(1, limit);
    box.source_height = number(1, limit);
    if (box.format == EI_NV12 || box.format == EI_YUYV) {
        box.source_width += box.source_width % 2;
        box.source_height += box.source_height % 2;
    }
    box.width = number(1, 200);
    box.height = number(1, 200);
    box.inner_width = number(1, 2 * box.width);
    box.inner_height = number(1, 2 * box.height);
    // Inside the input, or the other way round: cropped.
    box.left = box.inner_width < box.width ? number(0, box.width - box.inner_width) : -number(0, box.inner_width - box.width);
    box.top = box.inner_height < box.height ? number(0, box.height - box.inner_height) : -number(0, box.inner_height - box.height);
    return box;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    state = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    for (int round = 0; round < rounds; round++) {
        ei_letterbox box = random_box();
        size_t row = (size_t)box.source_width * (size_t[]){3, 4, 1, 2, 1}[box.format];
        size_t stride = row + (size_t)number(0, 9);
        size_t rows = (size_t)box.source_height + (box.format == EI_NV12 ? (size_t)box.source_height / 2 : 0);
        size_t element = (size_t[]){4, 2, 1}[box.element];
        size_t size = stride * (rows - 1) + row, out = (size_t)box.channels * (size_t)box.width * (size_t)box.height * element;
        void *maps[3];
        size_t lengths[3];
        unsigned char *source = guarded(size, &maps[0], &lengths[0]);
        unsigned char *plain = guarded(out, &maps[1], &lengths[1]), *fast = guarded(out, &maps[2], &lengths[2]);
        for (size_t i = 0; i < size; i++) {
            source[i] = (unsigned char)number(0, 255);
        }
        memset(plain, 0xff, out);
        memset(fast, 0xee, out);
        int32_t *tables = malloc(ei_letterbox_table_size(&box) * sizeof *tables);
        ei_letterbox_prepare(&box, tables);
        void *scratch = malloc(ei_letterbox_scratch_size(&box));
        ei_letterbox_run_with(&ei_kernels_plain, &box, tables, scratch, source, stride, 1, plain);
        ei_letterbox_run(&box, tables, scratch, source, stride, 1, fast);
        if (memcmp(plain, fast, out) != 0) {
            printf(
                "round %d: %s differs from plain: format %d, %dx%d to %dx%d at %d,%d in %dx%dx%d, interpolation %d, element %d, "
                "interleaved %d\n",
                round, ei_letterbox_isa(), box.format, box.source_width, box.source_height, box.inner_width, box.inner_height, box.left,
                box.top, box.width, box.height, box.channels, box.interpolation, box.element, box.interleaved);
            return 1;
        }
        free(scratch);
        free(tables);
        for (int i = 0; i < 3; i++) {
            munmap(maps[i], lengths[i]);
        }
    }
    printf("%s\n", ei_letterbox_isa());
    return 0;
}
