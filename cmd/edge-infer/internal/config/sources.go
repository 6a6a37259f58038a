package config

import (
	"os"

	"github.com/spf13/pflag"
)

// Sources are the sources of a command's settings: defaults, File, environment and command line; a later one wins. Loading again reads file
// and environment again.
type Sources struct {
	File    string   // YAML, followed by conf.d/*.yaml next to it, see Files; empty for none
	Cameras []string // of --camera, see ParseCameras
	Cascade []string // of --cascade, see ParseCascades
	Scope   Scope
	// Environment returns a variable; nil reads the environment of this process.
	Environment func(name string) (value string, set bool)

	given *pflag.FlagSet
}

// Flags defines the flags of the scope's settings and of the configuration file. Their values, and errors in them, take effect when the
// settings are loaded.
func (s *Sources) Flags(flags *pflag.FlagSet) {
	Flags(s.Scope.defaults(), flags, s.Scope) // defines help texts; the values are read again after the file
	flags.VisitAll(func(flag *pflag.Flag) {
		_, isList := flag.Value.(pflag.SliceValue)
		if flag.Annotations[sectionAnnotation] != nil && !isList && flag.Value.Type() != "string" { // a string fits always
			flag.Value = &deferredValue{Value: flag.Value}
		}
	})
	flags.StringVar(&s.File, "config", "", "YAML file, and *.yaml of conf.d beside it; edge-infer config defaults prints one")
	_ = flags.SetAnnotation("config", scopeAnnotation, s.Scope) // the flag exists
	s.given = flags
}

// deferredValue is a flag's value that keeps its error, so that it is reported together with all others.
type deferredValue struct {
	pflag.Value
	text  string
	wrong error
}

// Set never fails.
func (p *deferredValue) Set(text string) error {
	p.text, p.wrong = text, p.Value.Set(text)
	return nil
}

// CameraFlag defines the flag for cameras.
func (s *Sources) CameraFlag(flags *pflag.FlagSet, help string) {
	flags.StringArrayVar(&s.Cameras, "camera", nil, help)
}

// CascadeFlag defines the flag for secondary networks.
func (s *Sources) CascadeFlag(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.Cascade, "cascade", nil,
		"secondary network that runs on each object, NAME=MODEL.onnx; may be repeated; cascade: of --config has more options")
}

// Load reads the settings and validates those of the scope. It returns a UsageError that wraps Errors.
func (s *Sources) Load() (*Config, error) {
	l := s.read()
	l.check(s.Scope)
	if err := l.err(); err != nil {
		return nil, UsageError{err}
	}
	return l.Config, nil
}

// Check returns the settings with every error that can be found without opening anything, in the order of the files' lines, then of the
// environment and the flags.
func (s *Sources) Check() (*Config, Errors) {
	l := s.read()
	l.check(s.Scope)
	return l.Config, l.mistakes()
}

// read applies the sources in order, and the zones drawn on the page last.
func (s *Sources) read() *layers {
	l := s.configured()
	if err := l.applyDrawn(); err != nil {
		l.wrong(location{source: ofNone}, err)
	}
	return l
}

// configured puts the sources over each other.
func (s *Sources) configured() *layers {
	l := s.merged()
	r := resolver{Lookup: l.lookup}
	for _, missing := range r.Resolve(l.Config) {
		l.wrong(l.at.of(missing.Key), missing, missing.Key)
	}
	l.applyEnvironment()
	s.applyFlags(l)
	l.applyService(l.lookup)
	l.applyFleet()
	l.applyAdded()
	l.applyBrowsers()
	return l
}

// lookup is the environment.
func (s *Sources) lookup() func(name string) (value string, set bool) {
	if s.Environment != nil {
		return s.Environment
	}
	return os.LookupEnv
}

// applyFlags applies the command line.
func (s *Sources) applyFlags(l *layers) {
	if len(s.Cameras) > 0 {
		cameras, err := ParseCameras(s.Cameras)
		l.setCameras(cameras, err, location{source: ofFlags, name: "--camera"})
	}
	if len(s.Cascade) > 0 {
		at := location{source: ofFlags, name: "--cascade"}
		cascade, err := ParseCascades(s.Cascade)
		if err != nil {
			l.wrong(at, err, "cascade")
		}
		l.Cascade = cascade
		l.at.replace("cascade", at)
	}
	if s.given == nil {
		return
	}
	overlay := pflag.NewFlagSet("given", pflag.ContinueOnError)
	Flags(l.Config, overlay, s.Scope)
	for _, setting := range settings(l.Config) {
		if setting.flag == "" {
			continue
		}
		flag, now := s.given.Lookup(setting.flag), overlay.Lookup(setting.flag)
		if flag == nil || now == nil || !flag.Changed { // Changed is the flag's, not of the set that it was parsed in
			continue
		}
		at := location{source: ofFlags, name: "--" + setting.flag}
		l.at[setting.key] = at
		switch value := flag.Value.(type) {
		case pflag.SliceValue:
			_ = now.Value.(pflag.SliceValue).Replace(value.GetSlice()) // it took them once
		case *deferredValue:
			l.set(&setting, now.Value, value.text, at)
		default:
			l.set(&setting, now.Value, value.String(), at)
		}
	}
}
