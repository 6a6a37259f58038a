package quantize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strings"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

const cacheVersion = 1

// Cache stores the ranges of a model's tensors, so that other methods and later runs need not measure again.
type Cache struct {
	Version int `json:"version"`
	// Model and Samples are the SHA-256 of the prepared model's bytes and of the samples' contents.
	Model      string   `json:"model"`
	Samples    string   `json:"samples"`
	Count      int      `json:"count"`
	Skipped    []string `json:"skipped,omitempty"` // unreadable samples
	Percentile float64  `json:"percentile"`
	Ranges     Ranges   `json:"ranges"`
}

// maxCache limits the size of a cache file; a range takes about 200 bytes.
const maxCache = 64 << 20

// ReadCache reads a calibration cache.
func ReadCache(path string) (*Cache, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read calibration cache: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCache+1))
	if err != nil {
		return nil, fmt.Errorf("read calibration cache: %w", err)
	}
	cache, err := ParseCache(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cache, nil
}

// ParseCache parses a calibration cache. Those of TensorRT have scales without limits for each method; only its own calibrators read them.
func ParseCache(data []byte) (*Cache, error) {
	const op, hint = "calibration cache", "remove the file to calibrate again"
	if len(data) > maxCache {
		return nil, unsupported(op, "larger than %d bytes", hint, maxCache)
	}
	trimmed := bytes.TrimSpace(data)
	if bytes.HasPrefix(trimmed, []byte("TRT-")) {
		return nil, unsupported(op, "that of TensorRT cannot be used for Q/DQ nodes", "name another file to calibrate")
	}
	if !bytes.HasPrefix(trimmed, []byte("{")) {
		return nil, unsupported(op, "it is not JSON", hint)
	}
	cache := new(Cache)
	if err := json.Unmarshal(trimmed, cache); err != nil {
		return nil, unsupported(op, "damaged: %v", hint, err)
	}
	if cache.Version != cacheVersion {
		return nil, unsupported(op, "version %d, this program writes %d", hint, cache.Version, cacheVersion)
	}
	for name, r := range cache.Ranges {
		for method, limit := range r.Limits {
			if !(limit >= 0 && limit <= math.MaxFloat32) {
				return nil, unsupported(op, "the %s limit %v of tensor %q is not a magnitude", hint, method, limit, name)
			}
		}
	}
	return cache, nil
}

// Fits reports whether the cache was measured on this prepared model with these samples and has every tensor.
func (c *Cache) Fits(model []byte, samples Samples, tensors []string) (bool, error) {
	if c.Model != hashBytes(model) {
		return false, nil
	}
	if samples != nil {
		hash, err := samples.Hash()
		if err != nil || hash != c.Samples {
			return false, err
		}
	}
	for _, name := range tensors {
		if _, known := c.Ranges[name]; !known {
			return false, nil
		}
	}
	return true, nil
}

// Save writes the cache as JSON and replaces the file atomically.
func (c *Cache) Save(path string) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("save calibration cache: %w", err)
	}
	return writeFile(path, append(data, '\n'))
}

func writeFile(path string, data []byte) error {
	if err := atomicfile.Write(path, data, 0o644); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	return nil
}

// FormatTensorRT returns the cache as text for the calibrators of TensorRT up to 10: a header with its version, such as 8503 or 100600, and
// one line per tensor with the bits of its scale. Entropy is for IInt8EntropyCalibrator2, all other methods for IInt8MinMaxCalibrator.
func (c *Cache) FormatTensorRT(version int, method Method) ([]byte, error) {
	header := "MinMaxCalibration"
	if method == Entropy {
		header = "EntropyCalibration2"
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "TRT-%d-%s\n", version, header)
	names := make([]string, 0, len(c.Ranges))
	for name := range c.Ranges {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		limit, measured := c.Ranges.Limit(name, method)
		if !measured {
			return nil, unsupported("calibration cache", "tensor %q has no %s limit", "calibrate again", name, method)
		}
		if strings.ContainsAny(name, "\n\r") {
			return nil, unsupported("calibration cache", "tensor name %q does not fit a line", "rename the tensor", name)
		}
		fmt.Fprintf(&text, "%s: %08x\n", name, math.Float32bits(Scale(limit)))
	}
	return text.Bytes(), nil
}
