// Package argustest has stand-ins for what reads the CSI cameras of a Jetson: the GStreamer plugins of JetPack, which behave as public
// sources say those do, and nvargus-daemon.
package argustest

import (
	_ "embed"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/edge-infer/edge-infer/engine/cuda/fake"
)

var (
	//go:embed plugin/csi.c
	csi []byte
	//go:embed plugin/decoder.c
	decoder []byte
)

// BuildPlugin compiles nvarguscamerasrc and nvvidconv with $CC into a directory, under the name of JetPack's file, and returns its path.
// flags say where the compiler finds GStreamer. The head of plugin/csi.c lists the environment variables that direct it; the number of the
// sensor selects what goes wrong.
func BuildPlugin(dir string, flags ...string) (string, error) {
	return build(dir, "libgstnvarguscamerasrc.so", csi, flags)
}

// BuildDecoder compiles nvv4l2decoder, and avdec_h264 for a machine without FFmpeg, as BuildPlugin does. The head of plugin/decoder.c lists
// the environment variables that direct it.
func BuildDecoder(dir string, flags ...string) (string, error) {
	return build(dir, "libgstnvvideo4linux2.so", decoder, flags)
}

func build(dir, name string, source []byte, flags []string) (string, error) {
	file := filepath.Join(dir, name+".c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return "", err
	}
	return fake.Compile(filepath.Join(dir, name), append([]string{file}, flags...)...)
}

// Daemon is a stand-in for nvargus-daemon: it accepts connections and keeps them until it is stopped.
type Daemon struct {
	Path string // of its socket

	mu          sync.Mutex
	listener    net.Listener
	connections []net.Conn
}

// Start makes a new socket. Stop must be called before the next Start.
func (d *Daemon) Start() error {
	listener, err := net.Listen("unix", d.Path)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.listener = listener
	d.mu.Unlock()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.connections = append(d.connections, connection)
			d.mu.Unlock()
			go func() {
				_, _ = connection.Read(make([]byte, 1)) // until the client ends
				_ = connection.Close()
			}()
		}
	}()
	return nil
}

// Stop removes the socket and ends every connection. It may be called again.
func (d *Daemon) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listener != nil {
		_ = d.listener.Close()
	}
	for _, c := range d.connections {
		_ = c.Close()
	}
	d.connections = nil
}
