package catalogue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
)

func TestEntriesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Entries() {
		require.NoError(t, CheckName(e.Name))
		require.False(t, seen[e.Name] || seen[e.SHA256], e.Name)
		seen[e.Name], seen[e.SHA256] = true, true
		require.Regexp(t, hashForm, e.SHA256, e.Name)
		require.Positive(t, e.Bytes, e.Name)
		require.True(t, strings.HasPrefix(e.URL, "https://"), e.Name)
		require.NotContains(t, e.URL, "/main/", "the address of %s names a version", e.Name)
		require.Contains(t, []string{"Apache-2.0", "MIT", "BSD-3-Clause"}, e.Licence, e.Name)
		require.False(t, e.Preprocess.IsZero(), e.Name)
		require.Contains(t, append(engine.Presets(), ""), e.Preprocess.Preset, e.Name)
		require.Contains(t, []int{1, 2, 80}, len(strings.Split(strings.TrimSpace(labels(e.Labels)), "\n")), e.Name)
		require.NotEmpty(t, e.Finds, e.Name)
		for _, text := range []string{e.Task, e.Classes, e.Publisher, e.Input, e.Layout, e.Accuracy, e.Tried} {
			require.NotEmpty(t, text, e.Name)
		}
		var out bytes.Buffer
		require.NoError(t, e.Print(&out))
		require.Contains(t, out.String(), "sha256     "+e.SHA256+"\n")
	}
}

// publisher is a server with one file.
type publisher struct {
	*httptest.Server
	data   []byte
	breaks atomic.Int64 // bytes after which the connection ends, 0 for never
	whole  atomic.Bool  // it knows no ranges
	ranges atomic.Pointer[[]string]
}

func publish(t *testing.T, data []byte) *publisher {
	p := &publisher{data: data}
	p.ranges.Store(&[]string{})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ranges := append(*p.ranges.Load(), r.Header.Get("Range"))
		p.ranges.Store(&ranges)
		if p.whole.Load() {
			r.Header.Del("Range")
		}
		if n := p.breaks.Load(); n > 0 {
			w.Header().Set("Content-Length", fmt.Sprint(len(p.data)))
			_, _ = w.Write(p.data[:n])
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(p.data))
	}))
	t.Cleanup(p.Close)
	return p
}

func hashed(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestPullResumes(t *testing.T) {
	data := bytes.Repeat([]byte("network "), 100_000)
	for _, whole := range []bool{false, true} {
		server := publish(t, data)
		server.breaks.Store(300_000)
		server.whole.Store(whole)
		var last, total int
		p := &Pull{
			Store: Store{t.TempDir()}, Source: server.URL + "/of/mine.onnx", SHA256: hashed(data),
			Progress: func(string) progress.Step { return &counted{&last, &total} },
		}
		_, err := p.Run(t.Context())
		require.ErrorContains(t, err, "model mine: ")
		require.ErrorContains(t, err, "(fetch "+server.URL+"/of/mine.onnx elsewhere, its sha256 is "+hashed(data)+
			", and run edge-infer model pull FILE")
		assert.False(t, p.Store.Has("mine"))

		server.breaks.Store(0)
		result, err := p.Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "bytes=300000-", (*server.ranges.Load())[1])
		got, err := os.ReadFile(result.Path)
		require.NoError(t, err)
		assert.Equal(t, data, got)
		assert.Equal(t, []int{781, 781}, []int{last, total}, "progress in KiB")
		files, err := filepath.Glob(filepath.Join(p.Store.Dir, ".*"))
		require.NoError(t, err)
		assert.Empty(t, files, "nothing of the download is left")

		result, err = p.Run(t.Context())
		require.NoError(t, err)
		assert.True(t, result.AlreadyPresent)
		assert.Len(t, *server.ranges.Load(), 2, "what is here is not fetched again")
	}
}

type counted struct{ last, total *int }

func (c *counted) Count(done, total int) { *c.last, *c.total = done, total }
func (*counted) Note(string)             {}
func (*counted) Close()                  {}

