package web

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
)

// export calls begin once the first events are read, then each with all events that match. After the first event an error ends the
// response early, which the client notices by the missing end of the transfer.
func (p *eventPages) export(w http.ResponseWriter, r *http.Request, begin func(), each func(e *store.Event) error) bool {
	f, ok := p.query(w, r, eventMemory, store.MaxPage)
	if !ok {
		return false
	}
	f.Limit = store.MaxPage
	for first := true; first || f.Cursor != ""; first = false {
		page, next, err := p.events.Events(r.Context(), f)
		if err != nil && first {
			p.writeStoreError(w, err)
			return false
		}
		if err == nil && first {
			begin()
		}
		for i := 0; err == nil && i < len(page); i++ {
			err = each(&page[i])
		}
		if overLimit(err) { // of each, which has not written anything
			writeOverLimit(w, fmt.Errorf("%w; request fewer events with after and before", err))
			return false
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		f.Cursor = next
	}
	return true
}

// exportLines responds with events as JSON lines.
func (p *eventPages) exportLines(w http.ResponseWriter, r *http.Request) {
	out := p.slowWriter(w)
	encoder := json.NewEncoder(out)
	begin := func() { w.Header().Set("Content-Type", "application/jsonl") }
	p.export(w, r, begin, func(e *store.Event) error { return encoder.Encode(eventOf(e)) })
}

// exportCSV responds with events as CSV. Several zones, lines or attributes are separated by semicolons.
func (p *eventPages) exportCSV(w http.ResponseWriter, r *http.Request) {
	table := csv.NewWriter(p.slowWriter(w))
	begin := func() {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		_ = table.Write([]string{ // the buffer reports an error with the next row
			"id", "camera", "label", "time", "end", "score", "x1", "y1", "x2", "y2", "zones", "lines", "attributes", "length", "frame", "clip",
		})
	}
	whole := p.export(w, r, begin, func(stored *store.Event) error {
		e := eventOf(stored)
		row := []string{e.ID, e.Camera, e.Label, e.Time.Format(time.RFC3339Nano), "", number(e.Score)}
		if !e.End.IsZero() {
			row[4] = e.End.Format(time.RFC3339Nano)
		}
		for _, side := range e.Box {
			row = append(row, number(side))
		}
		var lines, attributes []string
		for _, crossing := range e.Lines {
			lines = append(lines, crossing.Line+" "+crossing.Direction)
		}
		for _, name := range slices.Sorted(maps.Keys(e.Attributes)) {
			attributes = append(attributes, name+"="+e.Attributes[name].Value)
		}
		list := func(values []string) string { return strings.Join(values, ";") }
		return table.Write(append(row, list(e.Zones), list(lines), list(attributes), number(e.Length), e.Frame, e.Clip))
	})
	if whole {
		table.Flush() // the client may be gone
	}
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// The parts of a COCO data set. Boxes are x, y, width, height in pixels of the stored frame.
type (
	cocoImage struct {
		ID       int       `json:"id"`
		FileName string    `json:"file_name"`
		Width    int       `json:"width"`
		Height   int       `json:"height"`
		Captured time.Time `json:"date_captured"`
		URL      string    `json:"coco_url"`
	}
	cocoAnnotation struct {
		ID       int        `json:"id"`
		Image    int        `json:"image_id"`
		Category int        `json:"category_id"`
		Box      [4]float64 `json:"bbox"`
		Area     float64    `json:"area"`
		Crowd    int        `json:"iscrowd"`
		Score    float64    `json:"score"`
	}
	cocoCategory struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	}
)

// exportCOCO responds with the events that have a frame as a COCO data set: an image and an annotation for each.
func (p *eventPages) exportCOCO(w http.ResponseWriter, r *http.Request) {
	images, annotations, categories := []cocoImage{}, []cocoAnnotation{}, []cocoCategory{}
	known := map[string]int{}
	out := p.slowWriter(w)
	whole := p.export(w, r, func() {}, func(stored *store.Event) error {
		out.extend() // nothing is written before the end
		if stored.Frame == 0 {
			return nil
		}
		if err := reserve(out, annotationMemory); err != nil {
			return err
		}
		e := eventOf(stored)
		id := len(images) + 1
		category := known[e.Label]
		if category == 0 {
			category = len(known) + 1
			known[e.Label] = category
			categories = append(categories, cocoCategory{category, e.Label})
		}
		images = append(images, cocoImage{id, e.ID + ".jpg", stored.FrameWidth, stored.FrameHeight, e.Time, e.Frame})
		sx := float64(stored.FrameWidth) / float64(max(e.Width, 1))
		sy := float64(stored.FrameHeight) / float64(max(e.Height, 1))
		box := [4]float64{e.Box[0] * sx, e.Box[1] * sy, (e.Box[2] - e.Box[0]) * sx, (e.Box[3] - e.Box[1]) * sy}
		annotations = append(annotations, cocoAnnotation{id, id, category, box, box[2] * box[3], 0, e.Score})
		return nil
	})
	if whole {
		writeJSON(out, http.StatusOK, map[string]any{"images": images, "annotations": annotations, "categories": categories})
	}
}
