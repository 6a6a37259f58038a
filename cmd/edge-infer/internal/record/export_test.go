package record

import (
	"context"
	"sync/atomic"
	"time"
)

// For package record_test, which uses the event store as well.
var (
	Encode = encode
	Probe  = probe
	Check  = check
)

// File returns the path of a clip's file.
func (r *Recorder) File(clip *Clip) string { return r.file(clip) }

// Recover does what Run begins with.
func (r *Recorder) Recover(ctx context.Context) error {
	err := r.prepare(ctx)
	if err == nil {
		err = r.sweep(ctx)
	}
	return err
}

// slowDisk is a disk that takes so many bytes per second, of all files together.
type slowDisk struct {
	rate atomic.Int64
	busy chan struct{} // a mutex would stop the clock of a synctest bubble
}

// SlowDisk makes a recorder write that many bytes per second at most. It is called before Open.
func (r *Recorder) SlowDisk(rate int64) *slowDisk {
	d := &slowDisk{busy: make(chan struct{}, 1)}
	d.rate.Store(rate)
	r.create = func(path string) (file, error) {
		f, err := createFile(path)
		return &slowFile{f, d}, err
	}
	return d
}

// slowFile is a file on it.
type slowFile struct {
	file
	disk *slowDisk
}

func (f *slowFile) Write(data []byte) (int, error) {
	f.disk.busy <- struct{}{}
	time.Sleep(time.Second * time.Duration(len(data)) / time.Duration(f.disk.rate.Load()))
	<-f.disk.busy
	return f.file.Write(data)
}
