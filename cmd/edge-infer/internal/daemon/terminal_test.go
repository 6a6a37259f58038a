package daemon

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestClosingTheTerminalEndsIt: an orphan would keep camera and ports.
func TestClosingTheTerminalEndsIt(t *testing.T) {
	t.Parallel()
	c := programtest.Command(t, "--camera", "demo?width=160&height=120&fps=5", "--mqtt", "off")
	terminal, err := pty.Start(c)
	require.NoError(t, err)
	defer terminal.Close()
	said := make([]byte, 0, 1<<16)
	for !bytes.Contains(said, []byte(" fps")) { // it runs
		part := make([]byte, 4096)
		n, err := terminal.Read(part)
		require.NoError(t, err, "%s", said)
		said = append(said, part[:n]...)
	}
	require.NoError(t, terminal.Close())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case <-ended:
	case <-time.After(programtest.Patience):
		require.NoError(t, c.Process.Kill())
		require.Fail(t, "it goes on without a terminal")
	}
}

// TestOnATerminal: a run on a pseudo terminal shows one block, with log lines above it, until Ctrl-C takes it away and the summary comes.
func TestOnATerminal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, environment string
		block, colour     bool
	}{
		{"a terminal", "NO_COLOR=", true, true},
		{"without colour", "NO_COLOR=1", true, false},
		{"a dumb one", "TERM=dumb", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			terminal, device, err := pty.Open()
			require.NoError(t, err)
			defer terminal.Close()
			require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Cols: 100, Rows: 30}))
			c := programtest.CommandWith(t, []string{"TERM=xterm-256color", test.environment},
				"--model", "demo", "--camera", "demo?width=320&height=240&fps=30", "--camera", "gate=rtsp://127.0.0.1:9/none", "--mqtt", "off")
			c.Stdin, c.Stdout, c.Stderr = device, device, device
			require.NoError(t, c.Start())
			require.NoError(t, device.Close())
			said := &programtest.Buffer{}
			read := make(chan struct{})
			go func() {
				defer close(read)
				_, _ = io.Copy(said, terminal) // ends with EIO when the program is gone
			}()
			const upwards = "A\r"
			require.Eventually(t, func() bool {
				text := said.String()
				if !test.block {
					return strings.Contains(text, "mqtt off\r\n") // the line of ten seconds
				}
				return strings.Contains(text, "running") && strings.Contains(text, "waiting") && strings.Contains(text, upwards)
			}, programtest.Patience, 50*time.Millisecond, "%s", said)
			require.NoError(t, c.Process.Signal(os.Interrupt))
			require.NoError(t, c.Wait(), "%s", said)
			<-read
			text := said.String()
			require.Equal(t, test.block, strings.Contains(text, upwards), text)
			require.Equal(t, test.colour, strings.Contains(text, "\x1b[32m  running"), text)
			end := text[strings.LastIndex(text, "ran "):]
			require.Contains(t, end, " frames, ")
			require.NotContains(t, end, "\x1b", "the block is gone")
		})
	}
}
