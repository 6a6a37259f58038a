package programtest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// Serve starts a server, waits until its port accepts connections, and kills it at the end of the test or by kill.
func Serve(t testing.TB, port int, program string, arguments ...string) (kill func()) {
	server := exec.Command(program, arguments...)
	require.NoError(t, server.Start())
	ended := make(chan struct{})
	go func() {
		_ = server.Wait()
		close(ended)
	}()
	kill = func() {
		_ = server.Process.Kill()
		<-ended
	}
	t.Cleanup(kill)
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, Patience, 10*time.Millisecond)
	return kill
}

// Mosquitto starts a mosquitto broker on a port.
func Mosquitto(t testing.TB, port int) (kill func()) {
	return Serve(t, port, testtool.Program(t, "mosquitto"), "-p", fmt.Sprint(port))
}

// RTSPServer plays a file at rtsp://127.0.0.1:PORT/0 until the end of the test or kill. It is a process, so that it ends as a camera does
// that loses its power.
func RTSPServer(t testing.TB, port int, file string) (kill func()) {
	program := filepath.Join(Shared(t, "rtsp-server", func(dir string) error {
		command := exec.Command(testtool.Program(t, "go"), "build", "-o", dir, "./cmd/rtsp-server")
		command.Dir = root()
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	}), "rtsp-server")
	return Serve(t, port, program, "-listen", fmt.Sprintf("127.0.0.1:%d", port), file)
}

// Subscribe runs mosquitto_sub on a topic filter and returns its lines, each with topic and payload.
func Subscribe(t testing.TB, port int, topic string) <-chan string { return subscribe(t, port, topic) }

// SubscribeAs is Subscribe with a user and a password.
func SubscribeAs(t testing.TB, port int, topic, user, password string) <-chan string {
	return subscribe(t, port, topic, "-u", user, "-P", password)
}

func subscribe(t testing.TB, port int, topic string, login ...string) <-chan string {
	arguments := append([]string{"-h", "127.0.0.1", "-p", fmt.Sprint(port), "-q", "1", "-v", "-t", topic}, login...)
	client := exec.Command(testtool.Program(t, "mosquitto_sub"), arguments...)
	stdout, err := client.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, client.Start())
	lines := make(chan string, 10000)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		_ = client.Wait()
	}()
	t.Cleanup(func() {
		_ = client.Process.Kill()
		for range lines {
			continue
		}
	})
	return lines
}

// Until reads lines until one contains the text, and returns those before it.
func Until(t testing.TB, lines <-chan string, text string) (before []string) {
	deadline := time.After(Patience)
	for {
		select {
		case line, more := <-lines:
			require.True(t, more, "subscriber ended before %q", text)
			if strings.Contains(line, text) {
				return before
			}
			before = append(before, line)
		case <-deadline:
			require.FailNow(t, "subscriber never got "+text, "%q", before)
		}
	}
}

// Payloads returns the payloads of a topic in the lines of Subscribe.
func Payloads(lines []string, topic string) (found []string) {
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, topic+" "); ok {
			found = append(found, rest)
		}
	}
	return found
}
