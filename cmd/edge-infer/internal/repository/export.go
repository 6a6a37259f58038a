// Package repository writes a model into a repository of Triton Inference Server.
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
	"github.com/edge-infer/edge-infer/engine/atomicfile"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Export is the job.
type Export struct {
	Dir       string // of the repository
	Name      string // of the model; empty for that of its file
	Batch     int    // largest one
	Preferred []int
	Delay     time.Duration // that the server has a request wait for others
	Instances int
	GPUs      []int
	Versions  int // the newest that the server keeps loaded
	// Plans are files of engine plans by the compute capability of the GPUs that they are for, such as 8.7.
	Plans map[string]string
	Wire  []string // what images may come as beside what the network takes: each gives an ensemble

	Config *config.Config
	Logger *slog.Logger
}

// Flags are the job's place on a command line.
func (e *Export) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&e.Dir, "repository", "", "directory of the server's models")
	flags.StringVar(&e.Name, "name", "", "what the server calls the model (default the name of its file)")
	flags.IntVar(&e.Batch, "max-batch", 8, "images that the server runs at once at most, where the model leaves that open")
	flags.IntSliceVar(&e.Preferred, "preferred", nil,
		"batch sizes that the server shall prefer (default half of the largest, and the largest)")
	flags.DurationVar(&e.Delay, "queue-delay", 0,
		"longest that the server has a request wait for others; it adds that much where there are none")
	flags.IntVar(&e.Instances, "instances", 1, "copies of the model on each GPU, or on the CPU")
	flags.IntSliceVar(&e.GPUs, "gpus", nil, "GPUs of the server that run it (default as the server finds)")
	flags.IntVar(&e.Versions, "versions", 1, "newest versions that the server keeps loaded")
	flags.StringToStringVar(&e.Plans, "plans", nil,
		"plans for several kinds of GPU, as 8.7=orin.engine,8.9=l4.engine; --model says what they take and give, as the ONNX file or one of them")
	flags.StringSliceVar(&e.Wire, "wire", nil,
		"fp16, uint8, jpeg: also write NAME_fp16 and so on, which take images so and make them into the network's input on the server")
}

// Check finds what is wrong with the inputs before any work.
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

// capabilities are written as NVIDIA writes them.
var capabilities = regexp.MustCompile(`^[0-9]{1,2}\.[0-9]$`)

// Result is what was written.
type Result struct {
	Model   string `json:"model"` // as the server calls it
	Dir     string `json:"directory"`
	Version int    `json:"version"`
	File    string `json:"file"`
	Config  string `json:"config"`
	Kept    bool   `json:"kept"` // the configuration was there before and stays as it is
	// Ensembles are the models that take images as something else.
	Ensembles []string `json:"ensembles,omitempty"`
}

// Print writes the result for people.
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

// Run opens the model, to know it whole, and writes it as a further version. A server that looks at the repository meanwhile sees the
// version whole or not at all.
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
	r.File = filepath.Join(dir, strconv.Itoa(r.Version), file) // the directory, where there is a file for each kind of GPU
	return r, nil
}

// files are what a version consists of; file is the one for GPUs of which nothing is said, empty where there is none.
func (e *Export) files(o *predict.Options) (files map[string][]byte, file string, err error) {
	files = map[string][]byte{}
	for capability, path := range e.Plans {
		data, err := os.ReadFile(path)
		switch {
		case err != nil:
			return nil, "", fmt.Errorf("--plans: %w", err)
		case !tensorrt.IsPlan(data):
			return nil, "", fmt.Errorf("--plans %s: %s is no engine plan (edge-infer build makes one on that GPU)", capability, path)
		}
		files[planFile(capability)] = data
	}
	switch {
	case tensorrt.IsPlan(o.Bytes):
		file = "model.plan"
	case len(e.Plans) > 0: // the model is there to be looked at
		return files, "", nil
	default:
		file = "model.onnx"
		if parsed, err := onnx.Parse(o.Path, o.Bytes); err == nil && len(parsed.ExternalFiles()) > 0 {
			return nil, "", fmt.Errorf("model %s keeps its weights in files beside it (save it as one file first)", o.Path)
		}
	}
	files[file] = o.Bytes
	return files, file, nil
}

// planFile is the plan for GPUs of that compute capability.
func planFile(capability string) string { return "model-" + capability + ".plan" }

// name is what the server calls the model.
func (e *Export) name() string {
	return cmp.Or(e.Name, kserve.ModelName(cmp.Or(e.Config.Model.Path, predict.Demo)))
}

// describe writes the configuration and the labels where there are none yet: those that are there may have been edited.
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

// add writes the next version under a name that no server takes for one, and then gives it its own.
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
