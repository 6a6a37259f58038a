package main

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module     = "github.com/edge-infer/edge-infer/"
	theCommand = "cmd/edge-infer"
)

// table says which rooms of the project each room may import; a room stands for its own directories as well, internal/ for those of this
// command, and an indented line goes on with the one before. The command itself may import everything.
const table = `
cmd/rtsp-server: capture/rtsp/rtsptest
cmd/track-benchmark: capture/motion engine engine/onnx postprocess postprocess/track
capture: capture/scene engine internal/backoff internal/clock internal/redact
capture/gstreamer: capture engine engine/cuda
capture/motion: engine
capture/scene:
capture/nvdec: capture engine engine/cuda
capture/rtsp: internal/boundedfile capture
capture/rtsp/rtsptest:
capture/source: capture capture/gstreamer capture/nvdec capture/rtsp capture/scene engine engine/isolate
cross:
engine: internal/boundedfile internal/spelling
engine/*: engine internal/atomicfile engine/cuda engine/onnx engine/preprocess
engine/auto: engine engine/* engine/cuda engine/onnxruntime engine/tensorrt engine/triton
engine/cuda: engine
engine/demo:
engine/enginetest: engine
engine/isolate:
engine/kserve: engine engine/onnx internal/inflight
engine/onnx: engine internal/atomicfile
engine/onnxruntime: engine engine/onnx engine/preprocess engine/worker internal/clock
engine/preprocess: engine engine/cuda
engine/quantize: engine internal/atomicfile engine/onnx
engine/tensorrt: engine internal/atomicfile internal/meminfo engine/cuda engine/isolate engine/preprocess
engine/standby: engine
engine/triton: engine engine/cuda engine/kserve engine/kserve/kservepb engine/preprocess engine/worker internal/clock internal/inflight
engine/worker: engine internal/clock
cmd/acceptance: capture/rtsp/rtsptest capture/scene engine/onnx engine/quantize mqtt/broker
internal/access: internal/atomicfile
internal/accuracy: capture engine internal/atomicfile engine/onnxruntime engine/quantize engine/tensorrt internal/imagesize internal/config
	internal/media internal/network internal/plot internal/progress postprocess postprocess/evaluate postprocess/format postprocess/head
	postprocess/predict
internal/annotate: capture/source internal/atomicfile internal/jpegimage internal/pipeline postprocess postprocess/draw postprocess/zone
internal/imagesize: capture capture/source engine internal/atomicfile internal/process
internal/bench: capture capture/scene engine internal/atomicfile engine/onnx engine/tensorrt internal/config internal/network
	internal/pipeline internal/plot internal/process internal/progress internal/sink internal/stage internal/telemetry mqtt mqtt/broker
	postprocess postprocess/evaluate postprocess/predict
internal/atomicfile:
internal/audit:
internal/backoff:
internal/boundedfile:
internal/mqttconfig: internal/config internal/site mqtt mqtt/broker mqtt/credentials mqtt/spool mqtt/topic
internal/bundle: internal/labelled internal/boundedfile internal/labelfile engine engine/onnx engine/quantize engine/tensorrt
	internal/atomicfile internal/catalogue
	internal/progress
internal/catalogue: engine internal/atomicfile internal/progress
internal/clock:
internal/config: capture engine internal/atomicfile internal/boundedfile internal/redact internal/spelling internal/yamldepth
	engine/triton internal/process mqtt/address mqtt/payload mqtt/spool
	postprocess/head postprocess/predict/ensemble postprocess/predict/tile postprocess/track postprocess/zone
internal/convert: engine internal/atomicfile engine/cuda engine/onnx engine/preprocess engine/quantize engine/tensorrt internal/accuracy
	internal/catalogue internal/config internal/media internal/network internal/progress postprocess/evaluate postprocess/head
	postprocess/predict
internal/daemon: capture internal/annotate internal/imagesize internal/atomicfile internal/bundle internal/config internal/daemon/control
	internal/daemon/fleet internal/daemon/outputs internal/hawkbit internal/judge internal/pipeline internal/process internal/progress
	internal/catalogue internal/report internal/site mqtt/payload
	internal/state internal/telemetry internal/terminal internal/update systemd
internal/daemon/camera: capture internal/pipeline internal/site
internal/daemon/device: capture engine engine/cuda engine/standby engine/tensorrt engine/triton internal/backoff internal/config
	internal/judge internal/network internal/pipeline internal/progress internal/sink internal/site internal/stage internal/state
	postprocess/predict
internal/daemon/control: internal/boundedfile internal/config internal/diagnose internal/network internal/process internal/site
	internal/state mqtt mqtt/command postprocess/zone
internal/daemon/fleet: capture capture/motion capture/source engine engine/quantize internal/accuracy internal/imagesize internal/config
	internal/daemon/camera internal/daemon/device internal/judge internal/media internal/network internal/pipeline
	internal/process internal/progress
	internal/record internal/site internal/stage internal/state internal/update postprocess/predict postprocess/predict/cascade
	postprocess/zone
internal/daemon/outputs: capture mqtt/credentials engine engine/quantize internal/accuracy internal/annotate
	internal/samples
	internal/audit internal/boundedfile
	internal/mqttconfig internal/config internal/history internal/onvif internal/pipeline internal/record internal/report internal/sink
	internal/site internal/stage internal/state internal/store internal/telemetry internal/terminal internal/update
	internal/upload internal/verify
	internal/web internal/webhook mqtt mqtt/address
	mqtt/broker mqtt/command mqtt/homeassistant mqtt/ledger mqtt/payload postprocess/predict postprocess/predict/cascade postprocess/zone
internal/config/manual: internal/config
internal/diagnose: internal/boundedfile internal/redact internal/site mqtt/command capture capture/gstreamer capture/nvdec
	capture/rtsp capture/rtsp/rtsptest capture/scene capture/source engine
	internal/atomicfile engine/auto engine/cuda engine/isolate engine/onnxruntime engine/preprocess engine/tensorrt internal/mqttconfig
	internal/bundle internal/config internal/hawkbit internal/network internal/process internal/progress internal/telemetry internal/update
	internal/upload internal/verify internal/web
	internal/webhook mqtt mqtt/spool postprocess postprocess/head postprocess/predict postprocess/zone
internal/crashtest:
internal/prototest: internal/testtool
internal/testtool:
internal/httperror:
internal/hawkbit: internal/backoff internal/config internal/httperror internal/update mqtt/credentials mqtt/payload
internal/history: internal/pipeline postprocess postprocess/zone
internal/infer: capture capture/source engine internal/atomicfile engine/onnx engine/tensorrt internal/annotate internal/imagesize
	internal/config internal/media internal/network internal/pipeline internal/progress internal/report internal/terminal mqtt/payload
	postprocess postprocess/draw postprocess/evaluate postprocess/format postprocess/predict postprocess/predict/window postprocess/track
	postprocess/zone
internal/judge: engine engine/isolate internal/boundedfile internal/labelled internal/network internal/progress internal/site postprocess
	postprocess/evaluate postprocess/predict
internal/media: capture capture/source engine internal/meminfo postprocess/predict
internal/network: engine engine/cuda engine/tensorrt engine/triton internal/catalogue internal/config internal/progress internal/site
	mqtt/credentials postprocess/head postprocess/predict postprocess/predict/cascade postprocess/predict/ensemble postprocess/predict/tile
internal/jpegimage: capture engine internal/pipeline postprocess postprocess/zone
internal/onvif: capture internal/redact mqtt/credentials
internal/onvif/onviftest:
internal/pipeline: capture capture/motion engine internal/stage postprocess postprocess/predict
	postprocess/predict/cascade postprocess/track
	postprocess/zone
internal/plot: internal/atomicfile
internal/process:
internal/progress:
internal/report: capture engine/onnx internal/pipeline internal/progress internal/terminal mqtt/payload postprocess postprocess/zone
	systemd
internal/mp4: capture
internal/mp4/mp4test: capture internal/mp4
internal/record: capture internal/atomicfile internal/jpegimage internal/mp4 internal/pipeline postprocess postprocess/zone
internal/repository: engine internal/atomicfile engine/kserve engine/onnx engine/tensorrt internal/config internal/network
	postprocess/predict
internal/serve: internal/boundedfile engine engine/kserve internal/access internal/config internal/network internal/process
	internal/progress internal/terminal
	postprocess/predict
internal/rollout: internal/progress mqtt mqtt/payload mqtt/topic
internal/samples: internal/atomicfile internal/boundedfile internal/jpegimage internal/pipeline postprocess
internal/sink: capture internal/jpegimage internal/pipeline internal/report internal/stage internal/store
	internal/webhook mqtt mqtt/payload mqtt/topic postprocess
	postprocess/predict/cascade postprocess/zone
internal/site: internal/config mqtt/command postprocess/track postprocess/zone
internal/redact:
internal/spelling:
internal/stage:
internal/state: capture engine/quantize engine/standby engine/triton internal/pipeline internal/record internal/site internal/stage
	internal/samples
	internal/store internal/telemetry internal/update internal/upload internal/verify internal/webhook mqtt mqtt/broker postprocess/predict
	postprocess/predict/cascade
	postprocess/zone
internal/store: internal/atomicfile internal/history internal/pipeline internal/record postprocess postprocess/zone
internal/telemetry: engine/cuda internal/meminfo
internal/inflight:
internal/meminfo:
internal/terminal:
internal/tritoncheck:
internal/web: internal/boundedfile capture internal/access internal/audit internal/backoff internal/history internal/inflight
	internal/samples
	internal/pipeline internal/stage internal/store
	internal/web/live internal/update internal/upload internal/verify internal/webhook postprocess/zone
internal/update: internal/atomicfile internal/backoff internal/boundedfile internal/bundle internal/catalogue
	internal/config internal/jpegimage
	internal/judge internal/pipeline internal/progress mqtt/payload
internal/upload: internal/boundedfile internal/backoff internal/config internal/httperror internal/store mqtt/spool
internal/webhook: internal/atomicfile internal/backoff internal/config internal/httperror internal/site internal/webpush
	mqtt/credentials mqtt/payload mqtt/spool
internal/verify: internal/backoff internal/config internal/sink internal/site internal/webhook mqtt/credentials mqtt/payload mqtt/spool
internal/webpush: internal/atomicfile internal/boundedfile
internal/web/live: capture internal/inflight internal/jpegimage internal/mp4 internal/pipeline internal/report
	internal/stage mqtt/payload postprocess
	postprocess/zone
internal/labelled: postprocess postprocess/evaluate
internal/labelfile: engine internal/yamldepth
internal/yamldepth:
mqtt: internal/atomicfile internal/backoff mqtt/address mqtt/command mqtt/credentials mqtt/homeassistant mqtt/ledger
	mqtt/payload mqtt/spool mqtt/topic
	mqtt/transport
mqtt/address: internal/redact mqtt/credentials
mqtt/broker: mqtt/credentials
mqtt/command:
mqtt/credentials: internal/boundedfile
mqtt/homeassistant: mqtt/topic
mqtt/ledger:
mqtt/payload:
mqtt/spool: internal/atomicfile mqtt/ledger
mqtt/topic:
mqtt/transport: mqtt/address mqtt/credentials
postprocess: engine internal/spelling
postprocess/draw: postprocess
postprocess/evaluate: engine internal/yamldepth postprocess
postprocess/format: postprocess
postprocess/head: engine internal/spelling postprocess postprocess/scan
postprocess/predict: internal/boundedfile internal/labelfile engine engine/auto engine/demo engine/onnx engine/standby
	engine/tensorrt postprocess
	postprocess/head
postprocess/predict/cascade: internal/backoff engine postprocess postprocess/predict
postprocess/predict/ensemble: engine postprocess postprocess/head postprocess/predict
postprocess/predict/window: engine
postprocess/predict/tile: engine postprocess postprocess/head postprocess/predict postprocess/predict/ensemble
postprocess/scan: engine postprocess
postprocess/track: postprocess
postprocess/zone: postprocess postprocess/track
systemd:
`

