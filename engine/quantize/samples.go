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

// Sample is the input of one run: an image, which the engine preprocesses as for inference, or the tensors of a model without an image
// input.
type Sample struct {
	Image   engine.Image
	Tensors []engine.Tensor // if not empty, used instead of Image
}

// Samples are the inputs for calibration or for the gate. Implementations may reuse the memory of a Sample for the next one.
type Samples interface {
	Len() int
	// Name identifies sample i in messages.
	Name(i int) string
	// Load reads sample i. The sample is valid until the next Load.
	Load(i int) (Sample, error)
	// Hash changes if any sample does.
	Hash() (string, error)
}

// Images are samples from image files.
type Images struct {
	// Files are the images in the order of use.
	Files []string
	// Decode reads one file into an image.
	Decode func(path string) (engine.Image, error)
}

// imageSuffixes are the file types of ChooseImages.
var imageSuffixes = []string{".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm"}

// ChooseImages lists images under dir with subdirectories and linked ones: count of them drawn with seed, or all if count is 0 or larger
// than their number. The same directory, count and seed give the same list.
func ChooseImages(dir string, count int, seed uint64) ([]string, error) {
	files, err := appendImages(nil, dir, map[string]bool{})
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

// appendImages appends the images under dir. visited has the directories that were listed, so that links in a circle end.
func appendImages(files []string, dir string, visited map[string]bool) ([]string, error) {
	target, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	if visited[target] {
		return files, nil
	}
	visited[target] = true
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		path, directory := filepath.Join(dir, entry.Name()), entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(path)
			directory = err == nil && info.IsDir() // a broken link is reported when it is read
		}
		switch {
		case directory:
			if files, err = appendImages(files, path, visited); err != nil {
				return nil, err
			}
		case slices.Contains(imageSuffixes, strings.ToLower(filepath.Ext(path))):
			files = append(files, path)
		}
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

// Hash implements Samples. It hashes the files' contents, not their names.
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

// Overlap returns the number of files of p with the same content as one of other.
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

// maxUnreadable is the share of samples, one in this many, that may be unreadable.
const maxUnreadable = 10

// Each loads the samples in order, skips unreadable ones, and calls use for the others. It returns the names of the skipped ones. If more
// than a tenth or all are unreadable, it returns an error.
func Each(samples Samples, use func(i int, s Sample) error) (skipped []string, err error) {
	total := samples.Len()
	if total == 0 {
		return nil, unsupported("samples", "no samples", "name a directory with images")
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
