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

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
)

// Kinds of memory for images to a server on this machine.
const (
	SystemMemory = "on"   // POSIX shared memory
	CUDAMemory   = "cuda" // GPU memory, or POSIX shared memory if that fails
	NoMemory     = "off"  // images are sent over the connection
)

// ParseSharedMemory parses a setting: one of the three kinds, or a boolean.
func ParseSharedMemory(text string) (string, error) {
	switch strings.ToLower(text) {
	case SystemMemory, "true", "yes", "1":
		return SystemMemory, nil
	case NoMemory, "false", "no", "0":
		return NoMemory, nil
	case CUDAMemory:
		return CUDAMemory, nil
	}
	return "", fmt.Errorf("%q is not %s, %s or %s", text, SystemMemory, CUDAMemory, NoMemory)
}

// region is memory shared with one server, which knows it by its name.
type region struct {
	kserve.Registration
	memory []byte // nil for GPU memory, which the slot owns
}

// regionPair is the shared memory of one slot and one server: the images and, if their sizes are known, the outputs. Outputs are always in
// system memory, since the CPU reads them.
type regionPair struct{ input, outputs *region }

const (
	sharedDir    = "/dev/shm"
	regionPrefix = "edge-infer-"
)

// regionName returns a unique name that contains the process ID.
func regionName() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return regionPrefix + strconv.Itoa(os.Getpid()) + "-" + hex.EncodeToString(random[:])
}

// newRegion creates POSIX shared memory that only this user may open.
func newRegion(size int) (*region, error) {
	r := &region{Registration: kserve.Registration{Name: regionName(), Size: int64(size)}}
	r.Key = "/" + r.Name
	file, err := os.OpenFile(r.path(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// Without allocation, a lack of memory would raise SIGBUS at the first write.
	if err = unix.Fallocate(int(file.Fd()), 0, 0, int64(size)); err == nil {
		r.memory, err = unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%d bytes of shared memory: %w", size, err), os.Remove(r.path()))
	}
	return r, nil
}

func (r *region) path() string { return filepath.Join(sharedDir, r.Name) }

// close frees the memory. A server that has it mapped keeps its own mapping.
func (r *region) close() {
	if r.memory == nil {
		return
	}
	_ = os.Remove(r.path())   // a server's administrator may have removed it
	_ = unix.Munmap(r.memory) // fails only for memory that is not mapped
	r.memory = nil
}

// sweep removes the shared memory of processes that ended without closing it.
func sweep() {
	files, err := filepath.Glob(filepath.Join(sharedDir, regionPrefix+"*"))
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
			_ = os.Remove(file) // fails for other users' files
		}
	}
}

// share sets up shared memory for all slots: GPU memory if configured and working, else system memory. An error means that tensors are sent
// instead; unshared is the reason why GPU memory is not used.
func (p *endpoint) share(ctx context.Context) (unshared string, err error) {
	e := p.engine
	unshared = e.gpuDisabledReason()
	if e.remote.SharedMemory == CUDAMemory && unshared == "" {
		if err = p.register(ctx, true); err == nil {
			err = p.tryShared(ctx, p.regions[0])
		}
		if err == nil {
			p.onGPU.Store(true)
			return "", nil
		}
		p.unshare(ctx)
		unshared = "the server refuses it: " + e.explain(err) +
			" (it must see the same GPU under the same number; in a container that takes the host's IPC and PID namespaces)"
	}
	if err = p.register(ctx, false); err != nil {
		p.unshare(ctx)
	}
	return unshared, err
}

// register creates the regions of all slots and registers them with the server.
func (p *endpoint) register(ctx context.Context, onGPU bool) error {
	e := p.engine
	for _, s := range e.slots {
		l := &regionPair{}
		p.regions = append(p.regions, l)
		var err error
		if onGPU {
			l.input = &region{Registration: kserve.Registration{
				Name: regionName(), Handle: s.device.Handle, Device: e.ordinal, Size: int64(e.layout.input),
			}}
		} else if l.input, err = newRegion(e.layout.input); err != nil {
			return err
		}
		if err = p.wire.register(ctx, l.input.Registration); err != nil {
			return err
		}
		if len(e.layout.outputs) == 0 {
			continue
		}
		if l.outputs, err = newRegion(e.layout.output); err == nil {
			err = p.wire.register(ctx, l.outputs.Registration)
		}
		if err != nil {
			return err
		}
	}
	p.shared.Store(true)
	return nil
}

