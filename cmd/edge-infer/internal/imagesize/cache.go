package imagesize

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// patience is how long a start waits for the first images of new cameras and files.
const patience = 10 * time.Second

// Camera is one whose images' size matters.
type Camera struct{ Name, URI string }

// Cache remembers the image sizes of cameras between runs, so that a camera that is unavailable at a start does not change the network's
// shape, which would rebuild its engine plan. Any goroutine may use it.
type Cache struct {
	path string // empty: it forgets

	mu    sync.Mutex
	known map[string]known
}

type known struct {
	URI    string `json:"uri"` // without credentials
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// Open reads the directory; an empty path keeps nothing. Unreadable entries are probed again.
func Open(dir string) *Cache {
	m := &Cache{known: map[string]known{}}
	if dir == "" {
		return m
	}
	m.path = filepath.Join(dir, "images.json")
	if data, err := os.ReadFile(m.path); err == nil && json.Unmarshal(data, &m.known) != nil {
		m.known = map[string]known{}
	}
	return m
}

// Sizes returns the image sizes of the cameras and probes those that are unknown. It returns nil unless all are known: a shape that fits
// only some would scale the others down more than needed.
func (m *Cache) Sizes(ctx context.Context, cameras []Camera, logger *slog.Logger) []engine.Size {
	sizes := make([]engine.Size, len(cameras))
	var uris []string
	var places []int
	for i, c := range cameras {
		if sizes[i] = m.Size(c); sizes[i].Width > 0 {
			continue
		}
		uris, places = append(uris, c.URI), append(places, i)
	}
	missing := false
	for i, size := range Probe(ctx, uris, patience) {
		if c := cameras[places[i]]; size.Width == 0 {
			missing = true
			logger.Warn("the network's size is not fitted to the cameras: one has shown no image (set --imgsz, or start again when it has)",
				"camera", c.Name)
		}
		sizes[places[i]] = size
	}
	if missing {
		return nil
	}
	return sizes
}

// Size returns the size of a camera's images; zero if unknown.
func (m *Cache) Size(c Camera) engine.Size {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was := m.known[c.Name]; was.URI == capture.Redact(c.URI) && was.Width > 0 && was.Height > 0 {
		return engine.Size{Width: was.Width, Height: was.Height}
	}
	return engine.Size{}
}

// Update remembers how large a camera's images are, and reports whether that is news.
func (m *Cache) Update(c Camera, size engine.Size) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := known{URI: capture.Redact(c.URI), Width: size.Width, Height: size.Height}
	if size.Width == 0 || m.known[c.Name] == now {
		return false
	}
	m.known[c.Name] = now
	return true
}

// Save writes the known sizes for the next run.
func (m *Cache) Save() error {
	if m.path == "" {
		return nil
	}
	m.mu.Lock()
	data, err := json.Marshal(m.known)
	m.mu.Unlock()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(m.path), 0o750); err != nil {
		return err
	}
	return atomicfile.Write(m.path, data, 0o640)
}
