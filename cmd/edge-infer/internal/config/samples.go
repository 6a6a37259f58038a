package config

// Samples configures which frames are kept for labelling.
type Samples struct {
	Enabled   bool   `yaml:"enabled"`
	Directory string `yaml:"directory"`
	MaxMB     int    `yaml:"max_mb"`
	PerHour   int    `yaml:"per_hour"`
}

func (s *Samples) settings() []setting {
	return []setting{
		{
			"samples.enabled", "", yes(&s.Enabled), nil,
			"keep frames for labelling that the network was unsure about, or in which it lost an object, with its boxes as a draft",
		},
		{"samples.directory", "", text(&s.Directory), nil, "directory of these frames; empty: samples in the state directory"},
		{"samples.max_mb", "", whole(&s.MaxMB), within(&s.MaxMB, 1, 1<<24), "megabytes of these frames; above that the oldest are removed"},
		{"samples.per_hour", "", whole(&s.PerHour), within(&s.PerHour, 1, 3600), "most frames of a camera that are kept in an hour"},
	}
}
