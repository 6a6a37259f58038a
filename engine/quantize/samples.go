package quantize

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
)

// Sample is what a model is given once: an image, which the engine letterboxes as in service, or the tensors of a model without an image
// input.
type Sample struct {
	Image   engine.Image
	Tensors []engine.Tensor // when not empty, fed instead of Image
}

// Samples are what a model is calibrated on or judged by. Implementations may reuse the memory of a Sample for the next one.
type Samples interface {
	Len() int
	// Name is how messages call sample i.
	Name(i int) string
	// Load reads sample i. The sample is used until the next Load.
	Load(i int) (Sample, error)
	// Hash changes when any sample does.
	Hash() (string, error)
}

// Images are samples from image files.
type Images struct {
	// Files are the images, in the order in which they are used.
	Files []string
	// Decode reads one file into an image.
	Decode func(path string) (engine.Image, error)
}

// imageSuffixes are the files that ChooseImages takes.
var imageSuffixes = []string{".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm"}

// ChooseImages lists images under dir, subdirectories included: count of them drawn with seed, or all when count is 0 or more than
// there are. The same directory, count and seed give the same list.
func ChooseImages(dir string, count int, seed uint64) ([]string, error) {
	var files []string
	root := dir
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		root += string(filepath.Separator) // has a directory walked into that is a link
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() && slices.Contains(imageSuffixes, strings.ToLower(filepath.Ext(path))) {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list images: %w (give a directory that exists and is readable)", err)
	}
	if len(files) == 0 {
		return nil, unsupported("images", "none in %q", "give a directory with "+strings.Join(imageSuffixes, ", ")+" files", dir)
	}
	slices.Sort(files)
	if count > 0 && count < len(files) {
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		files = files[:count]
		slices.Sort(files)
	}
	return files, nil
}

// Len implements Samples.
func (p *Images) Len() int { return len(p.Files) }

// Name implements Samples.
func (p *Images) Name(i int) string { return p.Files[i] }

// Load implements Samples.
func (p *Images) Load(i int) (Sample, error) {
	im, err := p.Decode(p.Files[i])
	return Sample{Image: im}, err
}

// Hash implements Samples: it is over the files' contents, not their names.
func (p *Images) Hash() (string, error) {
	sum := sha256.New()
	for _, path := range p.Files {
		one, err := fileHash(path)
		if err != nil {
			return "", fmt.Errorf("hash images: %w", err)
		}
		sum.Write(one)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Overlap counts the files of p that have the contents of one of other: images that a model was calibrated on say little about its
// accuracy.
func (p *Images) Overlap(other *Images) (int, error) {
	seen := make(map[string]bool, len(other.Files))
	for _, path := range other.Files {
		sum, err := fileHash(path)
		if err != nil {
			return 0, fmt.Errorf("compare images: %w", err)
		}
		seen[string(sum)] = true
	}
	count := 0
	for _, path := range p.Files {
		sum, err := fileHash(path)
		if err != nil {
			return 0, fmt.Errorf("compare images: %w", err)
		}
		if seen[string(sum)] {
			count++
		}
	}
	return count, nil
}

func fileHash(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return sum.Sum(nil), err
}

// maxUnreadable is the share of samples, one in this many, that may be unreadable before a run is given up.
const maxUnreadable = 10

// each loads the samples one after the other, skipping unreadable ones, and calls use for the rest. It returns the names of the skipped
// ones. More than a tenth, or all, is an error.
func each(samples Samples, use func(i int, s Sample) error) (skipped []string, err error) {
	total := samples.Len()
	if total == 0 {
		return nil, unsupported("samples", "there are none", "name a directory with images")
	}
	var last error
	for i := range total {
		s, err := samples.Load(i)
		if err != nil {
			skipped, last = append(skipped, samples.Name(i)), err
			if len(skipped) == total || len(skipped) > max(total/maxUnreadable, 1) {
				return skipped, &engine.Error{
					Op: "samples", Backend: "quantize",
					Message: fmt.Sprintf("%d of %d samples cannot be read, the last one %q", len(skipped), total, samples.Name(i)), Err: last,
					Hint: "remove or replace the unreadable files",
				}
			}
			continue
		}
		if err := use(i, s); err != nil {
			var shape *engine.Error
			if errors.As(err, &shape) {
				return skipped, fmt.Errorf("sample %q: %w", samples.Name(i), err)
			}
			return skipped, err
		}
	}
	return skipped, nil
}
