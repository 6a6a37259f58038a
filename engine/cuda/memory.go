package cuda

// #include "ei_cuda.h"
//
// static int host_alloc(ei_cuda_context context, size_t bytes, void **memory, ei_cuda_pointer *address) {
//     int code = ei_cuda_use(context);
//     if (!code) code = cuMemHostAlloc(memory, bytes, 1 | 2);  // portable, mapped
//     if (!code && (code = cuMemHostGetDevicePointer_v2(address, *memory, 0))) cuMemFreeHost(*memory);
//     return code;
// }
//
// static int host_register(ei_cuda_context context, void *memory, size_t bytes, ei_cuda_pointer *address) {
//     int code = ei_cuda_use(context);
//     if (!code) code = cuMemHostRegister_v2(memory, bytes, 1 | 2);  // portable, mapped
//     if (!code && (code = cuMemHostGetDevicePointer_v2(address, memory, 0))) cuMemHostUnregister(memory);
//     return code;
// }
//
// static int share(ei_cuda_context context, ei_cuda_pointer memory, ei_cuda_memory_handle *handle) {
//     int code = ei_cuda_use(context);
//     return code ? code : cuIpcGetMemHandle(handle, memory);
// }
//
// static int host_free(ei_cuda_context context, void *memory, int registered) {
//     int code = ei_cuda_use(context);
//     return code ? code : registered ? cuMemHostUnregister(memory) : cuMemFreeHost(memory);
// }
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// HostMemory is page-locked host memory that the device reads and writes in place, valid until Free. Data is not Go heap memory.
type HostMemory struct {
	Data []byte
	// Address is the device address, valid on every device.
	Address    uint64
	device     *Device
	registered bool
}

// AllocHost allocates size bytes of mapped memory, aligned to at least 256 bytes and not cleared.
func (d *Device) AllocHost(size int) (*HostMemory, error) {
	var memory unsafe.Pointer
	var address C.ei_cuda_pointer
	code := C.host_alloc(d.c(), C.size_t(size), &memory, &address)
	if code != 0 {
		return nil, failure("allocate", fmt.Sprintf("%d bytes of page-locked memory", size), int(code))
	}
	return &HostMemory{Data: unsafe.Slice((*byte)(memory), size), Address: uint64(address), device: d}, nil
}

// Register page-locks memory that was allocated elsewhere, by mmap or by C, and maps it for the device. It must not be Go heap memory and
// must outlive Free. It needs Facts.RegistersMemory.
func (d *Device) Register(data []byte) (*HostMemory, error) {
	if len(data) == 0 {
		return nil, failure("register", "no memory", 1)
	}
	var address C.ei_cuda_pointer
	code := C.host_register(d.c(), unsafe.Pointer(&data[0]), C.size_t(len(data)), &address)
	if code != 0 {
		return nil, failure("register", fmt.Sprintf("%d bytes of host memory", len(data)), int(code))
	}
	return &HostMemory{Data: data, Address: uint64(address), device: d, registered: true}, nil
}

// Free frees the memory, or undoes Register. It is idempotent and does nothing on nil. No work that uses the memory may be in flight.
func (m *HostMemory) Free() error {
	if m == nil || m.Data == nil {
		return nil
	}
	registered := C.int(0)
	if m.registered {
		registered = 1
	}
	code := C.host_free(m.device.c(), unsafe.Pointer(&m.Data[0]), registered)
	m.Data, m.Address = nil, 0
	return failure("free", "page-locked memory", int(code))
}

// Memory is device memory, valid until Free.
type Memory struct {
	Address uint64
	Size    int
	device  *Device
}

// Alloc allocates size bytes on the device, aligned to 256 bytes and not cleared.
func (d *Device) Alloc(size int) (*Memory, error) {
	m := &Memory{Size: size, device: d}
	err := d.Do(func() error {
		address, err := cu.MemAlloc(int64(size))
		m.Address = uint64(address)
		return wrap("allocate", fmt.Sprintf("%d bytes of device memory", size), err)
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// sharedUnit is the granularity of shared memory in bytes. The driver takes smaller allocations from blocks of this size, and a whole block
// is shared.
const sharedUnit = 2 << 20

// AllocShared allocates memory that other processes can open with the returned handle, which memory of Alloc has not. Other processes must
// close the memory before Free. It returns an error if the device does not support this.
func (d *Device) AllocShared(size int) (*Memory, []byte, error) {
	m, err := d.Alloc((size + sharedUnit - 1) / sharedUnit * sharedUnit)
	if err != nil {
		return nil, nil, err
	}
	m.Size = size
	var handle C.ei_cuda_memory_handle
	code := C.share(d.c(), C.ei_cuda_pointer(m.Address), &handle)
	if code != 0 {
		return nil, nil, errors.Join(failure("share", fmt.Sprintf("memory of %s", d.facts.Name), int(code)), m.Free())
	}
	return m, C.GoBytes(unsafe.Pointer(&handle), C.int(unsafe.Sizeof(handle))), nil
}

// Free frees the memory. It is idempotent and does nothing on nil. No work that uses the memory may be in flight.
func (m *Memory) Free() error {
	if m == nil || m.Address == 0 {
		return nil
	}
	address := cu.DevicePtr(m.Address)
	m.Address = 0
	return m.device.Do(func() error { return wrap("free", "device memory", cu.MemFree(address)) })
}

func (d *Device) c() C.ei_cuda_context { return C.ei_cuda_context(d.Context()) }
