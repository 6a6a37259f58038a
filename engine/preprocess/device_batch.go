package preprocess

import (
	"cmp"
	"errors"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Device writes images into a network's input in GPU memory, for engines whose network runs in another process. It may be used from any
// goroutine.
type Device struct {
	device   *cuda.Device
	module   *cuda.Module
	function cuda.Function
	input    engine.ImageInput
}

// NewDevice opens a GPU by number and compiles the kernel for the input.
func NewDevice(ordinal int, input *engine.ImageInput) (*Device, error) {
	device, err := cuda.Open(ordinal)
	if err != nil {
		return nil, err
	}
	d := &Device{device: device, input: *input}
	if d.module, err = device.NewModule(PTX()); err == nil {
		d.function, err = d.module.Function(ImageKernel(input))
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Lock page-locks memory for images, so that the GPU reads it without an intermediate copy. It returns nil if that is not possible. The
// result must be freed before the memory.
func (d *Device) Lock(data []byte) *cuda.HostMemory {
	if !d.device.Facts().RegistersMemory {
		return nil
	}
	memory, err := d.device.Register(data)
	if err != nil {
		return nil // copies are slower
	}
	return memory
}

// Close closes the GPU. Its batches and memory must be closed before. It does nothing on nil.
func (d *Device) Close() error {
	if d == nil {
		return nil
	}
	return errors.Join(d.module.Close(), d.device.Close())
}

// DeviceBatch is a Batch in GPU memory that another process may open. It must not be used by two goroutines at once.
type DeviceBatch struct {
	// Handle is for other processes to open the memory, which holds the batch positions in order.
	Handle []byte

	device    *Device
	stream    *cuda.Stream
	memory    *cuda.Memory
	images    []*cuda.Memory // as they came, by batch position; each grows to the largest seen
	arguments *LetterboxArguments
	kernel    cuda.Kernel
}

// NewBatch returns a batch of the given number of positions, filled with zeros.
func (d *Device) NewBatch(positions int) (*DeviceBatch, error) {
	b := &DeviceBatch{device: d, images: make([]*cuda.Memory, positions), arguments: &LetterboxArguments{}}
	b.kernel = cuda.Kernel{Function: d.function, Arguments: cuda.Bytes(b.arguments)}
	size := (positions*d.input.ImageBytes() + 3) &^ 3
	var err error
	if b.stream, err = d.device.NewStream(); err == nil {
		b.memory, b.Handle, err = d.device.AllocShared(size)
	}
	if err == nil {
		err = cmp.Or(b.stream.Fill(b.memory.Address, 0, size/4), b.stream.Synchronize())
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Run writes the images into the batch positions, waits for completion and appends their transforms. It returns the batch size to run, as
// Batch.Run does. After an error the GPU may be unusable.
func (b *DeviceBatch) Run(images []engine.Image, transforms []engine.Transform) (int, []engine.Transform, error) {
	in := &b.device.input
	for i := range images {
		im := &images[i]
		if err := im.Check(); err != nil {
			return 0, transforms, err
		}
		img := im.Data[:im.Stride*(im.Format.Rows(im.Height)-1)+im.Format.RowBytes(im.Width)]
		if err := b.grow(i, len(img)); err != nil {
			return 0, transforms, err
		}
		if err := b.stream.Upload(b.images[i].Address, img); err != nil {
			return 0, transforms, err
		}
		var g Geometry
		*b.arguments, g = NewLetterboxArguments(im, b.images[i].Address, in, b.memory.Address+uint64(i*in.ImageBytes()))
		b.kernel.Grid, b.kernel.Block = b.arguments.Grid()
		if err := b.stream.Launch(&b.kernel); err != nil {
			return 0, transforms, err
		}
		transforms = append(transforms, g.Transform())
	}
	if err := b.stream.Synchronize(); err != nil {
		return 0, transforms, err
	}
	if in.Batch > 0 {
		return in.Batch, transforms, nil
	}
	return len(images), transforms, nil
}

// grow ensures the memory for an image. Nothing else uses it: no work is in flight between runs, and each position has its own memory.
func (b *DeviceBatch) grow(i, size int) error {
	if b.images[i] != nil && b.images[i].Size >= size {
		return nil
	}
	memory, err := b.device.device.Alloc(size)
	if err != nil {
		return err
	}
	old := b.images[i]
	b.images[i] = memory
	return old.Free()
}

// Close frees the memory, which other processes must have closed. It is idempotent and does nothing on nil.
func (b *DeviceBatch) Close() error {
	if b == nil {
		return nil
	}
	errs := []error{b.memory.Free(), b.stream.Close()}
	for _, img := range b.images {
		errs = append(errs, img.Free())
	}
	return errors.Join(errs...)
}
