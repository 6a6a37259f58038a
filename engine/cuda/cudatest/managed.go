package cudatest

import (
	"unsafe"

	"gorgonia.org/cu"

	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Managed is memory that the driver moves between host and device as it is used, valid until Free. Data is not Go heap memory; on a device
// without concurrent access it must not be touched while work of the device is in flight.
type Managed struct {
	Data    []byte
	Address uint64
	device  *cuda.Device
}

// AllocManaged allocates size bytes of managed memory. Few drivers of virtual GPUs, and none without a GPU, have it.
func AllocManaged(d *cuda.Device, size int) (*Managed, error) {
	m := &Managed{device: d}
	err := d.Do(func() error {
		address, err := cu.MemAllocManaged(int64(size), cu.AttachGlobal)
		if err != nil {
			return wrap("allocate", "managed memory", err)
		}
		m.Address = uint64(address)
		m.Data = unsafe.Slice(memoryAt(m.Address), size)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// memoryAt returns the host address of managed memory, which is its device address.
func memoryAt(address uint64) *byte { return *(**byte)(unsafe.Pointer(&address)) }

// Free frees the memory. It is idempotent and does nothing on nil. No work that uses the memory may be in flight.
func (m *Managed) Free() error {
	if m == nil || m.Data == nil {
		return nil
	}
	address := cu.DevicePtr(m.Address)
	m.Data, m.Address = nil, 0
	return m.device.Do(func() error { return wrap("free", "managed memory", cu.MemFree(address)) })
}