func TestPullRemovesOtherFiles(t *testing.T) {
	server := publish(t, []byte("another network"))
	store := Store{t.TempDir()}
	wanted := hashed([]byte("the network"))
	_, err := (&Pull{Store: store, Source: server.URL + "/n.onnx", SHA256: wanted}).Run(t.Context())
	require.EqualError(t, err, "model n: what came from "+server.URL+"/n.onnx has sha256 "+hashed([]byte("another network"))+", not "+wanted+
		": it was changed or is another file and was deleted")
	left, err := os.ReadDir(store.Dir)
	require.NoError(t, err)
	assert.Empty(t, left)

	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	_, err = (&Pull{Store: store, Source: gone.URL + "/n.onnx", SHA256: wanted}).Run(t.Context())
	require.ErrorContains(t, err, "model n: the server returned 404 Not Found (fetch ")

	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	_, err = (&Pull{Store: store, Source: silent.URL + "/n.onnx", SHA256: wanted, StallTimeout: time.Millisecond}).Run(t.Context())
	require.ErrorContains(t, err, "model n: no data for 1ms (fetch ")
}

// TestPullsAtOnce: several pulls of one model download it once and all get it whole.
func TestPullsAtOnce(t *testing.T) {
	data := bytes.Repeat([]byte("network "), 100_000)
	server := publish(t, data)
	store := Store{t.TempDir()}
	var pulls sync.WaitGroup
	for range 8 {
		pulls.Go(func() {
			result, err := (&Pull{Store: store, Source: server.URL + "/n.onnx", SHA256: hashed(data)}).Run(t.Context())
			if assert.NoError(t, err) {
				got, err := os.ReadFile(result.Path)
				assert.NoError(t, err)
				assert.Equal(t, hashed(data), hashed(got))
			}
		})
	}
	pulls.Wait()
	assert.Len(t, *server.ranges.Load(), 1)
	left, err := os.ReadDir(store.Dir)
	require.NoError(t, err)
	assert.Len(t, left, 2, "the model and its hash")

	// A pull that waits for another one ends with its context, and a partial file that is no file is refused.
	wanted := hashed([]byte("another"))
	part := filepath.Join(store.Dir, "."+wanted+".part")
	held, err := openPart(t.Context(), part)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	_, err = (&Pull{Store: store, Source: server.URL + "/o.onnx", SHA256: wanted}).Run(ctx)
	require.EqualError(t, err, "model o: another process downloads it: stopped")
	require.NoError(t, held.Close())
	require.NoError(t, os.Remove(part))
	require.NoError(t, syscall.Mkfifo(part, 0o600))
	_, err = (&Pull{Store: store, Source: server.URL + "/o.onnx", SHA256: wanted}).Run(t.Context())
	require.EqualError(t, err, "model o: "+part+" is not a regular file, remove it")
}

// What interrupted downloads left is removed after a week, unless it is in use or about to be resumed.
func TestStalePartsAreRemoved(t *testing.T) {
	store := Store{t.TempDir()}
	for _, name := range []string{"old", "used", "resumed", "new"} {
		part, err := store.OpenPart(t.Context(), name)
		require.NoError(t, err)
		if name == "used" {
			defer part.Close()
		} else {
			require.NoError(t, part.Close())
		}
	}
	for _, name := range []string{"old", "used", "resumed"} {
		week := time.Now().Add(-stalePart - time.Hour)
		require.NoError(t, os.Chtimes(filepath.Join(store.Dir, "."+name+".part"), week, week))
	}
	part, err := store.OpenPart(t.Context(), "resumed")
	require.NoError(t, err)
	defer part.Close()
	left, err := filepath.Glob(filepath.Join(store.Dir, ".*.part"))
	require.NoError(t, err)
	require.Equal(t, []string{".new.part", ".resumed.part", ".used.part"}, []string{
		filepath.Base(left[0]), filepath.Base(left[1]), filepath.Base(left[2]),
	})
	require.Len(t, left, 3)
}

// TestPullsAreBounded: what a server announces or sends beyond the limit is not stored, and the error names the flag that raises it.
func TestPullsAreBounded(t *testing.T) {
	data := bytes.Repeat([]byte("network "), 1000)
	announced := publish(t, data)
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(data); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	for want, address := range map[string]string{
		"8000 bytes are announced, the limit is 7999 (--max-size raises it)": announced.URL,
		"larger than the limit of 7999 bytes (--max-size raises it)":         endless.URL,
	} {
		p := &Pull{Store: Store{t.TempDir()}, Source: address + "/mine.onnx", SHA256: hashed(data), MaxBytes: 7999}
		_, err := p.Run(t.Context())
		require.ErrorContains(t, err, want)
		part, err := os.Stat(filepath.Join(p.Store.Dir, "."+hashed(data)+".part"))
		require.NoError(t, err)
		require.Zero(t, part.Size())
	}
	p := &Pull{Store: Store{t.TempDir()}, Source: announced.URL + "/mine.onnx", SHA256: hashed(data), MaxBytes: 8000}
	result, err := p.Run(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 8000, result.Received)
}

func TestPullRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "n.onnx")
	require.NoError(t, os.WriteFile(file, []byte("n"), 0o600))
	for _, c := range []struct{ from, hash, name, want string }{
		{"nano", "", "", `model "nano" is not in the catalogue, did you mean yolox-nano?`},
		{"pose", "", "", `model "pose" is not in the catalogue (names: yolox-s, yolox-nano, dfine-n, dfine-s, dfine-m, face-640, face-320, ` +
			"person-reid, human-segmentation; or what it finds: people, vehicles, animals, faces, appearance, silhouettes)"},
		{"yolo.onnx", "", "", "model: stat yolo.onnx: no such file or directory"},
		{
			"yolox-s", strings.Repeat("0", 64), "", "model yolox-s: --sha256 " + strings.Repeat("0", 64) + " is not the catalogue's " +
				Entries()[0].SHA256,
		},
		{
			file, "abc", "", "model " + file + `: --sha256 "abc" must have 64 hexadecimal digits ` +
				"(the publisher's hash, or the output of sha256sum FILE)",
		},
		{file, "", "", "model " + file + " is not in the catalogue: add --sha256, or use --model FILE"},
		{file, hashed([]byte("n")), "../n", `model name "../n": it must consist of 1 to 100 letters, digits, dots, dashes and underscores`},
	} {
		_, err := (&Pull{Store: Store{t.TempDir()}, Source: c.from, SHA256: c.hash, Name: c.name}).Run(t.Context())
		assert.EqualError(t, err, c.want)
	}
}

// A downloaded model is resolved by its name, with its labels and preprocessing.
func TestResolve(t *testing.T) {
	t.Setenv("CACHE_DIRECTORY", t.TempDir())
	t.Chdir(t.TempDir())
	store, err := Open()
	require.NoError(t, err)
	_, _, err = Resolve("yolox-s")
	require.EqualError(t, err, "model yolox-s is not downloaded (run edge-infer model pull yolox-s)")
	for _, model := range []string{"", "demo", "mine.onnx", "/somewhere/yolox-s"} {
		path, labels, err := Resolve(model)
		require.NoError(t, err)
		assert.Equal(t, []string{model, ""}, []string{path, labels})
	}

	require.NoError(t, os.MkdirAll(store.Dir, 0o700))
	part := filepath.Join(store.Dir, "part")
	require.NoError(t, os.WriteFile(part, []byte("a network"), 0o600))
	entry, err := Lookup("yolox-s")
	require.NoError(t, err)
	entry.SHA256 = hashed([]byte("a network"))
	require.NoError(t, store.install(&entry, part))
	path, names, err := Resolve("yolox-s")
	require.NoError(t, err)
	assert.Equal(t, store.Path("yolox-s"), path)
	text, err := os.ReadFile(names)
	require.NoError(t, err)
	assert.Equal(t, engine.COCOLabels(), string(text))
	p, err := engine.ReadPreprocess(path)
	require.NoError(t, err)
	assert.Equal(t, entry.Preprocess, p)

	// One changed bit is found when the model is opened.
	require.NoError(t, os.WriteFile(path, []byte("a nftwork"), 0o600))
	_, _, err = Resolve("yolox-s")
	require.ErrorContains(t, err, "is damaged or was changed: its sha256 is ")
	require.ErrorContains(t, err, "(run edge-infer model pull yolox-s)")

	listing, err := store.List()
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, listing.Print(&out))
	assert.Regexp(t, `(?m)^yolox-s +people, vehicles, animals +640x640 +35.9 MB +Apache-2.0 +AP 40.5 on COCO val2017 \(opencv_zoo\) +yes$`, out.String())
	assert.Regexp(t, `(?m)^yolox-nano .* -$`, out.String())

	require.NoError(t, store.Remove("yolox-s"))
	left, err := os.ReadDir(store.Dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	require.EqualError(t, store.Remove("yolox-s"), "model yolox-s is not downloaded (see edge-infer model list)")
	require.Error(t, store.Remove("../yolox-s"))
}

