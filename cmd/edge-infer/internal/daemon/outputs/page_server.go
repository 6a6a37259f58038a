package outputs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
)

// pageServer is the server of the page. Its settings change while frames arrive.
type pageServer struct {
	now atomic.Pointer[web.Server] // nil while there is none

	mu     sync.Mutex // held while it is opened, reopened or closed
	make   func(*config.Web) (*web.Server, error)
	start  func(run func(context.Context) error) (stop func())
	stop   func() // lets open requests end; nil while nothing is served
	closed bool
}

// Frame implements pipeline.Sink.
func (p *pageServer) Frame(in *pipeline.Result) {
	if server := p.now.Load(); server != nil {
		server.Frame(in)
	}
}

// URL returns the address of the page, empty while there is none.
func (p *pageServer) URL() string {
	if server := p.now.Load(); server != nil {
		return server.URL()
	}
	return ""
}

// Open listens on the page's address, unless that is off.
func (p *pageServer) Open(settings *config.Web) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listen(settings)
}

func (p *pageServer) listen(settings *config.Web) error {
	if settings.Listen == config.Off || p.closed {
		return nil
	}
	server, err := p.make(settings)
	if err != nil {
		return err
	}
	if err := server.Open(); err != nil {
		return err
	}
	p.now.Store(server)
	p.stop = p.start(server.Run)
	return nil
}

// Reopen replaces the page. After an error it is as before, unless its address was taken meanwhile.
func (p *pageServer) Reopen(was, next *config.Web) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if server := p.now.Swap(nil); server != nil { // before the next one: both may use one port
		if p.stop != nil {
			p.stop()
		}
		_ = server.Close()
	}
	if err := p.listen(next); err != nil {
		return errors.Join(err, p.listen(was))
	}
	return nil
}

// Close closes the page; it is not opened again.
func (p *pageServer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if server := p.now.Load(); server != nil {
		return server.Close()
	}
	return nil
}

// pageOutput is the page as reloads see it.
type pageOutput struct{ of *Outputs }

// Compare implements output.
func (p pageOutput) Compare(change *site.OutputChange) site.Change {
	return unlike("web", change.Was.Web != change.Next.Web || renewed(p, change), site.Reopen, "")
}

// Files implements output.
func (p pageOutput) Files(settings *site.Outputs) []string {
	w := &settings.Web
	return []string{w.TokenFile, w.PasswordFile, w.Certificate, w.Key}
}

// Reload implements output.
func (p pageOutput) Reload(_ context.Context, change *site.OutputChange) error {
	if err := p.of.page.Reopen(&change.Was.Web, &change.Next.Web); err != nil {
		return err
	}
	p.of.certificates.set(pageCertificate, change.Next.Web.Certificate)
	p.of.Logger.Info("web page opened again", "page", p.of.page.URL())
	return nil
}

// preparePage tells the page how a server is made.
func (o *Outputs) preparePage(units func(string) *capture.Ring) {
	o.page.start = o.background.Start
	o.page.make = func(settings *config.Web) (*web.Server, error) {
		server, err := o.server(settings)
		if err != nil {
			return nil, err
		}
		server.Source, server.History, server.Units = page(o.Now), o.history, units
		if o.store != nil {
			server.Events = o.store
		}
		server.Cameras = pageCameras(o)
		server.Notifications = &browsers{Browsers: config.Browsers{Sources: o.Sources}, of: o}
		server.Zones = &zones{Zones: config.Zones{Sources: o.Sources}, reload: o.Reread}
		return server, nil
	}
}

// server returns a web server with these settings.
func (o *Outputs) server(w *config.Web) (*web.Server, error) {
	token, password, err := w.Secrets()
	if err != nil {
		return nil, err
	}
	return &web.Server{
		Address: w.Listen, Token: token, User: w.User, Password: password, CertificateFile: w.Certificate, KeyFile: w.Key, Profiling: w.Profiling,
		Directory: o.Settings.State, Samples: o.Settings.Samples.Directory, Audit: &o.audit, Logger: o.Logger, FrameRate: w.FrameRate,
		MaxBytes: int64(w.MemoryMB) << 20,
	}, nil
}
