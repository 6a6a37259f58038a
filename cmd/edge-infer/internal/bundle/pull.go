package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/labelled"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/internal/labelfile"
)

// Pull installs a bundle in the model store.
type Pull struct {
	Source
	Store catalogue.Store
	Keys  Keys
	// Machine returns what plans this machine can run. It is called only for a bundle with plans that a key has signed.
	Machine func(context.Context) (Machine, error)
	// Plans is the plan cache.
	Plans tensorrt.Cache
	// Now returns the time; time.Now if nil.
	Now func() time.Time
	// Accept is called with the checked manifest before any file is received; its error ends the pull. Nil accepts all.
	Accept func(*Info) error
	// Stage keeps the bundle as a candidate beside the version in force, see catalogue.Store.StageBundle.
	Stage bool
}

// Machine is what a plan must fit: the version of TensorRT and the names of the GPUs.
type Machine struct {
	TensorRT string
	GPUs     []string
}

// PullResult is an installed bundle.
type PullResult struct {
	Summary
	Path string `json:"path"`
	// Calibration is the calibration cache, empty if there is none.
	Calibration string `json:"calibration,omitempty"`
	// Plans are the installed engine plans. Notes say which were not, and why.
	Plans []string `json:"plans"`
	Notes []string `json:"notes"`
	// AlreadyPresent is set if this version had been installed before.
	AlreadyPresent bool `json:"was"`
	// Received is the number of bytes that this call has downloaded, without manifests.
	Received int64 `json:"received_bytes"`
}

// Print writes the result as text.
func (r *PullResult) Print(out io.Writer) error {
	status := "installed"
	if r.AlreadyPresent {
		status = "is already installed"
	}
	b := &r.Bundle
	if _, err := fmt.Fprintf(out, "%s version %d %s: %s\nsignature: %s\n", b.Name, b.Version, status, r.Path, r.signature()); err != nil {
		return err
	}
	for _, note := range r.Notes {
		if _, err := fmt.Fprintln(out, note); err != nil {
			return err
		}
	}
	if r.Calibration != "" {
		if _, err := fmt.Fprintf(out, "calibration cache: %s\n", r.Calibration); err != nil {
			return err
		}
	}
	confidence := ""
	if b.Confidence > 0 {
		confidence = fmt.Sprintf(" --confidence %v", b.Confidence)
	}
	_, err := fmt.Fprintf(out, "run it with edge-infer --model %s%s\n", b.Name, confidence)
	return err
}

func (r *PullResult) note(format string, count int) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, count))
}

// Run installs the bundle. It resumes an interrupted download. After an error the model that was installed before is unchanged.
func (p *Pull) Run(ctx context.Context) (*PullResult, error) {
	result, err := p.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", p.Location, err)
	}
	return result, nil
}

func (p *Pull) run(ctx context.Context) (result *PullResult, err error) {
	b, err := openBundle(ctx, &p.Source, p.Store, p.Keys)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	now := time.Now
	if p.Now != nil {
		now = p.Now
	}
	if err := b.checkExpiry(now()); err != nil {
		return nil, err
	}
	if p.Accept != nil {
		if err := p.Accept(b.Info); err != nil {
			return nil, err
		}
	}
	there, err := p.isInstalled(b)
	if err != nil {
		return nil, err
	}
	result = &PullResult{Summary: b.summary(p.Location), AlreadyPresent: there, Plans: []string{}, Notes: []string{}}
	if !there && !p.isStaged(b) {
		if err := p.installLocked(ctx, b, result); err != nil {
			return nil, err
		}
	}
	dir := p.Store.Bundle(b.Name)
	if p.Stage && !there {
		dir = p.Store.Candidate(b.Name)
	}
	result.Path = catalogue.Store{Dir: dir}.Path(b.Name)
	if b.file(calibrationFile) != nil {
		result.Calibration = calibrationPath(dir, b.Name)
	}
	return result, nil
}