// The names of what people look for are those of the recommended model.
func TestLookupByPurpose(t *testing.T) {
	for purpose, want := range map[string]string{
		"people": "yolox-s", "animals": "yolox-s", "faces": "face-640", "yolox-nano": "yolox-nano", "dfine-s": "dfine-s",
	} {
		e, err := Lookup(purpose)
		require.NoError(t, err)
		require.Equal(t, want, e.Name)
	}
}

// A mirror has the files of the catalogue under their names.
func TestPullFromAMirror(t *testing.T) {
	for _, mirror := range []string{"https://files.example.org/models", "https://files.example.org/models/"} {
		e, err := (&Pull{Source: "faces", Mirror: mirror}).entry()
		require.NoError(t, err)
		require.Equal(t, "https://files.example.org/models/version-RFB-640.onnx", e.URL)
		face, err := Lookup("face-640")
		require.NoError(t, err)
		require.Equal(t, face.SHA256, e.SHA256)
	}
}

func TestOffer(t *testing.T) {
	data := bytes.Repeat([]byte("network "), 200_000)
	server := publish(t, data)
	e := Entry{
		Name: "mine", Finds: []string{"people", "cats"}, URL: server.URL + "/of/mine.onnx", SHA256: hashed(data),
		Licence: "MIT", Bytes: 1_600_000,
	}
	const question = "No model is set. mine detects people, cats.\nDownload it (2 MB, MIT) and continue? [Y/n] "
	const next = "Next time: --model mine, or model: {path: mine} in the configuration file.\n"
	const using = "No model is set, using mine. For another one: --model.\n"
	installed := strings.Replace(question, "Download it (2 MB, MIT) and continue", "It is installed. Continue with it", 1)
	for _, test := range []struct {
		answer, model, text string
		again               string // what the next run prints
	}{
		{"n\n", "", question, ""},
		{"", "", question, question}, // the terminal was closed: nobody has answered
		{"what\n", "", question, ""},
		{"\n", "mine", question + next, using},
		{"YES\n", "mine", question + next, using},
	} {
		store := Store{filepath.Join(t.TempDir(), "models")}
		for _, text := range []string{test.text, test.again} {
			var out bytes.Buffer
			model, err := (&Offer{Model: e, In: strings.NewReader(test.answer), Out: &out, Pull: Pull{Store: store}}).Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.model, model, test.answer)
			require.Equal(t, text, out.String())
			require.Equal(t, model != "", store.Has("mine"))
		}
		if test.model == "" {
			continue
		}
		require.NoError(t, store.Remove("mine")) // so it is offered again
		var out bytes.Buffer
		_, err := (&Offer{Model: e, In: strings.NewReader("n\n"), Out: &out, Pull: Pull{Store: store}}).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, question, out.String())
	}
	store := Store{t.TempDir()}
	_, err := (&Pull{Store: store, Source: e.URL, SHA256: e.SHA256, Name: e.Name}).Run(t.Context())
	require.NoError(t, err)
	var out bytes.Buffer
	_, err = (&Offer{Model: e, In: strings.NewReader("y\n"), Out: &out, Pull: Pull{Store: store}}).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, installed+next, out.String())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	waits, _, err := os.Pipe()
	require.NoError(t, err)
	defer waits.Close()
	_, err = (&Offer{Model: e, In: waits, Out: new(bytes.Buffer), Pull: Pull{Store: Store{t.TempDir()}}}).Run(ctx)
	require.EqualError(t, err, "interrupted")
}

// A file with the hash of a catalogue entry is that model, whatever its name.
func TestPullRecognisesHashes(t *testing.T) {
	p := &Pull{Source: filepath.Join(t.TempDir(), "downloaded.onnx"), SHA256: strings.ToUpper(Entries()[1].SHA256)}
	require.NoError(t, os.WriteFile(p.Source, nil, 0o600))
	e, err := p.entry()
	require.NoError(t, err)
	assert.Equal(t, "yolox-nano", e.Name)
	assert.Equal(t, p.Source, e.URL)
	assert.Equal(t, "coco", e.Labels)
}
