package tritoncheck

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// dirEnvironment names the directory that setup filled; make triton-check sets it.
const dirEnvironment = "EDGE_INFER_TEST_TRITON"

// TestMain runs the built program where the process was started for it, so that what is tested is what users run.
func TestMain(m *testing.M) {
	programtest.Main(m, func(args []string) int {
		program := programtest.Project("bin/edge-infer")
		err := syscall.Exec(program, append([]string{program}, args...), os.Environ())
		fmt.Fprintln(os.Stderr, program+":", err)
		return 1
	})
}

// installed is the directory of the real server, or skips the test.
func installed(t testing.TB) string {
	dir := os.Getenv(dirEnvironment)
	if dir == "" {
		t.Skip(dirEnvironment + " names no directory with Triton: make triton-check")
	}
	return dir
}

// server is a Triton server on this machine.
type server struct {
	dir, repository string
	http, grpc      int
	flags           []string
	process         *exec.Cmd
	log             *programtest.Buffer
}

// start starts a server on a repository and waits until it answers.
func start(t testing.TB, repository string, flags ...string) *server {
	s := &server{
		dir: installed(t), repository: repository, http: programtest.FreePort(t), grpc: programtest.FreePort(t), flags: flags,
		log: &programtest.Buffer{},
	}
	t.Cleanup(s.kill)
	s.run(t)
	return s
}

// run starts the server, after kill at the same ports again.
func (s *server) run(t testing.TB) {
	regions := fmt.Sprintf("edge-infer-check-%d-%d", os.Getpid(), s.grpc)
	arguments := append([]string{
		s.dir, s.repository, fmt.Sprint(s.http), fmt.Sprint(s.grpc), "--backend-config=python,shm-region-prefix-name=" + regions,
	}, s.flags...)
	s.process = exec.Command("./serve", arguments...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, s.process.Start())
	t.Cleanup(func() { // what a server that was killed leaves
		left, _ := filepath.Glob("/dev/shm/" + regions + "*")
		for _, file := range left {
			_ = os.Remove(file)
		}
	})
	require.Eventually(t, func() bool { return s.ready() }, programtest.Patience, 20*time.Millisecond, "%s", s.log)
}

func (s *server) ready() bool {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/v2/health/ready", s.http))
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// kill ends the server at once, with the processes of its Python backend: one that waits for a server which is gone may never end.
func (s *server) kill() {
	if s.process == nil {
		return
	}
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL)
	_ = s.process.Wait() // it was killed
	s.process = nil
}

func (s *server) signal(t testing.TB, signal syscall.Signal) {
	require.NoError(t, s.process.Process.Signal(signal))
}

// at is the address of a model as --engine takes it.
func (s *server) at(scheme, model string) string {
	port := s.grpc
	if scheme == "http" {
		port = s.http
	}
	return fmt.Sprintf("%s://127.0.0.1:%d/%s", scheme, port, model)
}

// edge runs the program to its end and gives its standard output.
func edge(t testing.TB, arguments ...string) string {
	var stdout, stderr bytes.Buffer
	c := programtest.Command(t, arguments...)
	c.Stdout, c.Stderr = &stdout, &stderr
	require.NoError(t, c.Run(), "%v: %s", arguments, &stderr)
	return stdout.String()
}

// exported is a repository with the demo model, as the program writes it.
func exported(t testing.TB, flags ...string) string {
	installed(t)
	dir := t.TempDir()
	edge(t, append([]string{"export", "triton", "--model", "demo", "--engine", "onnxruntime=cpu", "--repository", dir}, flags...)...)
	return dir
}

// python runs a program of this directory with the packages that setup installed.
func python(t testing.TB, program string, arguments ...string) string {
	c := exec.CommandContext(t.Context(), filepath.Join(installed(t), "venv/bin/python"), append([]string{program}, arguments...)...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	require.NoError(t, c.Run(), "%s%s", &stdout, &stderr)
	return stdout.String()
}