// installLocked installs the bundle, unless another process has done so meanwhile.
func (p *Pull) installLocked(ctx context.Context, b *opened, result *PullResult) (err error) {
	dir, lock, err := p.Store.NewBundle(ctx, b.Name)
	if err != nil {
		return err
	}
	defer lock.Close()
	defer func() { err = errors.Join(err, p.Store.DiscardBundle(b.Name, dir)) }() // before the lock is released
	result.AlreadyPresent, err = p.isInstalled(b)
	if err != nil || result.AlreadyPresent {
		return err
	}
	return p.install(ctx, b, dir, result)
}

// isStaged reports whether the bundle is the candidate, undamaged.
func (p *Pull) isStaged(b *opened) bool {
	dir := p.Store.Candidate(b.Name)
	if !p.Stage || dir == "" {
		return false
	}
	have, err := readInstalled(dir)
	return err == nil && have.Digest == b.Digest && catalogue.Store{Dir: dir}.Verify(b.Name) == nil
}

// Installed returns what the manifest of an installed bundle states; nil if the model was not installed from one, or is damaged.
func Installed(store catalogue.Store, name string) *Info {
	dir := store.Bundle(name)
	if dir == "" {
		return nil
	}
	have, err := readInstalled(dir)
	if err != nil {
		return nil
	}
	return have
}

// readInstalled reads the manifest in a directory of a version.
func readInstalled(dir string) (*Info, error) {
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, err
	}
	return parseManifest(data)
}

// isInstalled reports whether the bundle is installed and undamaged. It returns an error if it must not replace the one that is.
func (p *Pull) isInstalled(b *opened) (bool, error) {
	dir := p.Store.Bundle(b.Name)
	if dir == "" {
		return false, nil
	}
	have, err := readInstalled(dir)
	switch {
	case err != nil:
		return false, nil //nolint:nilerr // damaged, and replaced
	case have.Version > b.Info.Version:
		return false, fmt.Errorf("version %d of %s is older than the installed version %d (to go back: edge-infer model rm %s, then pull)",
			b.Info.Version, b.Name, have.Version, b.Name)
	case have.Digest != b.Digest && have.Version == b.Info.Version:
		return false, fmt.Errorf("another version %d of %s is installed (ask its publisher for a higher version)", have.Version, b.Name)
	}
	return have.Digest == b.Digest && p.Store.Verify(b.Name) == nil, nil
}

// install receives the files and puts them in force. The caller removes the directory after an error.
func (p *Pull) install(ctx context.Context, b *opened, dir string, result *PullResult) error {
	chosen, err := p.choose(ctx, b, result)
	if err != nil {
		return err
	}
	parts := map[string]*catalogue.Part{}
	defer func() {
		for _, part := range parts {
			part.Close()
		}
	}()
	for at := range chosen { // all of them first, so that an interrupted pull has each once
		part, received, err := b.receiveFile(ctx, p.Store, &chosen[at])
		result.Received += received
		if err != nil {
			return err
		}
		parts[chosen[at].Path] = part
	}
	if err := checkContents(parts); err != nil {
		for _, part := range parts {
			err = errors.Join(err, part.Remove())
		}
		return err
	}
	if err := p.installPlans(chosen, parts, result); err != nil {
		return err
	}
	files := catalogue.Store{Dir: dir}
	for path, to := range map[string]string{
		modelFile: files.Path(b.Name), labelsFile: files.LabelsPath(b.Name), preprocessFile: engine.PreprocessFile(files.Path(b.Name)),
		calibrationFile: calibrationPath(dir, b.Name), labelledFile: LabelledPath(files.Path(b.Name)),
	} {
		if part := parts[path]; part != nil {
			if err := os.Rename(part.Name(), to); err != nil {
				return err
			}
		}
	}
	if err := files.WriteHash(b.Name, b.file(modelFile).SHA256); err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, manifestName), b.data, 0o644); err != nil {
		return err
	}
	if len(b.signed) > 0 {
		if err := atomicfile.Write(filepath.Join(dir, signatureName), b.signature(p.Keys), 0o644); err != nil {
			return err
		}
	}
	if p.Stage {
		return p.Store.StageBundle(b.Name, dir)
	}
	return p.Store.InstallBundle(b.Name, dir)
}

