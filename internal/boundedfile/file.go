// Package boundedfile reads the files that settings name: secrets, certificates, configurations, models. Whatever a path leads to, a read
// ends: a pipe, a device, an endless file and a file system that does not answer are errors.
package boundedfile

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// Small is a limit in bytes of a secret, a key or a bundle of certificates.
	Small = 4 << 20

	// limit is the time that a file system has to answer. Networked ones need seconds while a server restarts.
	limit = 5 * time.Second
	// part is how many bytes of a large file are read within limit: 0.8 MB/s are enough.
	part = 4 << 20
	// mostAbandoned is the number of calls that may wait for file systems in the background. Each keeps a thread.
	mostAbandoned = 32
)

// Read returns the content of a regular file of at most so many bytes. Errors are *fs.PathError, as those of os.ReadFile.
func Read(path string, most int64) ([]byte, error) {
	return Call(path, func() ([]byte, error) { return read(path, most) })
}

// ReadLarge returns the content of a regular file of any size, while its file system goes on answering.
func ReadLarge(path string) ([]byte, error) {
	file, err := Call(path, func() (*os.File, error) { return open(path) })
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := Call(path, func() (int64, error) { return file.Seek(0, io.SeekEnd) })
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, size+1) // one more for the end
	for {
		data = slices.Grow(data, 1)
		next := data[len(data):min(cap(data), len(data)+part)] // an abandoned call may still write into it: nobody reads that
		n, err := Call(path, func() (int, error) { return io.ReadFull(file, next) })
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// KeyPair reads a certificate and its key, as tls.LoadX509KeyPair does.
func KeyPair(certificateFile, keyFile string) (tls.Certificate, error) {
	certificate, err := Read(certificateFile, Small)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := Read(keyFile, Small)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, key)
}

// Call runs a function that waits for the file system of path and returns its result. When the file system does not answer, the function
// goes on in the background: it must not write what others read.
func Call[T any](path string, run func() (T, error)) (T, error) { return within(&process, path, run) }

// Stat is os.Stat for a path whose file system may not answer.
func Stat(path string) (fs.FileInfo, error) {
	return Call(path, func() (fs.FileInfo, error) { return os.Stat(path) })
}

func read(path string, most int64) ([]byte, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("over %d bytes", most)}
	}
	return data, err
}

// open opens a regular file; others, such as a pipe, are refused without waiting for their other end.
func open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		err = &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	default:
		return file, nil
	}
	_ = file.Close()
	return nil, err
}

var errNotRegular = errors.New("a pipe or a device, not a regular file")

// process is all calls of this process, since its threads are what they share.
var process = waits{limit: limit, most: mostAbandoned}

// waits limits the time of calls and the number of those that were abandoned.
type waits struct {
	limit time.Duration
	most  int

	mu        sync.Mutex
	abandoned map[string]int // calls that still wait, by path
	count     int            // of all paths
}

// within runs a call about path, for at most the limit. A path of which a call was abandoned is not tried again before that call returns.
func within[T any](w *waits, path string, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	path = filepath.Clean(path)
	if err := w.refusal(path); err != nil {
		return none, err
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	timer := time.NewTimer(w.limit)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C:
	}
	w.add(path, 1)
	go func() {
		<-done
		w.add(path, -1)
	}()
	return none, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("no answer in %v, its file system hangs", w.limit)}
}

// refusal returns why a call about path may not begin, or nil.
func (w *waits) refusal(path string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.abandoned[path] > 0:
		return &fs.PathError{Op: "read", Path: path, Err: errors.New("its file system still does not answer")}
	case w.count >= w.most:
		return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%d files wait for file systems that do not answer", w.count)}
	}
	return nil
}

// add counts an abandoned call, or with -1 its return.
func (w *waits) add(path string, change int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.abandoned == nil {
		w.abandoned = map[string]int{}
	}
	w.count += change
	if w.abandoned[path] += change; w.abandoned[path] == 0 {
		delete(w.abandoned, path)
	}
}
