package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// subject is the edge-infer process under test.
type subject struct {
	program, dir, broker string
	seen                 *record

	page    string
	idle    bool // (almost) no frame is inferred
	command *exec.Cmd
	stderr  tail
	read    chan error // error of reading its output
}

// configure writes the configuration; a running program applies it on reload.
func (s *subject) configure(groups ...[][2]string) error {
	if s.page == "" {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		s.page = address
	}
	var text strings.Builder
	fmt.Fprintf(&text, "name: soak\nmodel: {path: demo}\nmqtt: {url: %q}\nweb: {listen: %q}\ncameras:\n", "tcp://"+s.broker, s.page)
	for _, cameras := range groups {
		for _, c := range cameras {
			fmt.Fprintf(&text, "- {name: %s, uri: %q", c[0], c[1])
			if s.idle {
				text.WriteString(", rate: 0.001")
			}
			text.WriteString("}\n")
		}
	}
	next := filepath.Join(s.dir, "next.yaml")
	if err := os.WriteFile(next, []byte(text.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(s.dir, "soak.yaml"))
}

// start starts the program and waits for its first frame.
func (s *subject) start(ctx context.Context) error {
	s.command = exec.Command(s.program, "run", "--config", filepath.Join(s.dir, "soak.yaml"), "--json")
	s.command.Env = append(os.Environ(), "XDG_STATE_HOME="+s.dir, "XDG_CACHE_HOME="+s.dir)
	s.command.Stderr = &s.stderr
	stdout, err := s.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.command.Start(); err != nil {
		return err
	}
	s.read = make(chan error, 1)
	go func() { s.read <- s.seen.read(stdout) }()
	for begun := time.Now(); len(s.seen.spans()) == 0; {
		if time.Since(begun) > time.Minute {
			return fmt.Errorf("no frame after a minute: %s", s.stderr.last())
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (s *subject) pid() int { return s.command.Process.Pid }

func (s *subject) reload() error { return s.command.Process.Signal(syscall.SIGHUP) }

// lent returns the least number of buffers of each camera that were in use during a short time without inference. Between two frames it
// should be 0.
func (s *subject) lent(ctx context.Context, cameras ...[][2]string) (map[string]int, error) {
	s.idle = true
	if err := errors.Join(s.configure(cameras...), s.reload(), sleep(ctx, 5*time.Second)); err != nil {
		return nil, err
	}
	least := map[string]int{}
	for range 40 {
		var status struct {
			Cameras []struct {
				Capture struct {
					Name string `json:"name"`
					Lent int    `json:"lent"`
				} `json:"capture"`
			} `json:"cameras"`
		}
		answer, err := http.Get("http://" + s.page + "/api/status")
		if err != nil {
			return nil, err
		}
		err = json.NewDecoder(answer.Body).Decode(&status)
		answer.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
		for _, c := range status.Cameras {
			if now, known := least[c.Capture.Name]; !known || c.Capture.Lent < now {
				least[c.Capture.Name] = c.Capture.Lent
			}
		}
		if err := sleep(ctx, 430*time.Millisecond); err != nil { // a status is up to 400 ms old
			return nil, err
		}
	}
	return least, nil
}

// stop ends the program with SIGTERM.
func (s *subject) stop() error {
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.AfterFunc(30*time.Second, s.kill)
	defer timer.Stop()
	err := <-s.read
	if err = errors.Join(err, s.command.Wait()); err != nil {
		return fmt.Errorf("the program failed: %w: %s", err, s.stderr.last())
	}
	return nil
}

func (s *subject) kill() { _ = s.command.Process.Kill() }

// mosquitto is a broker in its own process, which can be suspended: mosquitto or the broker of this program.
type mosquitto struct {
	address string
	command *exec.Cmd
}

// openOwn starts this program's own broker in a child process, for a machine without mosquitto.
func openOwn() (*mosquitto, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &mosquitto{command: exec.Command(self, "broker")}
	stdout, err := b.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.command.Start(); err != nil {
		return nil, err
	}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.close()
		return nil, fmt.Errorf("broker: %w", err)
	}
	b.address = strings.TrimPrefix(strings.TrimSpace(url), "tcp://")
	return b, nil
}

func openMosquitto(ctx context.Context, program, dir string) (*mosquitto, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "mosquitto.conf")
	settings := fmt.Appendf(nil, "listener %s %s\nallow_anonymous true\npersistence false\n", port, host)
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		return nil, err
	}
	b := &mosquitto{address: address, command: exec.Command(program, "-c", file)}
	if err := b.command.Start(); err != nil {
		return nil, fmt.Errorf("%w (make deps installs it)", err)
	}
	for begun := time.Now(); ; {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			return b, connection.Close()
		}
		if time.Since(begun) > 30*time.Second {
			b.close()
			return nil, err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			b.close()
			return nil, err
		}
	}
}

// pause suspends the broker, as if its machine hung.
func (b *mosquitto) pause(context.Context) error { return b.command.Process.Signal(syscall.SIGSTOP) }

func (b *mosquitto) resume(context.Context) error { return b.command.Process.Signal(syscall.SIGCONT) }

func (b *mosquitto) close() {
	_ = b.command.Process.Kill()
	_ = b.command.Wait()
}

// freeAddress returns a local address with a free port.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// tail keeps the last 4096 bytes written.
type tail struct {
	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	t.end = t.end[max(0, len(t.end)-4096):]
	return len(p), nil
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.end), []byte("\n"))
	return string(lines[len(lines)-1])
}