// calibrationPath returns the calibration cache in the directory of a bundle.
func calibrationPath(dir, name string) string { return filepath.Join(dir, name+"."+calibrationFile) }

// LabelledPath returns where the labelled images of an installed model are, if its bundle has some.
func LabelledPath(model string) string {
	return strings.TrimSuffix(model, filepath.Ext(model)) + "." + labelledFile
}

// choose returns the files that this machine installs: all but the plans for other machines.
func (p *Pull) choose(ctx context.Context, b *opened, result *PullResult) ([]File, error) {
	var chosen, plans []File
	for _, f := range b.Files {
		if f.plan() == "" {
			chosen = append(chosen, f)
		} else {
			plans = append(plans, f)
		}
	}
	switch {
	case len(plans) == 0:
		return chosen, nil
	case b.verifiedBy == "":
		result.note("engine plans not installed: %d, because plans hold code and no --key verified the bundle", len(plans))
		return chosen, nil
	}
	machine, err := p.Machine(ctx)
	if err != nil {
		return nil, err
	}
	others := 0
	for _, f := range plans {
		if f.TensorRT == machine.TensorRT && slices.Contains(machine.GPUs, f.GPU) {
			chosen = append(chosen, f)
		} else {
			others++
		}
	}
	if others > 0 {
		result.note("engine plans not installed: %d, which are for another GPU or version of TensorRT", others)
	}
	return chosen, nil
}

// checkContents parses the small files as the program will read them, and the model.
func checkContents(parts map[string]*catalogue.Part) error {
	for path, part := range parts {
		data, err := os.ReadFile(part.Name())
		if err != nil {
			return err
		}
		if err := checkContent(path, data); err != nil {
			return fmt.Errorf("%s: %w (ask its publisher for another version)", path, err)
		}
	}
	return nil
}

// checkContent returns an error if a file of a bundle is not what its path states.
func checkContent(path string, data []byte) error {
	var err error
	switch path {
	case modelFile:
		err = checkModel(data)
	case labelsFile:
		_, err = labelfile.Read(bytes.NewReader(data))
	case preprocessFile:
		_, err = engine.ParsePreprocess(data)
	case calibrationFile:
		err = checkCalibration(data)
	case labelledFile:
		_, err = labelled.Parse(data)
	default:
		_, _, err = tensorrt.ReadPlan(data)
	}
	return err
}

// checkModel returns an error unless data is an ONNX file that needs no other files.
func checkModel(data []byte) error {
	model, err := onnx.Parse(modelFile, data)
	if err == nil && len(model.ExternalFiles()) > 0 {
		err = errors.New("it has tensors in files of their own, which no bundle has")
	}
	return err
}

// installPlans writes plans into the plan cache, where the backend finds them by their names.
func (p *Pull) installPlans(chosen []File, parts map[string]*catalogue.Part, result *PullResult) error {
	for at := range chosen {
		name := chosen[at].plan()
		if name == "" {
			continue
		}
		part := parts[chosen[at].Path]
		data, err := os.ReadFile(part.Name())
		if err != nil {
			return err
		}
		path, err := p.Plans.Import(name, data)
		if err != nil {
			return err
		}
		if err := part.Remove(); err != nil {
			return err
		}
		result.Plans = append(result.Plans, path)
	}
	return nil
}

// signature returns the signature that a key verified, the first one without keys.
func (b *opened) signature(keys Keys) []byte {
	for _, text := range b.signed {
		if _, err := keys.verify(b.data, [][]byte{text}); err == nil {
			return text
		}
	}
	return b.signed[0]
}
