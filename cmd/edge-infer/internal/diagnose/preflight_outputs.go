package diagnose

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

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mqttconfig"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// mqtt checks the client and the embedded broker.
func (p *Preflight) mqtt() (mistakes []error) {
	m := &p.Config.MQTT
	brokers := m.Brokers()
	if m.URL == config.Embedded {
		if err := mqttconfig.New(m, m.Listen, slog.Default()).Check(); err != nil {
			mistakes = append(mistakes, err)
		} else if m.Listen != config.Default().MQTT.Listen { // if that one is in use, a free port is chosen
			mistakes = append(mistakes, p.port("mqtt.listen", m.Listen)...)
		}
		brokers = []string{"tcp://127.0.0.1"}
	}
	if len(brokers) == 0 {
		return mistakes
	}
	err := mqttconfig.NewClient(site.ResolveOutputs(p.Config), brokers).Check()
	if err != nil && len(mistakes) == 0 { // both read the same files
		mistakes = append(mistakes, err)
	}
	return mistakes
}

// web checks the settings of the web page.
func (p *Preflight) web() []error {
	w := &p.Config.Web
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
	return p.port("web.listen", w.Listen)
}

// port checks that an address is free, unless this process uses it. Without a run in this process an address in use is no mistake: usually
// it belongs to the daemon.
func (p *Preflight) port(key, address string) []error {
	if p.has(address) {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err == nil {
		err = listener.Close()
	}
	if err == nil || p.Running == nil && errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	return []error{fmt.Errorf("%s: %w", key, err)}
}

// has reports whether this process listens on the port of an address.
func (p *Preflight) has(address string) bool {
	if p.Running == nil {
		return false
	}
	taken := []string{p.Running.Web.Listen}
	if p.Running.MQTT.URL == config.Embedded {
		taken = append(taken, p.Running.MQTT.Listen)
	}
	_, port, err := net.SplitHostPort(address)
	return err == nil && slices.ContainsFunc(taken, func(other string) bool {
		_, its, err := net.SplitHostPort(other)
		return err == nil && its == port
	})
}

// cameras checks that the files and directories that take the place of cameras exist, unless they are of cameras that run already. Devices
// and addresses may appear later.
func (p *Preflight) cameras() (mistakes []error) {
	for i := range p.Config.Cameras {
		camera := &p.Config.Cameras[i]
		known := p.Running != nil && slices.ContainsFunc(p.Running.Cameras, func(running config.Camera) bool { return running.URI == camera.URI })
		if known {
			continue
		}
		uri, err := capture.ParseURI(camera.URI)
		if err == nil && uri.Kind == capture.File {
			_, err = boundedfile.Stat(uri.Address)
		}
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("camera %s: %w", camera.Name, err))
		}
	}
	return mistakes
}

// webhooks checks that the signing secrets can be read and used.
func (p *Preflight) webhooks() (mistakes []error) {
	settings := site.ResolveOutputs(p.Config)
	for i := range settings.Webhooks {
		err := webhook.New(settings, &settings.Webhooks[i]).CheckSecret()
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("webhook %s: %w", settings.Webhooks[i].Name, err))
		}
	}
	return mistakes
}

// directories checks those of events and clips.
func (p *Preflight) directories() []error {
	mistakes := p.directory("events.directory", p.Config.Events.Directory, "events")
	if p.Config.AnyVideo() {
		mistakes = append(mistakes, p.directory("clips.directory", p.Config.Clips.Directory, "clips")...)
	}
	return mistakes
}

// directory checks that a directory can be written or created, by creating a directory there and removing it. Permissions alone do not
// tell, for example in /proc or on a disk that is mounted read-only. own is its name in the state directory: the daemon goes on without it.
func (p *Preflight) directory(key, dir, own string) []error {
	if dir == "" || dir == config.Off || dir == filepath.Join(p.Config.State, own) {
		return nil
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		info, err := boundedfile.Stat(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			continue
		}
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is a file", at)
		}
		if err == nil {
			_, err = boundedfile.Call(at, func() (string, error) { return tryDirectory(at) })
		}
		if err != nil {
			return []error{fmt.Errorf("%s %q cannot be used: %w", key, dir, err)}
		}
		return nil
	}
}

// tryDirectory creates a directory in another one, removes it and returns its path.
func tryDirectory(parent string) (trial string, err error) {
	trial, err = os.MkdirTemp(parent, ".edge-infer-check-")
	if err != nil {
		return "", err
	}
	return trial, os.Remove(trial)
}
