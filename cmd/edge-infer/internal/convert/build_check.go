package convert

import (
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
)

// Check validates the options and reads shapes and sizes.
func (b *Build) Check() error {
	if err := b.readOptions(); err != nil {
		return err
	}
	if err := b.INT8Options.check(); err != nil {
		return err
	}
	precision := engine.Precision(b.Precision)
	calibrates := b.Images != "" || b.Cache != ""
	limits := b.commandLine != nil && (b.commandLine.Changed("gate") || b.commandLine.Changed("max-loss"))
	switch {
	case !slices.Contains([]engine.Precision{engine.Auto, engine.FP32, engine.FP16, engine.INT8}, precision):
		return config.Usagef("--precision %q must be auto, fp32, fp16 or int8", b.Precision)
	case b.OptimizationLevel < -1 || b.OptimizationLevel > 5:
		return config.Usagef("--opt-level %d must be 0 to 5, or -1", b.OptimizationLevel)
	case b.DLA < -1:
		return config.Usagef("--dla %d must be the number of a DLA core, or -1", b.DLA)
	case b.GPU < 0:
		return config.Usagef("--gpu must not be negative")
	case calibrates && (precision == engine.FP32 || precision == engine.FP16):
		return config.Usagef("--images is for --precision int8 or auto")
	case calibrates && precision == engine.Auto && b.Data == "" && !b.Limits.Off():
		return config.Usagef("--precision auto takes INT8 only if the gate lets it pass: give --data DIR, or --gate 0 to go without")
	case b.Data == "" && (limits && !b.Limits.Off() || b.ReferenceModel != ""):
		return config.Usagef("the gate needs --data DIR with images")
	case b.Search && (!b.judged() || b.Images == "" || b.QDQ || b.StronglyTyped):
		return config.Usagef("--search measures layers on --images DIR for TensorRT's calibrators and needs a gate with --data DIR " +
			"(edge-infer quantize --search is for Q/DQ nodes)")
	case b.Data != "" && b.buildOptions.Batch.Min > 1:
		return config.Usagef("the gate runs one image at a time: the minimum of --batch must be 1")
	}
	if _, err := b.options(); err != nil {
		return err
	}
	return b.Limits.Check()
}

// readOptions sets the build options from the fields.
func (b *Build) readOptions() (err error) {
	o := &b.buildOptions
	o.Device = b.GPU
	o.Library.Path = b.Library
	o.Plugins = b.Plugins
	o.TimingCache = b.TimingCache
	o.StronglyTyped = b.StronglyTyped
	o.VersionCompatible = b.VersionCompatible
	o.HardwareCompatible = b.HardwareCompatible
	o.Log = b.Logger
	o.Batch, err = parseBatch(b.Batch)
	if err != nil {
		return err
	}
	for _, text := range b.Shapes {
		shape, err := parseShape(text)
		if err != nil {
			return err
		}
		o.Shapes = append(o.Shapes, shape)
	}
	if b.Workspace != "" {
		o.Workspace, err = parseBytes(b.Workspace)
		if err != nil {
			return err
		}
	}
	if b.OptimizationLevel >= 0 {
		o.OptimizationLevel = &b.OptimizationLevel
	}
	if b.DLA >= 0 {
		o.DLA = &b.DLA
	}
	return nil
}
