#include "scan.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "hit.h"

// Coordinates beyond this many pixels are garbage; the comparison also refuses NaN and infinity.
#define MAX_COORDINATE 1e6f
// Quantized sigmoids end a little over 1; anything more is not a score. engine.ScoreTolerance is the same.
#define MAX_SCORE (1.0f + 1.0f / 64)
#define MIN_SCORE (-1.0f / 64)

static float highest(const ei_scan_query *query) { return query->logits ? FLT_MAX : MAX_SCORE; }

// place writes the corners of a box in pixels; 0 when the numbers are none.
static int place(const float *boxes, const ei_scan_query *query, int64_t box, ei_candidate *out) {
    const float *at = boxes + box * query->box_step;
    const int64_t next = query->box_next;
    if (query->form == EI_RAW) {
        out->x1 = at[0];
        out->y1 = at[next];
        out->x2 = at[2 * next];
        out->y2 = at[3 * next];
        return 1;
    }
    const float x = query->scale_x * at[0], y = query->scale_y * at[next];
    const float width = query->scale_x * at[2 * next], height = query->scale_y * at[3 * next];
    if (query->form == EI_CORNERS) {
        out->x1 = x;
        out->y1 = y;
        out->x2 = width;
        out->y2 = height;
        return x < width && y < height && x > -MAX_COORDINATE && y > -MAX_COORDINATE && width < MAX_COORDINATE && height < MAX_COORDINATE;
    }
    out->x1 = x - width / 2;
    out->y1 = y - height / 2;
    out->x2 = x + width / 2;
    out->y2 = y + height / 2;
    return width > 0 && height > 0 && width < MAX_COORDINATE && height < MAX_COORDINATE && x > -MAX_COORDINATE && x < MAX_COORDINATE &&
           y > -MAX_COORDINATE && y < MAX_COORDINATE;
}

// keep_wanted drops the boxes whose best class is not wanted, or not at that score.
static int64_t keep_wanted(ei_candidate *candidates, int64_t count, const float *class_threshold) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        if (candidates[i].score >= class_threshold[candidates[i].class_id]) {
            candidates[kept++] = candidates[i];
        }
    }
    return kept;
}

int32_t ei_scan_columns(const float *coordinates, const float *scores, const ei_scan_query *query, const float *class_threshold,
                        int32_t *slots, ei_candidate *out, int64_t capacity, ei_scan_state *state) {
    const int64_t boxes = query->boxes, total = boxes * query->classes;
    const ei_next_hit next = ei_choose_next_hit();
    const float most = highest(query);
    int64_t count = state->count, i = state->cursor;
    // A slot is 0 for a box not seen yet, -1 for one that is no box, else the number of its candidate plus 1.
    if (!query->multi_label) {
        memset(slots, 0, sizeof(*slots) * (size_t)boxes);
    }
    for (i = next(scores, i, total, query->threshold); i < total; i = next(scores, i + 1, total, query->threshold)) {
        const int32_t class_id = (int32_t)(i / boxes);
        const int64_t box = i - class_id * boxes;
        const float score = scores[i];
        if (!(score <= most)) {
            state->impossible++;
            continue;
        }
        if (query->multi_label) {
            if (score < class_threshold[class_id]) {
                continue;
            }
        } else if (slots[box] != 0) {
            if (slots[box] > 0 && score > out[slots[box] - 1].score) {
                out[slots[box] - 1].score = score;
                out[slots[box] - 1].class_id = class_id;
            }
            continue;
        }
        if (count == capacity) {
            break;
        }
        if (!place(coordinates, query, box, &out[count])) {
            state->invalid++;
            if (!query->multi_label) {
                slots[box] = -1;
            }
            continue;
        }
        out[count].score = score;
        out[count].class_id = class_id;
        out[count].index = (int32_t)box;
        count++;
        if (!query->multi_label) {
            slots[box] = (int32_t)count;
        }
    }
    state->cursor = i;
    state->count = query->multi_label ? count : keep_wanted(out, count, class_threshold);
    return i < total;
}

int32_t ei_scan_rows(const float *coordinates, const float *scores, const ei_scan_query *query, const float *class_threshold,
                     ei_candidate *out, int64_t capacity, ei_scan_state *state) {
    const int32_t classes = query->classes, multiplied = query->objectness;
    const int64_t boxes = query->boxes, step = query->score_step;
    const float threshold = query->threshold;
    const ei_next_hit next = ei_choose_next_hit();
    const ei_next_row next_row = ei_choose_next_row(0);
    const float most = highest(query);
    // With an objectness the scores are products; without it they are looked through as they are, and without a gap between the rows in one
    // search.
    const int gapless = step == classes && !multiplied;
    int64_t count = state->count, box = state->cursor / classes;
    int32_t first = (int32_t)(state->cursor % classes);
    for (; box < boxes; box++, first = 0) {
        if (gapless) {
            const int64_t hit = next(scores, box * classes + first, boxes * classes, threshold);
            box = hit / classes;
            first = (int32_t)(hit % classes);
        } else if (!multiplied && first == 0) {
            box = next_row(scores, step, classes, box, boxes, threshold);
        }
        if (box == boxes) {
            break;
        }
        float objectness = 1;
        int32_t c = first;
        // No class score can lift a box whose objectness is under the threshold.
        if (multiplied && (objectness = scores[box * step - 1]) < threshold) {
            continue;
        }
        if (!(objectness <= MAX_SCORE)) {
            state->impossible++;
            continue;
        }
        const float *row = scores + box * step;
        if (!multiplied && (c = (int32_t)next(row, c, classes, threshold)) == classes) {
            continue;
        }
        ei_candidate corner;
        corner.index = (int32_t)box;
        if (!place(coordinates, query, box, &corner)) {
            state->invalid++;
            continue;
        }
        int32_t best = -1;
        float best_score = 0;
        for (; c < classes; c = multiplied ? c + 1 : (int32_t)next(row, c + 1, classes, threshold)) {
            const float score = objectness * row[c];
            if (score < threshold) {
                continue;
            }
            if (!(score <= most)) {
                state->impossible++;
                continue;
            }
            if (!query->multi_label) {
                if (best < 0 || score > best_score) {
                    best = c;
                    best_score = score;
                }
                continue;
            }
            if (score < class_threshold[c]) {
                continue;
            }
            if (count == capacity) {
                state->cursor = box * classes + c;
                state->count = count;
                return 1;
            }
            out[count] = corner;
            out[count].score = score;
            out[count].class_id = c;
            count++;
        }
        if (best < 0 || best_score < class_threshold[best]) {
            continue;
        }
        if (count == capacity) {
            break;
        }
        out[count] = corner;
        out[count].score = best_score;
        out[count].class_id = best;
        count++;
    }
    state->cursor = box * classes;
    state->count = count;
    return box < boxes;
}

int64_t ei_impossible(const float *scores, const ei_scan_query *query) {
    const int columns = query->score_step == 1;
    const int64_t outer = columns ? query->classes : query->boxes, inner = columns ? query->boxes : query->classes;
    const int64_t step = columns ? query->score_next : query->score_step;
    const float low = query->logits ? -INFINITY : MIN_SCORE, high = highest(query);
    int64_t found = 0;
    for (int64_t i = 0; i < outer; i++) {
        const float *line = scores + i * step;
        for (int64_t j = query->objectness ? -1 : 0; j < inner; j++) {
            found += !(line[j] >= low && line[j] <= high);
        }
    }
    return found;
}