// rooms is the table by room.
var rooms = func() map[string][]string {
	rooms := map[string][]string{}
	for line := range strings.Lines(strings.ReplaceAll(strings.TrimSpace(table), "\n\t", " ")) {
		room, may, _ := strings.Cut(line, ":")
		rooms[room] = strings.Fields(may)
	}
	return rooms
}()

// cgo says which rooms may hold C.
var cgo = []string{
	"capture/gstreamer", "capture/nvdec", "capture/source", "engine/cuda", "engine/preprocess", "engine/tensorrt", "internal/process",
	"postprocess/scan",
}

type listed struct {
	ImportPath string
	Dir        string
	Export     string // file of compiled types
	DepOnly    bool   // of no package of ours
	Imports    []string
	GoFiles    []string
	CgoFiles   []string
}

// list lists the packages of the project and those that they need.
func list(t *testing.T) []listed {
	fields := "-json=ImportPath,Dir,Export,DepOnly,Imports,GoFiles,CgoFiles"
	output, err := exec.Command("go", "list", "-deps", "-export", fields, module+"...").Output()
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
		ofTests := strings.HasSuffix(p.ImportPath, "test") && from != "internal/diagnose" // only tests import it
		if p.DepOnly || ofTests || from == theCommand {
			continue
		}
		allowed, known := rooms[from]
		require.True(t, known, "%s is no room", from)
		for _, path := range p.Imports {
			if !strings.HasPrefix(path, module) {
				continue
			}
			to := room(path)
			require.True(t, from == to || slices.Contains(allowed, to), "%s must not import %s", from, to)
		}
		if len(p.CgoFiles) > 0 {
			require.Contains(t, cgo, from, "C belongs to a few rooms only")
		}
	}
}

