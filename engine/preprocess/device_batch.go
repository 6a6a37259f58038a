package preprocess

import (
	"cmp"
	"errors"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Device writes images into a network's input in the memory of a GPU, for engines whose network runs in another process. It may be used
// from any goroutine.
type Device struct {
	device   *cuda.Device
	module   *cuda.Module
	function cuda.Function
	input    engine.ImageInput
}

// NewDevice opens the GPU of that number and compiles the input's kernel for it.
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

// Lock page-locks memory that images will be in, so that the GPU reads it without another copy on the way; nil where it cannot. What is
// returned is freed before the memory is given back.
func (d *Device) Lock(data []byte) *cuda.HostMemory {
	if !d.device.Facts().RegistersMemory {
		return nil
	}
	memory, err := d.device.Register(data)
	if err != nil {
		return nil // copies take longer then
	}
	return memory
}

// Close gives the GPU back, after every batch and all memory of it. It does nothing on nil.
func (d *Device) Close() error {
	if d == nil {
		return nil
	}
	return errors.Join(d.module.Close(), d.device.Close())
}

// DeviceBatch is a Batch in the memory of a GPU that another process may open. It belongs to one goroutine at a time.
type DeviceBatch struct {
	// Handle names the memory to other processes. They find the batch positions there one behind the other.
	Handle []byte

	device    *Device
	stream    *cuda.Stream
	memory    *cuda.Memory
	images    []*cuda.Memory // as they came, by batch position; each grows to the largest seen
	arguments *LetterboxArguments
	kernel    cuda.Kernel
}

// NewBatch returns a batch of at most that many positions. They hold zeros.
func (d *Device) NewBatch(most int) (*DeviceBatch, error) {
	b := &DeviceBatch{device: d, images: make([]*cuda.Memory, most), arguments: &LetterboxArguments{}}
	b.kernel = cuda.Kernel{Function: d.function, Arguments: cuda.Bytes(b.arguments)}
	size := (most*d.input.ImageBytes() + 3) &^ 3
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

// Run writes the images into the batch positions, waits until they are there, and appends where each of them was put to transforms. It
// gives the size of the batch that the network runs, as Batch.Run does. After an error the GPU may be of no use any more.
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

// grow makes room for an image. Nothing is in flight between two runs, and what this one enqueued before has memory of its own.
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

// Close frees the memory, which no other process may have open any more. It is idempotent and does nothing on nil.
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
