package config

import (
	"fmt"

	"github.com/edge-infer/edge-infer/capture"
)

// Origin is a setting with the source of its value.
type Origin struct {
	Key   string `json:"key"`
	Value string `json:"value"` // references as they stand, passwords in addresses hidden
	From  string `json:"from"`
}

// Origins returns every setting in force and its source: default, a file and its line, an environment variable or a flag.
func (s *Sources) Origins() ([]Origin, error) {
	l := s.merged()
	l.applyEnvironment()
	s.applyFlags(l)
	if err := l.err(); err != nil {
		return nil, UsageError{err}
	}
	values := byKey(l.Config)
	var all []Origin
	for _, setting := range settings(l.Config) {
		all = append(all, Origin{setting.key, capture.Redact(values.Lookup(setting.key).Value.String()), l.at.from(setting.key)})
	}
	for i := range l.Cameras {
		camera := &l.Cameras[i]
		all = append(all, Origin{"cameras." + camera.Name, capture.Redact(camera.URI), l.at.from(fmt.Sprintf("cameras[%d]", i))})
	}
	for i := range l.Cascade {
		cascade := &l.Cascade[i]
		all = append(all, Origin{"cascade." + cascade.Name, cascade.Model, l.at.from(fmt.Sprintf("cascade[%d]", i))})
	}
	for i := range l.Webhooks {
		w := &l.Webhooks[i]
		all = append(all, Origin{"webhooks." + w.Name, w.Host(), l.at.from(fmt.Sprintf("webhooks[%d]", i))})
	}
	return all, nil
}

// from describes the source of a key's value.
func (p places) from(key string) string {
	at := p.of(key)
	switch {
	case at.name == "":
		return "default"
	case at.line != 0:
		return fmt.Sprintf("%s line %d", at.name, at.line)
	}
	return at.name
}
