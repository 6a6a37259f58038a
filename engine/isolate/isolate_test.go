package isolate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/engine/isolate"
)

const childEnvironment = "EDGE_INFER_TEST_ISOLATED"

// patience is how long anything may take on a loaded machine.
const patience = time.Minute

// order is what a child of these tests is told to do.
type order struct {
	Count    int
	Tidy     bool // ends by itself when it is not wanted any more, else never
	Announce bool // says that it has begun to wait
}

type told struct {
	Number int `json:"number"`
	Bytes  int `json:"bytes"`
	// Score is the child's /proc/self/oom_score_adj.
	Score string `json:"score"`
}

func TestMain(m *testing.M) {
	if os.Getenv(childEnvironment) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	out, err := isolate.Answers()
	if err == nil {
		var o order
		err = isolate.Serve(context.Background(), os.Stdin, out, &o, func(ctx context.Context, payload []byte, tell func(any)) error {
			fmt.Println(`{"number": -1}`) // as libraries do
			for i := range o.Count {
				score, _ := os.ReadFile("/proc/self/oom_score_adj")
				tell(told{i, len(payload), strings.TrimSpace(string(score))})
			}
			if o.Announce {
				if !o.Tidy {
					select {}
				}
				<-ctx.Done()
				tell(told{Number: 99})
			}
			return nil
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func process(t *testing.T) isolate.Process {
	program, err := os.Executable()
	require.NoError(t, err)
	return isolate.Process{Program: []string{program}, Environment: []string{childEnvironment + "=1"}, Timeout: patience}
}

func TestAnswersComeInOrder(t *testing.T) {
	payload := bytes.Repeat([]byte("x"), 3<<20) // more than pipes hold
	var numbers []int
	err := process(t).Run(t.Context(), order{Count: 500}, payload, func(line json.RawMessage) {
		var a told
		require.NoError(t, json.Unmarshal(line, &a))
		require.Equal(t, "1000", a.Score, "memory that runs out costs the child first")
		require.Equal(t, len(payload), a.Bytes)
		numbers = append(numbers, a.Number)
	})
	require.NoError(t, err)
	require.Len(t, numbers, 500)
	require.IsIncreasing(t, numbers)
}

// TestAChildThatIsNotWantedTidiesUp: it hears of it and its last answer counts; one that does not listen is killed.
func TestAChildThatIsNotWantedTidiesUp(t *testing.T) {
	for _, tidy := range []bool{true, false} {
		p := process(t)
		p.Grace = map[bool]time.Duration{true: patience, false: time.Millisecond}[tidy]
		ctx, cancel := context.WithCancelCause(t.Context())
		last := 0
		err := p.Run(ctx, order{Count: 1, Announce: true, Tidy: tidy}, nil, func(line json.RawMessage) {
			var a told
			require.NoError(t, json.Unmarshal(line, &a))
			last = a.Number
			cancel(errors.New("nobody wants it"))
		})
		require.EqualError(t, err, "nobody wants it")
		assert.Equal(t, map[bool]int{true: 99, false: 0}[tidy], last)
	}
}

func TestAChildThatHangsIsKilled(t *testing.T) {
	p := process(t)
	p.Timeout = 50 * time.Millisecond
	require.EqualError(t, p.Run(t.Context(), order{Announce: true}, nil, func(json.RawMessage) {}), "no answer in 50ms")
}

func TestHowAChildEnded(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0":                             "",
		"exit 3":                             "ends the process with status 3",
		"echo one >&2; echo two >&2; exit 3": "ends the process with status 3: two",
		"kill -KILL $$":                      "crashes: killed, as when memory runs out",
		"kill -ABRT $$":                      "crashes: aborted",
		"echo 'SIGSEGV: segmentation violation code=1' >&2; exit 2": "crashes: segmentation violation (SIGSEGV)",
	} {
		err := isolate.Process{Program: []string{"sh", "-c", script}, Timeout: patience}.Run(t.Context(), nil, nil, func(json.RawMessage) {})
		if want == "" {
			require.NoError(t, err, script)
			continue
		}
		require.EqualError(t, err, want, script)
	}
	err := isolate.Process{Program: []string{"/none"}}.Run(t.Context(), nil, nil, nil)
	require.EqualError(t, err, "fork/exec /none: no such file or directory")
}

func TestServeRefusesNoise(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"", "request: EOF"},
		{"{}", "request: EOF"},
		{"x\n", "request: invalid character 'x' looking for beginning of value"},
		{`{"payload": -1}` + "\n", "request: payload of -1 bytes"},
		{`{"payload": 1099511627776}` + "\n", "request: payload of 1099511627776 bytes"},
		{`{"payload": 9}` + "\nshort", "request: 5 of 9 bytes of the payload: EOF"},
		{`{"request": 7}` + "\n", "request: json: cannot unmarshal number into Go value of type isolate_test.order"},
	} {
		var o order
		err := isolate.Serve(t.Context(), strings.NewReader(test.in), io.Discard, &o, nil)
		require.EqualError(t, err, test.want)
	}
}

func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"payload": 3, "request": {"Count": 2}}` + "\nabc"))
	f.Fuzz(func(t *testing.T, in []byte) {
		held, end := io.Pipe()
		defer end.Close()
		var o order
		called := false
		var out bytes.Buffer
		err := isolate.Serve(t.Context(), io.MultiReader(bytes.NewReader(append(in, '\n')), held), &out, &o,
			func(_ context.Context, payload []byte, tell func(any)) error {
				called = true
				tell(len(payload))
				return nil
			})
		require.Equal(t, called, err == nil)
	})
}
