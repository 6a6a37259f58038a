package scene

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// MinLabelledShare is the minimum visible share of a labelled part; its box bounds the visible pixels. Parts below it are on the image
// without a label.
const MinLabelledShare = 0.3

// Format is the file format of a dataset's images.
type Format string

// The image formats. JPEG is written with quality 92.
const (
	JPEG Format = "jpg"
	PNG  Format = "png"
)

const jpegQuality = 92

// DatasetOptions configures WriteDataset.
type DatasetOptions struct {
	Count         int // images, 1 to 10 million
	Seed          uint64
	Width, Height int // pixels, 64 to 8192; 0 means 1280 and 720
	// PartSize is the approximate size of a part in pixels on every image; 0 varies it relative to the image size.
	PartSize int
	Format   Format // "" means JPEG
	// Progress, if set, is called after each image, one call at a time, from goroutines of WriteDataset.
	Progress func(done, total int)
}

const (
	mostImages   = 10_000_000
	smallestPart = 8 // pixels; smaller parts are indistinguishable
)

func (o *DatasetOptions) complete() error {
	if o.Width == 0 && o.Height == 0 {
		o.Width, o.Height = 1280, 720
	}
	if o.Format == "" {
		o.Format = JPEG
	}
	switch {
	case o.Count < 1 || o.Count > mostImages:
		return fmt.Errorf("count of %d images, must be 1 to %d", o.Count, mostImages)
	case o.Format != JPEG && o.Format != PNG:
		return fmt.Errorf("unknown image format %q, choose %s or %s", o.Format, JPEG, PNG)
	case o.PartSize != 0 && (o.PartSize < smallestPart || o.PartSize > largestUnit):
		return fmt.Errorf("parts of %d pixels, must be %d to %d", o.PartSize, smallestPart, largestUnit)
	}
	return checkSides(o.Width, o.Height)
}

// WriteDataset renders Count independent scenes of the seed into dir, which it creates and which must be empty: images in images/, one YOLO
// label file per image in labels/, COCO annotations in annotations.json, and data.yaml for training tools. The same options give the same
// files on the same processor architecture. It stops when the context ends or a file cannot be written. annotations.json is written last,
// so a directory that has it is complete.
func WriteDataset(ctx context.Context, dir string, options DatasetOptions) error {
	if err := options.complete(); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	if err := prepare(dir); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	w := writer{dir: dir, options: options, catalogue: newCatalogue(catalogueResolution), labels: make([][]Part, options.Count)}
	if err := w.images(ctx); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	if err := w.index(); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	return nil
}

// catalogueResolution is in texels per unit: the size of a part on most images.
const catalogueResolution = 112

// prepare creates the directories and refuses a directory with other files.
func prepare(dir string) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("directory %s is not empty, choose a new one", dir)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, sub := range []string{"images", "labels"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// writer is one run of WriteDataset.
type writer struct {
	dir       string
	options   DatasetOptions
	catalogue *catalogue
	labels    [][]Part // by image, each written by the goroutine that rendered it

	mu   sync.Mutex // guards what follows
	next int
	done int
	err  error
}

// images renders on all processors.
func (w *writer) images(ctx context.Context) error {
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), w.options.Count) {
		workers.Go(func() {
			studio := newStudio(w.catalogue, w.options.Width, w.options.Height)
			studio.part = float64(w.options.PartSize)
			img := image.NewRGBA(image.Rect(0, 0, w.options.Width, w.options.Height))
			for n, ok := w.claim(ctx); ok; n, ok = w.claim(ctx) {
				w.finished(w.img(studio, img, n))
			}
		})
	}
	workers.Wait()
	return w.err
}

// claim returns the number of the next image until all are rendered, one has failed or the context has ended.
func (w *writer) claim(ctx context.Context) (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && w.next < w.options.Count {
		w.err = ctx.Err()
	}
	if w.err != nil || w.next == w.options.Count {
		return 0, false
	}
	w.next++
	return w.next - 1, true
}

func (w *writer) finished(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if w.err == nil {
			w.err = err
		}
		return
	}
	w.done++
	if w.options.Progress != nil {
		w.options.Progress(w.done, w.options.Count)
	}
}

func (w *writer) img(studio *studio, img *image.RGBA, n int) error {
	for _, p := range studio.shot(w.options.Seed, uint64(n)) {
		if p.Visible >= MinLabelledShare {
			w.labels[n] = append(w.labels[n], p)
		}
	}
	for i := range len(studio.pixels) / 3 {
		from, to := studio.pixels[3*i:][:3], img.Pix[4*i:][:4]
		to[0] = from[2]
		to[1] = from[1]
		to[2] = from[0]
		to[3] = 255
	}
	err := create(filepath.Join(w.dir, w.file(n)), func(to io.Writer) error {
		if w.options.Format == PNG {
			return png.Encode(to, img)
		}
		return jpeg.Encode(to, img, &jpeg.Options{Quality: jpegQuality})
	})
	if err != nil {
		return err
	}
	return create(filepath.Join(w.dir, "labels", fmt.Sprintf("%06d.txt", n)), func(to io.Writer) error {
		return writeYOLO(to, w.labels[n], w.options.Width, w.options.Height)
	})
}

// file returns the image's path below the dataset's directory.
func (w *writer) file(n int) string { return fmt.Sprintf("images/%06d.%s", n, w.options.Format) }

// index writes data.yaml and annotations.json.
func (w *writer) index() error {
	err := create(filepath.Join(w.dir, "data.yaml"), func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "path: .\ntrain: images\nval: images\nnc: %d\nnames: [%s]\n", len(names), strings.Join(names[:], ", "))
		return err
	})
	if err != nil {
		return err
	}
	return create(filepath.Join(w.dir, "annotations.json"), func(to io.Writer) error {
		return json.NewEncoder(to).Encode(w.coco())
	})
}

// create writes a complete file or returns an error.
func create(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(f, 64<<10)
	err = write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
