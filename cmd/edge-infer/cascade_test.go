package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gocv.io/x/gocv"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
)

// writeColours writes a real classifier that tells which of red, green and blue there is most of.
func writeColours(t *testing.T) (path string) {
	b := testnet.NewBuilder(1)
	x := b.Input("images", -1, 3, 32, 32)
	x = b.Node("GlobalAveragePool", "/pool", []string{x})
	x = b.Node("Flatten", "/flat", []string{x})
	x = b.Node("Mul", "/sharpen", []string{x, b.Floats("sharpness", []float32{60})})
	b.Output(b.Rename(b.Node("Softmax", "/softmax", []string{x}), "scores"), -1, 3)
	m := b.Model(17)
	m.SetMetadata("task", "classify")
	m.SetMetadata("names", "{0: 'red', 1: 'green', 2: 'blue'}")
	data, err := proto.Marshal(m.Proto)
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "colours.onnx")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// attributed is a detection as it is printed.
type attributed struct {
	Label      string     `json:"label"`
	Box        [4]float64 `json:"box"`
	Track      uint64     `json:"track"`
	Attributes map[string]struct {
		Value string  `json:"value"`
		Score float64 `json:"score"`
	} `json:"attributes"`
}

// colour is what there is most of in a box, and how much more than of the next one.
func colour(img gocv.Mat, box [4]float64) (name string, lead float64) {
	part := image.Rect(int(box[0]), int(box[1]), int(box[2]), int(box[3])).Intersect(image.Rect(0, 0, img.Cols(), img.Rows()))
	// Ultralytics' classifiers see the middle of an image, as much of it as is square.
	side := min(part.Dx(), part.Dy())
	middle := image.Pt((part.Min.X+part.Max.X)/2, (part.Min.Y+part.Max.Y)/2)
	region := img.Region(image.Rect(middle.X-side/2, middle.Y-side/2, middle.X-side/2+side, middle.Y-side/2+side))
	defer region.Close()
	mean := region.Mean()
	levels := map[string]float64{"red": mean.Val3, "green": mean.Val2, "blue": mean.Val1}
	for candidate, level := range levels {
		if name == "" || level > levels[name] {
			name = candidate
		}
	}
	lead = 255
	for candidate, level := range levels {
		if candidate != name {
			lead = min(lead, levels[name]-level)
		}
	}
	return name, lead
}

// TestASecondNetworkLooksAtEveryObject: what it says of each is what the pixels of its box say.
func TestASecondNetworkLooksAtEveryObject(t *testing.T) {
	t.Parallel()
	data, saved := filepath.Join(t.TempDir(), "data"), t.TempDir()
	require.NoError(t, programtest.Command(t, "dataset", "--out", data, "--count", "6", "--seed", "3").Run())
	images := filepath.Join(data, "images")
	output := programtest.Output(t, "infer", "--model", "demo", images, "--json", "--batch", "2", "--save", saved,
		"--cascade", "colour="+writeColours(t))
	sure := map[string]int{}
	for line := range bytes.Lines(output) {
		var seen struct {
			File       string       `json:"file"`
			Detections []attributed `json:"detections"`
		}
		require.NoError(t, json.Unmarshal(line, &seen))
		img := gocv.IMRead(seen.File, gocv.IMReadColor)
		require.False(t, img.Empty())
		for _, d := range seen.Detections {
			if min(d.Box[2]-d.Box[0], d.Box[3]-d.Box[1]) < 16 {
				require.Empty(t, d.Attributes, "too small to be looked at")
				continue
			}
			require.Len(t, d.Attributes, 1, "%s", line)
			if want, lead := colour(img, d.Box); lead > 12 {
				require.Equal(t, want, d.Attributes["colour"].Value, "%s %v", seen.File, d.Box)
				sure[want]++
			}
		}
		require.NoError(t, img.Close())
	}
	require.GreaterOrEqual(t, len(sure), 2, "%v", sure)
	total := 0
	for _, n := range sure {
		total += n
	}
	require.Greater(t, total, 10)
}

