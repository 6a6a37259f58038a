// Package repository exports a model to a model repository of Triton Inference Server.
package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Export configures the export.
type Export struct {
	Dir       string // repository directory
	Name      string // model name; empty: by its file
	Batch     int    // maximum batch
	Preferred []int
	Delay     time.Duration // maximum queue delay of dynamic batching
	Instances int
	GPUs      []int
	Versions  int // number of latest versions that the server loads
	// Plans holds engine plan files by compute capability, such as 8.7.
	Plans map[string]string
	Wire  []string // additional image encodings for clients, each exported as an ensemble

	Config *config.Config
	Logger *slog.Logger
}

// Flags adds the flags of the export.
func (e *Export) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&e.Dir, "repository", "", "model repository of the server")
	flags.StringVar(&e.Name, "name", "", "model name on the server (default: by its file)")
	flags.IntVar(&e.Batch, "max-batch", 8, "maximum batch, for a model with a dynamic batch")
	flags.IntSliceVar(&e.Preferred, "preferred", nil,
		"preferred batch sizes (default: half the maximum and the maximum)")
	flags.DurationVar(&e.Delay, "queue-delay", 0,
		"maximum time that a request waits for a batch; adds this latency without other requests")
	flags.IntVar(&e.Instances, "instances", 1, "model instances per GPU, or on the CPU")
	flags.IntSliceVar(&e.GPUs, "gpus", nil, "GPUs of the server (default: chosen by the server)")
	flags.IntVar(&e.Versions, "versions", 1, "number of latest versions that the server loads")
	flags.StringToStringVar(&e.Plans, "plans", nil,
		"engine plans by compute capability, like 8.7=orin.engine,8.9=l4.engine; --model is the ONNX file or one of the plans")
	flags.StringSliceVar(&e.Wire, "wire", nil,
		"fp16, uint8, jpeg: also export ensembles NAME_fp16 etc., which preprocess such images on the server")
}

// Check validates the settings.
func (e *Export) Check() error {
	switch {
	case e.Dir == "":
		return config.Usagef("--repository names the directory of the server's models")
	case e.Name != "" && !kserve.IsModelName(e.Name):
		return config.Usagef("--name %q must be letters, digits, dots, dashes and underscores", e.Name)
	case e.Batch < 1 || e.Batch > 1024 || e.Instances < 1 || e.Instances > 64 || e.Versions < 1 || e.Versions > 64:
		return config.Usagef("--max-batch must be 1 to 1024, --instances and --versions 1 to 64")
	case e.Delay < 0 || e.Delay > time.Second:
		return config.Usagef("--queue-delay must be 0 to 1s")
	}
	for _, n := range e.Preferred {
		if n < 1 || n > e.Batch {
			return config.Usagef("--preferred must be 1 to %d", e.Batch)
		}
	}
	for _, gpu := range e.GPUs {
		if gpu < 0 {
			return config.Usagef("--gpus must be numbers of GPUs, from 0")
		}
	}
	for _, wire := range e.Wire {
		if wireTypes[wire] == "" {
			return config.Usagef("--wire %q must be fp16, uint8 or jpeg", wire)
		}
	}
	for capability := range e.Plans {
		if !capabilities.MatchString(capability) {
			return config.Usagef("--plans %q must be a compute capability, like 8.7", capability)
		}
	}
	return nil
}

// capabilities matches compute capabilities as NVIDIA writes them.
var capabilities = regexp.MustCompile(`^[0-9]{1,2}\.[0-9]$`)

// Result describes the exported files.
type Result struct {
	Model   string `json:"model"` // name on the server
	Dir     string `json:"directory"`
	Version int    `json:"version"`
	File    string `json:"file"`
	Config  string `json:"config"`
	Kept    bool   `json:"kept"` // an existing configuration was kept
	// Ensembles lists the models with preprocessing on the server.
	Ensembles []string `json:"ensembles,omitempty"`
}

// Print writes the result as text.
func (r *Result) Print(w io.Writer) error {
	note := "written"
	if r.Kept {
		note = "kept as it was"
	}
	_, err := fmt.Fprintf(w, "version %d of %s: %s\nconfiguration %s: %s\n", r.Version, r.Model, r.File, note, r.Config)
	if len(r.Ensembles) > 0 && err == nil {
		_, err = fmt.Fprintf(w, "with preprocessing on the server: %s\n", strings.Join(r.Ensembles, ", "))
	}
	return err
}

