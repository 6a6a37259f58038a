package triton

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/engine/kserve"
)

// region is memory that this process and one server share: the input of one slot, and behind it its outputs.
type region struct {
	name   string // at the server, and of the file
	memory []byte
}

const (
	sharedFolder = "/dev/shm"
	regionPrefix = "edge-infer-"
)

// newRegion makes shared memory that only this user may open.
func newRegion(size int) (*region, error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	r := &region{name: regionPrefix + strconv.Itoa(os.Getpid()) + "-" + hex.EncodeToString(random[:])}
	file, err := os.OpenFile(r.path(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// Memory that is not there would be a signal at the first write instead of an error here.
	if err = unix.Fallocate(int(file.Fd()), 0, 0, int64(size)); err == nil {
		r.memory, err = unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%d bytes of shared memory: %w", size, err), os.Remove(r.path()))
	}
	return r, nil
}

func (r *region) path() string { return filepath.Join(sharedFolder, r.name) }

// close gives the memory back. A server that has it mapped keeps its own view.
func (r *region) close() {
	_ = os.Remove(r.path())   // a server's administrator may have removed it
	_ = unix.Munmap(r.memory) // fails only for memory that is not mapped
	r.memory = nil
}

// sweep removes the shared memory of processes that ended without closing it.
func sweep() {
	files, err := filepath.Glob(filepath.Join(sharedFolder, regionPrefix+"*"))
	if err != nil {
		return
	}
	for _, file := range files {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(file), regionPrefix), "-")
		pid, err := strconv.Atoi(owner)
		if err != nil || pid < 1 {
			continue
		}
		if _, err := os.Stat("/proc/" + owner); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(file) // somebody else's stays
		}
	}
}

// share registers memory for every slot with the server. The error says why tensors are sent instead.
func (p *endpoint) share(ctx context.Context) error {
	e := p.engine
	for range e.slots {
		r, err := newRegion(e.layout.size)
		if err == nil {
			p.regions = append(p.regions, r)
			err = p.wire.register(ctx, kserve.Registration{Name: r.name, Key: "/" + r.name, Size: int64(len(r.memory))})
		}
		if err != nil {
			p.unshare(ctx)
			return err
		}
	}
	p.shared.Store(true)
	return nil
}

// unshare takes the registrations back. What the server still does for an abandoned request it does in memory that is not used again.
func (p *endpoint) unshare(ctx context.Context) {
	for _, r := range p.regions {
		_ = p.wire.unregister(ctx, r.name) // a server that was started again has none
		r.close()
	}
	p.regions = nil
	p.shared.Store(false)
}

// layout is where the input and the outputs of a request lie in a region. Only pictures go that way.
type layout struct {
	size    int
	outputs []int // offset by output; nil when their sizes are not known before
	bytes   []int // of one picture, by output
}

const regionAlignment = 64

// arrange lays out regions for batches of that size.
func (e *Engine) arrange() {
	up := func(n int) int { return (n + regionAlignment - 1) / regionAlignment * regionAlignment }
	batch := e.model.MaxBatch
	l := layout{size: up(batch * e.picture.PictureBytes())}
	for _, out := range e.model.Outputs {
		if len(out.Shape) == 0 || out.Shape[0] != -1 && out.Shape[0] != int64(batch) {
			l.outputs, l.bytes = nil, nil
			break
		}
		bytes, ok := kserve.Bytes(kserve.Datatype(out.Type), out.Shape[1:])
		if !ok {
			l.outputs, l.bytes = nil, nil
			break
		}
		l.outputs, l.bytes = append(l.outputs, l.size), append(l.bytes, bytes)
		l.size += up(batch * bytes)
	}
	e.layout = l
}
