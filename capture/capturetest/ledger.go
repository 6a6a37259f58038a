// Package capturetest has what the tests of capture and of its sources share.
package capturetest

import "golang.org/x/sys/unix"

// Ledger gives frame memory outside the Go heap and keeps account of it; its method Alloc is a capture.Alloc.
type Ledger struct{ Made, Freed, Bytes int }

// Alloc maps memory.
func (l *Ledger) Alloc(size int) ([]byte, func(), error) {
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, err
	}
	l.Made++
	l.Bytes += size
	return data, func() {
		if err := unix.Munmap(data); err != nil {
			panic(err) // it is freed twice
		}
		l.Freed++
		l.Bytes -= size
	}, nil
}
