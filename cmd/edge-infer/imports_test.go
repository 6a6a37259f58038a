package main

import (
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module     = "github.com/edge-infer/edge-infer/"
	theCommand = "cmd/edge-infer"
)

// rooms says which rooms of the project each room may import; a room stands for its own folders as well, internal/ for those of this
// command. The command itself may import everything.
var rooms = map[string]string{
	"capture":            "capture/scene engine",
	"capture/source":     "capture capture/scene engine",
	"capture/scene":      "",
	"cross":              "",
	"engine":             "",
	backends:             "engine engine/atomicfile engine/cuda engine/onnx engine/preprocess",
	"engine/auto":        "engine engine/* engine/cuda engine/onnxruntime engine/tensorrt",
	"engine/cuda":        "engine",
	"engine/demo":        "",
	"engine/enginetest":  "engine",
	"engine/onnx":        "engine engine/atomicfile",
	"engine/onnxruntime": "engine engine/onnx engine/preprocess",
	"engine/preprocess":  "engine engine/cuda",
	"engine/quantize":    "engine engine/atomicfile engine/onnx",
	"engine/tensorrt":    "engine engine/atomicfile engine/cuda engine/isolate engine/preprocess",
	"mqtt": "engine/atomicfile mqtt/address mqtt/command mqtt/credentials mqtt/homeassistant mqtt/ledger mqtt/packetsize mqtt/payload mqtt/spool mqtt/topic " +
		"mqtt/transport",
	"mqtt/address":         "mqtt/credentials",
	"mqtt/broker":          "mqtt/credentials",
	"mqtt/command":         "",
	"mqtt/credentials":     "",
	"mqtt/homeassistant":   "mqtt/topic",
	"mqtt/ledger":          "",
	"mqtt/payload":         "",
	"mqtt/packetsize":      "",
	"mqtt/spool":           "engine/atomicfile mqtt/ledger",
	"mqtt/transport":       "mqtt/address mqtt/credentials",
	"mqtt/topic":           "",
	"postprocess":          "",
	"postprocess/draw":     "postprocess",
	"postprocess/evaluate": "engine postprocess",
	"postprocess/decode":   "engine postprocess postprocess/head postprocess/scan",
	"postprocess/head":     "engine postprocess/scan",
	"postprocess/scan":     "engine postprocess",
	"postprocess/predict":  "engine engine/auto engine/cuda engine/demo engine/onnx engine/tensorrt postprocess postprocess/decode postprocess/head",
	"postprocess/track":    "postprocess",
	"postprocess/zone":     "postprocess postprocess/track",
	"systemd":              "",
	"engine/atomicfile":    "",
	"engine/isolate":       "",
	"postprocess/predict/tile": "engine postprocess postprocess/decode " +
		"postprocess/predict",
	"internal/accuracy": "capture engine engine/atomicfile engine/onnxruntime engine/quantize engine/tensorrt internal/config " +
		"internal/media internal/network internal/plot internal/progress postprocess postprocess/evaluate postprocess/predict",
	"internal/bench": "capture capture/scene engine engine/tensorrt internal/config internal/network internal/pipeline internal/progress " +
		"internal/sink mqtt mqtt/broker postprocess/predict",
	"internal/broker":    "internal/config mqtt mqtt/broker mqtt/credentials mqtt/spool mqtt/topic",
	"internal/catalogue": "engine engine/atomicfile internal/progress",
	"internal/config":    "capture engine/atomicfile mqtt/address mqtt/spool postprocess/head postprocess/zone",
	"internal/convert": "engine engine/atomicfile engine/cuda engine/onnx engine/preprocess engine/quantize engine/tensorrt " +
		"internal/accuracy internal/catalogue internal/config internal/media internal/network internal/progress postprocess/evaluate postprocess/predict",
	"internal/daemon": "capture capture/source engine engine/cuda engine/quantize engine/tensorrt internal/accuracy internal/broker internal/config " +
		"internal/network internal/pipeline internal/preflight internal/progress internal/report internal/sink internal/telemetry internal/web " +
		"mqtt mqtt/broker mqtt/homeassistant mqtt/ledger mqtt/payload postprocess/predict postprocess/zone systemd",
	"internal/doctor": "capture capture/source engine engine/cuda engine/isolate engine/onnxruntime engine/tensorrt internal/broker internal/config " +
		"internal/network internal/telemetry mqtt mqtt/spool postprocess/head postprocess/predict",
	"internal/infer": "capture capture/source engine engine/atomicfile engine/onnx engine/tensorrt internal/config internal/media internal/network " +
		"internal/progress internal/report mqtt/payload postprocess postprocess/draw postprocess/predict",
	"internal/media": "capture capture/source engine postprocess/predict",
	"internal/network": "engine engine/tensorrt internal/catalogue internal/config internal/progress postprocess/head postprocess/predict " +
		"postprocess/predict/tile",
	"internal/picture":  "engine",
	"internal/pipeline": "capture engine postprocess postprocess/predict postprocess/track postprocess/zone",
	"internal/plot":     "",
	"internal/probe":    "capture capture/source engine engine/auto engine/cuda engine/isolate engine/tensorrt",
	"internal/preflight": "engine engine/isolate engine/tensorrt internal/broker internal/config internal/network internal/web postprocess/predict " +
		"postprocess/zone",
	"internal/progress":  "",
	"internal/report":    "internal/pipeline internal/progress mqtt/payload postprocess postprocess/zone systemd",
	"internal/sink":      "engine/atomicfile internal/picture internal/pipeline internal/report mqtt mqtt/payload postprocess postprocess/zone",
	"internal/telemetry": "engine/cuda",
	"internal/web":       "capture engine/atomicfile internal/picture internal/pipeline internal/report postprocess postprocess/zone",
}

// cgo says which rooms may hold C.
var cgo = []string{"capture/source", "engine/cuda", "engine/preprocess", "engine/tensorrt", "postprocess/scan"}

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

// backends is the room of the backends that have no entry of their own.
const backends = "engine/*"

// room is the longest entry of rooms that holds the package, or the package itself.
func room(path string) string {
	path = strings.TrimPrefix(strings.TrimPrefix(path, module), theCommand+"/")
	for at := path; at != "."; at = filepath.Dir(at) {
		if at == "engine" && path != at {
			return backends
		}
		if _, known := rooms[at]; known {
			return at
		}
	}
	return path
}

func TestRoomsImportOnlyWhatTheyMay(t *testing.T) {
	for _, p := range list(t) {
		from := room(p.ImportPath)
		if strings.HasSuffix(p.ImportPath, "test") || from == theCommand { // packages that only tests import; the command
			continue
		}
		allowed, known := rooms[from]
		require.True(t, known, "%s is no room", from)
		for _, path := range p.Imports {
			if !strings.HasPrefix(path, module) {
				continue
			}
			to := room(path)
			require.True(t, from == to || slices.Contains(strings.Fields(allowed), to), "%s must not import %s", from, to)
		}
		if len(p.CgoFiles) > 0 {
			require.Contains(t, cgo, from, "C belongs to a few rooms only")
		}
	}
}
