package auto

import "github.com/edge-infer/edge-infer/engine"

// Backend is one line of the report: a way to run models, and whether it can be used here.
type Backend struct {
	Engine  string `json:"engine"`
	Title   string `json:"title"`
	Path    string `json:"path,omitempty"`    // of the library
	Version string `json:"version,omitempty"` // of the library
	Usable  bool   `json:"usable"`
	Chosen  bool   `json:"chosen"`           // what automatic choice would try first
	Reason  string `json:"reason,omitempty"` // why it cannot be used
}

// Report looks for every backend and says which one Open would take for a model that all of them run. It opens no model; backends that can
// only be told by connecting to them are left out.
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