// Run opens the model to read its inputs and outputs, and writes it as the next version. A server that polls the repository sees the
// version complete or not at all.
func (e *Export) Run(ctx context.Context) (*Result, error) {
	options := network.Options(e.Config, e.Config.Detect.Confidence, e.Logger)
	options.MaxBatch = e.Batch
	if err := options.Load(); err != nil {
		return nil, err
	}
	files, file, err := e.files(&options)
	if err != nil {
		return nil, err
	}
	raw, err := predict.OpenRaw(ctx, options)
	if err != nil {
		return nil, err
	}
	model := raw.Model()
	if err := raw.Close(); err != nil {
		return nil, err
	}
	name := e.name()
	dir := filepath.Join(e.Dir, name)
	r := &Result{Model: name, Dir: dir, Config: filepath.Join(dir, "config.pbtxt")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("repository: %w", err)
	}
	d := &description{model: &model, name: name, file: file, export: e}
	if err := e.describe(r, files, d); err != nil {
		return nil, err
	}
	if r.Version, err = add(dir, files); err != nil {
		return nil, err
	}
	for _, wire := range e.Wire {
		whole := ensemble{d, wire}
		if err := whole.write(e.Dir); err != nil {
			return nil, err
		}
		r.Ensembles = append(r.Ensembles, whole.whole())
	}
	r.File = filepath.Join(dir, strconv.Itoa(r.Version), file) // the directory, if there are only plans by capability
	return r, nil
}

// files returns the files of a version; file is the default one, empty if there are only plans by capability.
func (e *Export) files(o *predict.Options) (files map[string][]byte, file string, err error) {
	files = map[string][]byte{}
	for capability, path := range e.Plans {
		data, err := os.ReadFile(path)
		switch {
		case err != nil:
			return nil, "", fmt.Errorf("--plans: %w", err)
		case !tensorrt.IsPlan(data):
			return nil, "", fmt.Errorf("--plans %s: %s is not an engine plan (build one on that GPU with edge-infer build)", capability, path)
		}
		files[planFile(capability)] = data
	}
	switch {
	case tensorrt.IsPlan(o.Bytes):
		file = "model.plan"
	case len(e.Plans) > 0: // the model is only inspected
		return files, "", nil
	default:
		file = "model.onnx"
		if parsed, err := onnx.Parse(o.Path, o.Bytes); err == nil && len(parsed.ExternalFiles()) > 0 {
			return nil, "", fmt.Errorf("model %s has external weights (save it as one file first)", o.Path)
		}
	}
	files[file] = o.Bytes
	return files, file, nil
}

// planFile returns the file name of the plan for a compute capability.
func planFile(capability string) string { return "model-" + capability + ".plan" }

// name returns the model name on the server.
func (e *Export) name() string {
	return cmp.Or(e.Name, kserve.ModelName(cmp.Or(e.Config.Model.Path, predict.Demo)))
}

// describe writes configuration and labels. Existing ones are kept, because they may have been edited.
func (e *Export) describe(r *Result, files map[string][]byte, d *description) error {
	text, err := os.ReadFile(r.Config)
	if err == nil {
		for file := range files {
			if !strings.Contains(string(text), `"`+file+`"`) {
				return fmt.Errorf("%s is for another kind of file than %s (export under another --name)", r.Config, file)
			}
		}
		r.Kept = true
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("repository: %w", err)
	}
	config, err := d.config()
	if err != nil {
		return err
	}
	if labels := d.model.Metadata.Labels; len(labels) > 0 {
		if err := atomicfile.Write(filepath.Join(r.Dir, labelsFile), []byte(strings.Join(labels, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	return atomicfile.Write(r.Config, []byte(config), 0o644)
}

// add writes the next version under a temporary name that servers ignore, and renames it.
func add(dir string, files map[string][]byte) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("repository: %w", err)
	}
	version := 1
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil && entry.IsDir() {
			version = max(version, n+1)
		}
	}
	unfinished, err := os.MkdirTemp(dir, ".version-*")
	if err != nil {
		return 0, fmt.Errorf("repository: %w", err)
	}
	err = os.Chmod(unfinished, 0o755)
	for name, data := range files {
		err = errors.Join(err, atomicfile.Write(filepath.Join(unfinished, name), data, 0o644))
	}
	if err == nil {
		err = os.Rename(unfinished, filepath.Join(dir, strconv.Itoa(version)))
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("repository: %w", err), os.RemoveAll(unfinished))
	}
	return version, nil
}