func TestCascadesThatCannotBe(t *testing.T) {
	t.Parallel()
	colours := writeColours(t)
	file := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte("cascade:\n  - name: colour\n    model: "+colours+"\n    on: [bus]\n"), 0o600))
	for want, arguments := range map[string][]string{
		`cascade "colour" must be NAME=MODEL.onnx, with the name that the attribute gets`:                                   {"--cascade", "colour"},
		`cascade helmet: model none.onnx: no such file (name an ONNX file, or demo for the embedded model)`:                 {"--cascade", "helmet=none.onnx"},
		`cascade colour: first model: label "bus" is not one of the model's`:                                                {"--config", file},
		`outputs box, class and score of each object (a cascade needs a classifier, a text reader or an embedding network)`: {"--cascade", "parts=demo"},
	} {
		output, err := programtest.Command(t, append([]string{"infer", "--model", "demo", "none.jpg"}, arguments...)...).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(output), want)
	}
}

// startCascade has 60 images of a drawn camera looked at with a cascade, a list's element in YAML, and gives what the broker hears.
func startCascade(t *testing.T, cascade string, flags ...string) (p *programtest.Program, received <-chan string) {
	t.Helper()
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	received = programtest.Subscribe(t, port, "edge-infer/gate/#")
	file := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte("cascade: ["+cascade+"]\n"), 0o600))
	all := []string{
		"--camera", "belt=demo?fps=15&width=640&height=360", "--mqtt", fmt.Sprintf("tcp://127.0.0.1:%d", port),
		"--name", "gate", "--frames", "60", "--config", file,
	}
	return programtest.Start(t, append(all, flags...)...), received
}

// TestACascadeFollowsTracks: objects of a running camera have attributes, in their frames and in their events.
func TestACascadeFollowsTracks(t *testing.T) {
	t.Parallel()
	p, received := startCascade(t, "{name: colour, every: 100ms, votes: 3, margin: 0.05, model: "+writeColours(t)+"}", "--json")
	said := map[uint64]bool{}
	for {
		line, more := p.Line()
		require.True(t, more)
		var f struct {
			Stats      json.RawMessage `json:"stats"`
			Detections []attributed    `json:"detections"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &f))
		if f.Stats != nil {
			break
		}
		for _, d := range f.Detections {
			if len(d.Attributes) > 0 {
				require.Contains(t, []string{"red", "green", "blue"}, d.Attributes["colour"].Value)
				said[d.Track] = true
			}
		}
	}
	require.NoError(t, p.Wait())
	require.NotEmpty(t, said)
	ended := 0
	seen := programtest.Until(t, received, "edge-infer/gate/available stopped")
	for _, text := range programtest.Payloads(seen, "edge-infer/gate/belt/events") {
		var e struct {
			attributed
			Type string `json:"type"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &e))
		if e.Type == "end" && said[e.Track] {
			require.Len(t, e.Attributes, 1, text)
			ended++
		}
	}
	require.Positive(t, ended)
}

// TestEventsHaveEmbeddings where the cascade says so, of a network that is named an embedding.
func TestEventsHaveEmbeddings(t *testing.T) {
	t.Parallel()
	p, received := startCascade(t, "{name: look, layout: embedding, every: 100ms, remember: 5s, vector: true, model: "+writeColours(t)+"}")
	require.NoError(t, p.Wait())
	told := 0
	seen := programtest.Until(t, received, "edge-infer/gate/available stopped")
	for _, text := range programtest.Payloads(seen, "edge-infer/gate/belt/events") {
		var e struct {
			Type      string `json:"type"`
			Embedding []byte `json:"embedding"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &e))
		if e.Type != "end" && e.Type != "update" {
			require.Empty(t, e.Embedding, text)
		} else if e.Embedding != nil {
			require.Len(t, e.Embedding, 3*2, "three numbers of 16 bits")
			told++
		}
	}
	require.Positive(t, told)
}
