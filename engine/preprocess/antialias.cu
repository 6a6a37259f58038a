// The antialiased image of antialias.c on the GPU, with the same arithmetic and the arguments of the letterbox. A thread makes one pixel:
// it weighs the pixels of each row within the filter, two at a time, and then the rows. Weights are computed where they are needed, because
// a table in memory would have to be kept for every size of images. A block is 32 by 8 threads.
#include "image.h"
#include "taps.h"

namespace {

struct sums {
    int b, g, r;
};

EI_DEVICE void add(sums *s, const ei_pixel &p, int weight) {
    s->b += p.b * weight;
    s->g += p.g * weight;
    s->r += p.r * weight;
}

template <int FORMAT>
EI_DEVICE ei_pixel weighed(const ei_letterbox_arguments &a, int x, int y) {
    const ei_letterbox &b = a.box;
    const ei_taps columns = ei_taps_of(x - b.left, b.source_width, b.inner_width, b.interpolation);
    const ei_taps rows = ei_taps_of(y - b.top, b.source_height, b.inner_height, b.interpolation);
    sums total = {0, 0, 0};
    for (int j = 0; j < rows.count; j++) {
        sums row = {0, 0, 0};
        for (int i = 0; i < columns.count; i += 2) {
            ei_pixel first, second;
            ei_neighbours<FORMAT>(a, (uint32_t)(columns.first + i), (uint32_t)(rows.first + j), &first, &second);
            add(&row, first, ei_weight(&columns, i));
            add(&row, second, i + 1 < columns.count ? ei_weight(&columns, i + 1) : 0);
        }
        add(&total, {ei_rounded(row.b), ei_rounded(row.g), ei_rounded(row.r)}, ei_weight(&rows, j));
    }
    return {ei_rounded(total.b), ei_rounded(total.g), ei_rounded(total.r)};
}

template <int FORMAT>
EI_DEVICE void antialias_thread(const ei_letterbox_arguments &a) {
    const int x = (int)(ei_block_x() * EI_ANTIALIAS_COLUMNS + ei_thread_x()), y = (int)(ei_block_y() * 8 + ei_thread_y());
    if (x >= a.box.width || y >= a.box.height) return;
    ei_write(a, x, y, ei_shows(a.box, x, y) ? weighed<FORMAT>(a, x, y) : ei_border(a.box));
}

}  // namespace

EI_KERNEL(antialias, ei_letterbox_arguments) {
    switch (a.box.format) {
        case EI_NV12:
            antialias_thread<EI_NV12>(a);
            break;
        case EI_YUYV:
            antialias_thread<EI_YUYV>(a);
            break;
        case EI_GRAY8:
            antialias_thread<EI_GRAY8>(a);
            break;
        default:
            antialias_thread<EI_BGR>(a);
    }
}