// unshare unregisters and frees the regions. A server that still works on an abandoned request uses its own mapping of system memory; it
// may read newer images from GPU memory, but the result is discarded.
func (p *endpoint) unshare(ctx context.Context) {
	for _, l := range p.regions {
		for _, r := range []*region{l.input, l.outputs} {
			if r != nil {
				_ = p.wire.unregister(ctx, r.Registration) // unknown to a server that restarted
				r.close()
			}
		}
	}
	p.regions = nil
	p.shared.Store(false)
	p.onGPU.Store(false)
}

// tryShared runs the model once on the current content of a slot's regions.
func (p *endpoint) tryShared(ctx context.Context, l *regionPair) error {
	e := p.engine
	batch := max(e.img.Batch, 1)
	r, a := &request{}, e.newAnswer(e.largestAnswer(batch))
	defer a.memory.End()
	r.Inputs = []kserve.Tensor{{
		Name: e.model.Inputs[0].Name, Datatype: kserve.Datatype(e.img.Type), Shape: e.img.Shape(batch),
	}}
	l.place(e, r, batch)
	r.Inputs = e.withAuxiliary(r.Inputs, batch)
	err := p.wire.infer(ctx, r, a)
	if err == nil {
		err = l.collect(e, r, a)
	}
	if err == nil {
		_, err = e.ordered(nil, &a.InferResponse, int64(batch))
	}
	return err
}

// place makes a request read its image from the region and, if their sizes are known, write the outputs there.
func (l *regionPair) place(e *Engine, r *request, batch int) {
	r.Inputs[0].Data = nil
	r.Inputs[0].Region = kserve.Region{Name: l.input.Name, Size: int64(batch * e.img.ImageBytes())}
	r.Outputs = r.Outputs[:0]
	for i, offset := range e.layout.outputs {
		r.Outputs = append(r.Outputs, kserve.Tensor{
			Name:   e.model.Outputs[i].Name,
			Region: kserve.Region{Name: l.outputs.Name, Offset: int64(offset), Size: int64(batch * e.layout.bytes[i])},
		})
	}
}

// collect sets the data of outputs that the server wrote to the region.
func (l *regionPair) collect(e *Engine, r *request, a *answer) error {
	for i := range a.Outputs {
		t := &a.Outputs[i]
		for k := range r.Outputs {
			wanted := &r.Outputs[k]
			if wanted.Name != t.Name || len(t.Data) > 0 {
				continue
			}
			size, ok := kserve.Bytes(t.Datatype, t.Shape)
			if !ok || int64(size) > wanted.Region.Size {
				return e.refuse(engine.ErrShape, "the server sent output %q as %.16s %v, larger than its shared memory", t.Name, t.Datatype, t.Shape)
			}
			t.Data = l.outputs.memory[wanted.Region.Offset : wanted.Region.Offset+int64(size)]
		}
	}
	return nil
}

// layout has the sizes of a slot's regions and the offsets of the outputs.
type layout struct {
	input, output int   // bytes
	outputs       []int // offsets; nil if the sizes are not known before the run
	bytes         []int // per image, by output
}

const regionAlignment = 64

// planLayout computes the layout for the largest batch.
func (e *Engine) planLayout() {
	up := func(n int) int { return (n + regionAlignment - 1) / regionAlignment * regionAlignment }
	batch := e.model.MaxBatch
	l := layout{input: up(batch * e.img.ImageBytes())}
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
		l.outputs, l.bytes = append(l.outputs, l.output), append(l.bytes, bytes)
		l.output += up(batch * bytes)
	}
	if l.output == 0 {
		l.outputs, l.bytes = nil, nil
	}
	e.layout = l
}
