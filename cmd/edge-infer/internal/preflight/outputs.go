package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
)

// mqtt checks the client, and the embedded broker where that is used.
func (c *Check) mqtt() (mistakes []error) {
	m := &c.Config.MQTT
	brokers := m.Brokers()
	if m.URL == config.Embedded {
		if err := broker.New(m, m.Listen, slog.Default()).Check(); err != nil {
			mistakes = append(mistakes, err)
		} else if m.Listen != config.Default().MQTT.Listen { // where that one is taken a free port is used
			mistakes = append(mistakes, c.port("mqtt.listen", m.Listen)...)
		}
		brokers = []string{"tcp://127.0.0.1"}
	}
	if len(brokers) == 0 {
		return mistakes
	}
	if err := broker.NewClient(c.Config, brokers).Check(); err != nil && len(mistakes) == 0 { // both read the same files
		mistakes = append(mistakes, err)
	}
	return mistakes
}

// web checks the page.
func (c *Check) web() []error {
	w := &c.Config.Web
	if w.Listen == config.Off {
		return nil
	}
	token, password, err := w.Secrets()
	if err == nil {
		server := web.Server{
			Address: w.Listen, Token: token, User: w.User, Password: password, CertificateFile: w.Certificate, KeyFile: w.Key,
		}
		err = server.Check()
	}
	if err != nil {
		return []error{err}
	}
	return c.port("web.listen", w.Listen)
}

// port listens for a moment, unless this process has the port. Without a run in this process an address that is in use is no mistake: as a
// rule it is the daemon that uses it.
func (c *Check) port(key, address string) []error {
	if c.has(address) {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err == nil {
		err = listener.Close()
	}
	if err == nil || c.Running == nil && errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	return []error{fmt.Errorf("%s: %w", key, err)}
}

// has reports whether the run in this process listens on the port of an address.
func (c *Check) has(address string) bool {
	if c.Running == nil {
		return false
	}
	taken := []string{c.Running.Web.Listen}
	if c.Running.MQTT.URL == config.Embedded {
		taken = append(taken, c.Running.MQTT.Listen)
	}
	_, port, err := net.SplitHostPort(address)
	return err == nil && slices.ContainsFunc(taken, func(other string) bool {
		_, its, err := net.SplitHostPort(other)
		return err == nil && its == port
	})
}

// snapshots looks whether the directory is one in which files can be written, or could be made one, and makes nothing.
func (c *Check) snapshots() []error {
	dir := c.Config.Snapshots.Directory
	if dir == "" {
		return nil
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			continue
		}
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is a file", at)
		}
		if err == nil {
			if err = unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
				err = fmt.Errorf("%s: %w", at, err)
			}
		}
		if err != nil {
			return []error{fmt.Errorf("snapshots.directory %q cannot be used: %w", dir, err)}
		}
		return nil
	}
}
