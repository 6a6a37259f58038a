package main

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/edge-infer/edge-infer/"

// rooms says which rooms of the project each room may import; a room stands for its own folders as well.
var rooms = map[string][]string{
	"cmd/edge-infer":                    {"capture", "capture/scene", "engine", "engine/auto", "engine/cuda", "engine/demo", "engine/onnx", "engine/onnxruntime", "engine/preprocess", "engine/quantize", "engine/tensorrt", "postprocess", "postprocess/draw", "postprocess/evaluate", "postprocess/track", "postprocess/zone", "mqtt", "systemd", "cmd/edge-infer/internal/config", "cmd/edge-infer/internal/pipeline", "cmd/edge-infer/internal/report", "cmd/edge-infer/internal/web", "cmd/edge-infer/internal/telemetry"},
	"cmd/edge-infer/internal/config":    {"postprocess/zone"},
	"cmd/edge-infer/internal/pipeline":  {"capture", "engine", "postprocess", "postprocess/track", "postprocess/zone", "mqtt"},
	"cmd/edge-infer/internal/report":    {"cmd/edge-infer/internal/pipeline", "mqtt", "postprocess/zone"},
	"cmd/edge-infer/internal/telemetry": {"engine/cuda"},
	"cmd/edge-infer/internal/web":       {"cmd/edge-infer/internal/pipeline", "postprocess", "postprocess/zone", "capture"},
	"capture":                           {"capture/scene"},
	"capture/scene":                     {},
	"engine":                            {},
	"engine/demo":                       {},
	"postprocess":                       {},
	"engine/auto":                       {"engine", "engine/cuda", "engine/onnxruntime", "engine/tensorrt"},
	"engine/cuda":                       {"engine"},
	"engine/preprocess":                 {"engine", "engine/cuda"},
	"engine/tensorrt":                   {"engine", "engine/cuda", "engine/preprocess"},
	"engine/enginetest":                 {"engine"},
	"engine/onnxruntime":                {"engine", "engine/onnx", "engine/preprocess"},
	"engine/onnx":                       {"engine"},
	"engine/quantize":                   {"engine", "engine/onnx"},
	"postprocess/draw":                  {"postprocess"},
	"postprocess/evaluate":              {"postprocess"},
	"postprocess/track":                 {"postprocess"},
	"postprocess/zone":                  {"postprocess", "postprocess/track"},
}

// cgo says which rooms may hold C.
var cgo = []string{"capture", "engine/cuda", "engine/preprocess", "engine/tensorrt", "postprocess"}

type listed struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
}

func list(t *testing.T) []listed {
	output, err := exec.Command("go", "list", "-json=ImportPath,Imports,CgoFiles", module+"...").Output()
	require.NoError(t, err)
	var packages []listed
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for {
		var p listed
		if err := decoder.Decode(&p); err == io.EOF {
			return packages
		} else {
			require.NoError(t, err)
		}
		packages = append(packages, p)
	}
}

// room is the longest entry of rooms that holds the folder, or the folder itself.
func room(folder string) string {
	for at := folder; at != "."; at = parent(at) {
		if _, known := rooms[at]; known {
			return at
		}
	}
	return folder
}

func parent(folder string) string {
	if cut := strings.LastIndexByte(folder, '/'); cut > 0 {
		return folder[:cut]
	}
	return "."
}

func TestRoomsImportOnlyWhatTheyMay(t *testing.T) {
	for _, p := range list(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasSuffix(folder, "test") { // packages that only tests import
			continue
		}
		from := room(folder)
		for _, path := range p.Imports {
			if !strings.HasPrefix(path, module) {
				continue
			}
			to := room(strings.TrimPrefix(path, module))
			require.True(t, from == to || slices.Contains(rooms[from], to), "%s must not import %s", folder, to)
		}
		if len(p.CgoFiles) > 0 {
			require.Contains(t, cgo, from, "C belongs to a few rooms only")
		}
	}
}