// TestFewReadTheWholeConfiguration: what runs is resolved once, by package site. Below it nothing knows the whole configuration but
// control, which loads it; commands other than run, and the packages that they share with it, have no site.
func TestFewReadTheWholeConfiguration(t *testing.T) {
	readers := map[string]bool{}
	err := filepath.WalkDir("internal", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if regexp.MustCompile(`\bconfig\.Config\b`).Match(text) {
			readers[path] = true
		}
		return err
	})
	require.NoError(t, err)
	for path := range readers {
		switch dir := strings.TrimPrefix(filepath.Dir(path), "internal/"); dir {
		case "config/manual", "site", "daemon", "diagnose", "network":
		case "accuracy", "bench", "infer", "repository", "serve": // other commands
		default:
			require.Contains(t, []string{"internal/daemon/control/control.go", "internal/daemon/control/reload.go"}, path,
				"%s reads the whole configuration: take the settings from package site", path)
		}
	}
}

// TestImagesLeaveThroughOnePlace: nothing that gets results of the frame loop reads the pixels of their frames itself, because package
// jpegimage hides what nobody may recognise.
func TestImagesLeaveThroughOnePlace(t *testing.T) {
	pixels := regexp.MustCompile(`\bFrame\.(Image\(|Data\b)`)
	readers := map[string]bool{}
	for _, place := range []string{"daemon", "history", "jpegimage", "record", "sink", "store", "web"} {
		err := filepath.WalkDir(filepath.Join("internal", place), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if pixels.Match(text) {
				readers[path] = true
			}
			return err
		})
		require.NoError(t, err)
	}
	require.Equal(t, map[string]bool{"internal/jpegimage/pixels.go": true}, readers)
}
