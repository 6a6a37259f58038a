package tensorrt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
)

// PlanFacts is the description in a plan file. Zero values are unknown.
type PlanFacts struct {
	// Version is the TensorRT version of the build.
	Version string `json:"tensorrt,omitempty"`
	// Architecture is the GPU's, such as sm_87; GPU is its name.
	Architecture string           `json:"architecture,omitempty"`
	GPU          string           `json:"gpu,omitempty"`
	Precision    engine.Precision `json:"precision,omitempty"`
	Metadata     engine.Metadata  `json:"metadata"`
	// DLA is the core that the plan was built for, nil for the GPU.
	DLA *int `json:"dla,omitempty"`
	// Plugins are the plugins of the build, which the plan needs again.
	Plugins []PluginFacts `json:"plugins,omitempty"`
	// Model is the path of the ONNX file, Layers its number of layers, BuildSeconds the duration of the build.
	Model        string  `json:"model,omitempty"`
	Layers       int     `json:"layers,omitempty"`
	BuildSeconds float64 `json:"build_seconds,omitempty"`
}

// planMagic starts a plan file of this project: the magic, the length of a JSON text as uint32, the JSON of PlanFacts, the SHA-256 of
// everything else, TensorRT's plan. Numbers are little endian.
const planMagic = "EIPLAN1\n"

const maxFacts = 64 << 20 // limit of Ultralytics' JSON header, which can hold many labels

// maxOwnFacts limits the header of EncodePlan, labels included.
const maxOwnFacts = 16 << 20

// EncodePlan returns a plan file for ReadPlan.
func EncodePlan(facts PlanFacts, plan []byte) ([]byte, error) {
	header, err := json.Marshal(facts)
	if err != nil {
		return nil, fmt.Errorf("encode plan header: %w", err)
	}
	if len(header) > maxOwnFacts {
		return nil, fmt.Errorf("encode plan header: %d bytes, at most %d", len(header), maxOwnFacts)
	}
	file := make([]byte, 0, len(planMagic)+4+len(header)+sha256.Size+len(plan))
	file = append(file, planMagic...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(header)))
	file = append(file, header...)
	sum := planSum(header, plan)
	file = append(file, sum[:]...)
	return append(file, plan...), nil
}

func planSum(header, plan []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(header)
	h.Write(plan)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

// IsPlan reports whether a file is one of the three kinds of plans that ReadPlan accepts.
func IsPlan(file []byte) bool {
	_, ultralytics := ultralyticsHeader(file)
	return bytes.HasPrefix(file, []byte(planMagic)) || ultralytics || bytes.HasPrefix(file, rawMagic) || bytes.HasPrefix(file, rawMagic85)
}

// The start of TensorRT's plans, from 8.6 on and before.
var (
	rawMagic   = []byte("ftrt")
	rawMagic85 = []byte("ptrt")
)

// ReadPlan splits a plan file: one of EncodePlan, an Ultralytics .engine file (length, JSON, plan), or TensorRT's own format. The returned
// plan is part of file.
func ReadPlan(file []byte) (PlanFacts, []byte, error) {
	var facts PlanFacts
	plan := file
	var err error
	if rest, ours := bytes.CutPrefix(file, []byte(planMagic)); ours {
		facts, plan, err = readOwn(rest)
	} else if header, ultralytics := ultralyticsHeader(file); ultralytics {
		plan = file[4+len(header):]
		facts.Metadata, err = readUltralytics(header)
	}
	if err != nil {
		return PlanFacts{}, nil, err
	}
	if len(plan) == 0 {
		return PlanFacts{}, nil, errors.New("the file ends where the plan should begin")
	}
	if facts.Version == "" {
		facts.Version = rawVersion(plan)
	}
	return facts, plan, nil
}

func readOwn(rest []byte) (PlanFacts, []byte, error) {
	var facts PlanFacts
	if len(rest) < 4 {
		return facts, nil, errors.New("truncated plan file")
	}
	length := binary.LittleEndian.Uint32(rest)
	rest = rest[4:]
	if length > maxOwnFacts || uint64(len(rest)) < uint64(length)+sha256.Size {
		return facts, nil, errors.New("truncated plan file")
	}
	header, sum, plan := rest[:length], rest[length:length+sha256.Size], rest[length+sha256.Size:]
	if want := planSum(header, plan); !bytes.Equal(sum, want[:]) {
		return facts, nil, errors.New("checksum mismatch: the plan file is damaged or incomplete")
	}
	if err := json.Unmarshal(header, &facts); err != nil {
		return facts, nil, fmt.Errorf("header of the plan file: %w", err)
	}
	return facts, plan, nil
}

// ultralyticsHeader recognizes an Ultralytics export by its signed length and the brace of the JSON object after it. The first fields of an
// ONNX file, read as a length, are far over maxFacts.
func ultralyticsHeader(file []byte) ([]byte, bool) {
	if len(file) < 6 {
		return nil, false
	}
	length := int64(int32(binary.LittleEndian.Uint32(file)))
	if length < 2 || length > maxFacts || int64(len(file)-4) < length || file[4] != '{' {
		return nil, false
	}
	return file[4 : 4+length], true
}

// readUltralytics parses the JSON object, whose values are strings, numbers, lists or objects; the metadata parser takes them as strings.
func readUltralytics(header []byte) (engine.Metadata, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(header, &values); err != nil {
		return engine.Metadata{}, fmt.Errorf("header of the engine file: %w", err)
	}
	properties := make(map[string]string, len(values))
	for key, value := range values {
		text := string(value)
		var plain string
		if json.Unmarshal(value, &plain) == nil {
			text = plain
		}
		properties[key] = text
	}
	m, err := engine.ParseMetadata(properties)
	if err != nil {
		return m, fmt.Errorf("header of the engine file: %w", err)
	}
	return m, nil
}

// rawVersion returns the version in a plan's header, as trtexec --getPlanVersionOnly does; empty before 8.6.
func rawVersion(plan []byte) string {
	if len(plan) < 28 || !bytes.HasPrefix(plan, rawMagic) || binary.LittleEndian.Uint32(plan[4:]) != 0 {
		return ""
	}
	parts := make([]string, 0, 4)
	for _, b := range plan[24:28] {
		parts = append(parts, strconv.Itoa(int(b)))
	}
	return strings.Join(parts, ".")
}
