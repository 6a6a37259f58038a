package auto

import "github.com/edge-infer/edge-infer/engine"

// Backend is one row of the report: a way to run models and whether it is available.
type Backend struct {
	Engine  string `json:"engine"`
	Title   string `json:"title"`
	Path    string `json:"path,omitempty"`    // of the library
	Version string `json:"version,omitempty"` // of the library
	Usable  bool   `json:"usable"`
	Chosen  bool   `json:"chosen"`           // first candidate of automatic selection
	Reason  string `json:"reason,omitempty"` // why it is unavailable
}

// Report checks every backend and marks the one that Open would use for a model that all of them support. It opens no model and skips
// remote backends.
func Report(options engine.Options, choice Choice) ([]Backend, error) {
	candidates, _, err := choice.candidates(options)
	if err != nil {
		return nil, err
	}
	var report []Backend
	chosen := false
	for _, c := range candidates {
		if c.Find == nil {
			continue
		}
		b := Backend{Engine: c.Engine, Title: c.Title}
		b.Path, b.Version, err = c.Find(options)
		if err != nil {
			b.Reason = err.Error()
		} else {
			b.Usable, b.Chosen = true, !chosen
			chosen = true
		}
		report = append(report, b)
	}
	return report, nil
}
