package repository

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
)

// labelsFile holds the class names for the server.
const labelsFile = "labels.txt"

// description holds the data of a model configuration.
type description struct {
	model      *engine.Model
	name, file string
	export     *Export
}

// batch returns the maximum batch, 0 for a model with a static one.
func (d *description) batch() int {
	closed := func(t engine.TensorInfo) bool { return len(t.Shape) < 2 || t.Shape[0] != -1 }
	if slices.ContainsFunc(d.model.Inputs, closed) || slices.ContainsFunc(d.model.Outputs, closed) {
		return 0
	}
	return d.model.MaxBatch
}

// config returns config.pbtxt, in the text format of protocol buffers.
func (d *description) config() (string, error) {
	var b strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&b, format+"\n", arguments...) }
	platform := "tensorrt_plan"
	if strings.HasSuffix(d.file, ".onnx") {
		platform = "onnxruntime_onnx"
	}
	batch := d.batch()
	line("name: %s\nplatform: %s\nmax_batch_size: %d", text(d.name), text(platform), batch)
	if d.file != "" {
		line("default_model_filename: %s", text(d.file))
	}
	for _, capability := range slices.Sorted(maps.Keys(d.export.Plans)) {
		line("cc_model_filenames { key: %s value: %s }", text(capability), text(planFile(capability)))
	}
	d.tensors(line, "input", d.model.Inputs, batch, false)
	d.tensors(line, "output", d.model.Outputs, batch, len(d.model.Metadata.Labels) > 0)
	d.scheduling(line, batch)
	line("version_policy { latest { num_versions: %d } }", d.export.Versions)
	properties, err := d.model.Metadata.Properties()
	if err != nil {
		return "", err
	}
	parameters(line, properties)
	return b.String(), nil
}

// tensors writes inputs or outputs.
func (d *description) tensors(line func(string, ...any), kind string, list []engine.TensorInfo, batch int, labelled bool) {
	for _, t := range list {
		extra := ""
		if labelled {
			extra = " label_filename: " + text(labelsFile)
		}
		line("%s { name: %s data_type: %s dims: [%s]%s }",
			kind, text(t.Name), kserve.ConfigType(kserve.Datatype(t.Type)), dims(t.Shape, batch), extra)
	}
}

// parameters writes the parameters, which the server passes on to clients.
func parameters(line func(string, ...any), properties map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		line("parameters { key: %s value { string_value: %s } }", text(key), text(properties[key]))
	}
}

// scheduling writes batching, instances and warm-up.
func (d *description) scheduling(line func(string, ...any), batch int) {
	if batch > 1 {
		preferred := d.export.Preferred
		if preferred == nil {
			preferred = slices.Compact([]int{max(batch/2, 1), batch})
		}
		line("dynamic_batching { preferred_batch_size: [%s] max_queue_delay_microseconds: %d }", join(preferred), d.export.Delay.Microseconds())
	}
	switch {
	case len(d.export.GPUs) > 0:
		line("instance_group { count: %d kind: KIND_GPU gpus: [%s] }", d.export.Instances, join(d.export.GPUs))
	default:
		line("instance_group { count: %d kind: KIND_AUTO }", d.export.Instances)
	}
	if slices.ContainsFunc(d.model.Inputs, func(t engine.TensorInfo) bool { return slices.Contains(t.Shape[min(1, len(t.Shape)):], -1) }) {
		return // dynamic sizes: no warm-up
	}
	var inputs strings.Builder
	for _, t := range d.model.Inputs {
		fmt.Fprintf(&inputs, " inputs { key: %s value { data_type: %s dims: [%s] zero_data: true } }", text(t.Name),
			kserve.ConfigType(kserve.Datatype(t.Type)), dims(t.Shape, batch))
	}
	for _, size := range slices.Compact([]int{min(batch, 1), batch}) {
		line("model_warmup { name: %s batch_size: %d%s }", text(fmt.Sprintf("zeros-%d", size)), size, inputs.String())
	}
}

// dims formats a shape, without the batch dimension if the server adds it.
func dims(shape []int64, batch int) string {
	if batch > 0 {
		shape = shape[1:]
	}
	return join(shape)
}

func join[T int | int64](numbers []T) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.FormatInt(int64(n), 10)
	}
	return strings.Join(words, ", ")
}

// text quotes a string for the text format of protocol buffers.
func text(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
